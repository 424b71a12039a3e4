//! Files, folders, sockets, streams and timers that guests hold open: so many each, and so many together that the agent has what it
//! needs however many guests want them all (RES-06).
//!
//! Each is an entry in the table of an instance, and none takes more than one file descriptor of the process. A table has room for what
//! is in it and somewhat more; before it is filled, more is asked for here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::component::ResourceTable;

/// What an instance may hold however much the others do. The rest is there for who comes first.
const ASSURED: usize = 64;
/// So many are free after a table was counted, or a quarter of those that it has.
const ROOM: usize = 64;
/// What a call of the host makes at most: all folders of a guest at once.
const PER_CALL: usize = 8;

/// What all guests of a node may hold beyond what each is assured of.
#[derive(Debug)]
pub(crate) struct Handles {
    /// What one instance may hold.
    most: usize,
    left: AtomicUsize,
}

impl Handles {
    /// `most` for each instance, and as much of what the process may have open as leaves it enough for itself and for what each
    /// is assured of.
    pub(crate) fn new(most: usize, open_files: u64) -> Self {
        let together = usize::try_from(open_files / 2).unwrap_or(usize::MAX);
        Self { most, left: AtomicUsize::new(together) }
    }

    /// Takes so many, or what there is of it.
    fn take(&self, wanted: usize) -> usize {
        let mut got = 0;
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            got = wanted.min(left);
            Some(left - got)
        });
        got
    }

    fn give_back(&self, handles: usize) {
        self.left.fetch_add(handles, Ordering::Relaxed);
    }
}

/// What one instance may hold at the moment.
#[derive(Debug)]
pub(crate) struct Lease {
    of: Arc<Handles>,
    /// Of those that all share.
    shared: usize,
    /// What can be added before the table is counted again.
    uncounted: usize,
}

impl Lease {
    pub(crate) fn new(of: Arc<Handles>) -> Self {
        Self { of, shared: 0, uncounted: 0 }
    }

    /// Before the guest calls the host, which may put something into its table.
    pub(crate) fn look(&mut self, table: &mut ResourceTable) {
        if let Some(left) = self.uncounted.checked_sub(PER_CALL) {
            self.uncounted = left;
            return;
        }
        let held = table.iter_mut().count();
        let wanted = (held + ROOM.max(held / 4)).min(self.of.most);
        let beyond = wanted.saturating_sub(ASSURED);
        match beyond.checked_sub(self.shared) {
            Some(more) => self.shared += self.of.take(more),
            None => self.give_back(self.shared - beyond),
        }
        let capacity = self.of.most.min(ASSURED + self.shared);
        table.set_max_capacity(capacity);
        self.uncounted = capacity.saturating_sub(held);
    }

    fn give_back(&mut self, handles: usize) {
        self.shared -= handles;
        self.of.give_back(handles);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(self.shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmtime::component::Resource;

    /// An instance that opens what it can.
    struct Hog {
        lease: Lease,
        table: ResourceTable,
        held: Vec<Resource<()>>,
    }

    impl Hog {
        fn new(of: &Arc<Handles>) -> Self {
            Self { lease: Lease::new(of.clone()), table: ResourceTable::new(), held: Vec::new() }
        }

        fn opens(&mut self) -> bool {
            self.lease.look(&mut self.table);
            let opened = self.table.push(());
            let is_open = opened.is_ok();
            self.held.extend(opened);
            is_open
        }

        fn opens_all(&mut self) -> usize {
            while self.opens() {}
            self.held.len()
        }
    }

    // spec: RES-06
    #[test]
    fn each_holds_so_many_and_all_together_so_many_more_than_each_is_assured_of() {
        let handles = Arc::new(Handles::new(1000, 4000));
        let [mut first, mut second, mut third] = [(); 3].map(|()| Hog::new(&handles));
        assert_eq!(first.opens_all(), 1000);
        assert_eq!(second.opens_all(), 1000);
        // 2,000 are shared: 936 of them each of the two has.
        assert_eq!(third.opens_all(), ASSURED + 128);
        let mut late = Hog::new(&handles);
        assert_eq!(late.opens_all(), ASSURED);
        drop((first, second, third, late));
        assert_eq!(handles.left.load(Ordering::Relaxed), 2000, "all of it is there again");
    }

    #[test]
    fn what_is_closed_is_there_for_others() {
        let handles = Arc::new(Handles::new(1000, 1000));
        let (mut first, mut second) = (Hog::new(&handles), Hog::new(&handles));
        assert_eq!(first.opens_all(), ASSURED + 500);
        for handle in first.held.drain(..) {
            first.table.delete(handle).expect("it is there");
        }
        // What was given to it is counted again when it has done more.
        for _ in 0..ASSURED + 500 {
            assert!(first.opens());
            first.table.delete(first.held.pop().expect("one")).expect("it is there");
        }
        assert!(second.opens_all() > 500, "{:?}", handles);
    }
}
