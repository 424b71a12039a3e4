//! Files, folders, sockets, streams and timers that guests hold open: so many each, and so many together that the agent has what it
//! needs however many guests want them all (RES-06).
//!
//! Each is an entry in the table of an instance, and none takes more than one file descriptor of the process. Tables don't say how full
//! they are: they are counted now and then, before a guest calls the host, and the more seldom the more it may still add.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::component::{ResourceTable, ResourceTableError};

/// What an instance may hold however much the others do. The rest is there for who comes first.
const ASSURED: usize = 64;
/// So many are free after a table was counted, or a quarter of those that it has.
const ROOM: usize = 64;
/// What a call of the host adds. One that adds more, as one that waits for many things does for as long as it waits, is counted late.
const PER_CALL: usize = 8;

/// What all guests of a node may hold beyond what each is assured of.
#[derive(Debug)]
pub(crate) struct Handles {
    /// What one instance may hold.
    most: usize,
    left: AtomicUsize,
}

impl Handles {
    /// `most` for each instance. What all share is half of what the process may have open; the other half is for the agent and for what
    /// each instance is assured of.
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
    ///
    /// # Errors
    /// It holds more than it may.
    pub(crate) fn look(&mut self, table: &mut ResourceTable) -> Result<(), ResourceTableError> {
        if let Some(left) = self.uncounted.checked_sub(PER_CALL) {
            self.uncounted = left;
            return Ok(());
        }
        table.set_max_capacity(self.of.most);
        let held = table.iter_mut().count();
        let beyond = (held + ROOM.max(held / 4)).min(self.of.most).saturating_sub(ASSURED);
        match beyond.checked_sub(self.shared) {
            Some(more) => self.shared += self.of.take(more),
            None => self.give_back(self.shared - beyond),
        }
        let allowed = self.of.most.min(ASSURED + self.shared);
        self.uncounted = allowed.checked_sub(held).ok_or(ResourceTableError::Full)?.saturating_sub(PER_CALL);
        Ok(())
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

    /// An instance that opens and closes what it can.
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
            let opened = self.lease.look(&mut self.table).and_then(|()| self.table.push(()));
            let is_open = opened.is_ok();
            self.held.extend(opened);
            is_open
        }

        fn closes(&mut self) {
            for handle in self.held.drain(..) {
                self.lease.look(&mut self.table).expect("it holds less and less");
                self.table.delete(handle).expect("it is there");
            }
        }

        /// How many it gets before it is ended.
        fn opens_all(&mut self) -> usize {
            while self.opens() {}
            self.held.len()
        }
    }

    /// Who holds so many is ended, or at the next call.
    fn is_about(held: usize, most: usize) -> bool {
        (most..=most + 1).contains(&held)
    }

    // spec: RES-06
    #[test]
    fn each_holds_so_many_and_all_together_so_many_more_than_each_is_assured_of() {
        let handles = Arc::new(Handles::new(1000, 4000));
        let [mut first, mut second, mut third, mut late] = [(); 4].map(|()| Hog::new(&handles));
        assert_eq!(first.opens_all(), 1000);
        assert_eq!(second.opens_all(), 1000);
        // 2,000 are shared: 936 of them each of the two has.
        let held = third.opens_all();
        assert!(is_about(held, ASSURED + 128), "{held}");
        let held = late.opens_all();
        assert!(is_about(held, ASSURED), "{held}");
        drop((first, second, third, late));
        assert_eq!(handles.left.load(Ordering::Relaxed), 2000, "all of it is there again");
    }

    // spec: RES-06
    #[test]
    fn who_has_held_many_has_no_claim_to_them() {
        let handles = Arc::new(Handles::new(1000, 1000));
        let [mut first, mut second] = [(); 2].map(|()| Hog::new(&handles));
        for _ in 0..ASSURED + 500 {
            assert!(first.opens());
        }
        first.closes();
        for _ in 0..ASSURED + 400 {
            assert!(second.opens(), "the first has given back what it doesn't hold: {handles:?}");
        }
        // Its table has room for them still.
        let held = first.opens_all();
        assert!(held <= ASSURED + 101, "{held}");
    }

    #[test]
    fn few_may_come_and_go_without_end() {
        let handles = Arc::new(Handles::new(1000, 0));
        let mut modest = Hog::new(&handles);
        for _ in 0..1000 {
            for _ in 0..ASSURED {
                assert!(modest.opens());
            }
            modest.closes();
        }
    }
}
