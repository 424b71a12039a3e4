//! The pods of a node, by uid.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::io::PodUid;
use crate::pod::Pod;

/// The pods of a node, by uid.
///
/// Each is on its own on the heap: a tree's leaves are half empty.
#[derive(Debug, Default)]
pub(super) struct Pods {
    all: BTreeMap<PodUid, Box<Pod>>,
    /// How often a pod was taken out to be looked at.
    #[cfg(test)]
    looks: core::cell::Cell<u64>,
}

impl Pods {
    pub(super) fn get(&self, uid: &PodUid) -> Option<&Pod> {
        self.count();
        self.all.get(uid).map(|pod| &**pod)
    }

    pub(super) fn get_mut(&mut self, uid: &PodUid) -> Option<&mut Pod> {
        self.count();
        self.all.get_mut(uid).map(|pod| &mut **pod)
    }

    pub(super) fn contains(&self, uid: &PodUid) -> bool {
        self.all.contains_key(uid)
    }

    pub(super) fn insert(&mut self, pod: Box<Pod>) {
        self.all.insert(pod.uid.clone(), pod);
    }

    pub(super) fn remove(&mut self, uid: &PodUid) -> Option<Box<Pod>> {
        self.all.remove(uid)
    }

    /// All of them: for what is about the whole node, and not for what happens to one pod.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Pod> + Clone {
        self.all.values().map(|pod| {
            self.count();
            &**pod
        })
    }

    fn count(&self) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::ToOwned;
    use std::boxed::Box;

    use super::super::Node;
    use crate::admission::NodeState;
    use crate::io::Input;
    use crate::quantity::{Notation, Quantity};
    use crate::tests_fleet::{EVENTS, Fleet};

    fn looks(node: &Node) -> u64 {
        node.pods.looks.get()
    }

    #[test]
    fn an_event_looks_at_the_pod_that_it_is_about_and_no_other() {
        let [few, many] = [3, 1000].map(|idle| {
            let mut fleet = Fleet::new(idle);
            EVENTS.map(|event| {
                let before = looks(&fleet.node);
                (event.happen)(&mut fleet);
                (event.name, looks(&fleet.node) - before)
            })
        });
        assert_eq!(few, many);
        for (name, looks) in few {
            // Each order and each answer is a look or a few: nobody else's pods.
            assert!(looks <= 60, "{name}: {looks}");
        }
    }

    /// A node with a place for each that runs, and so many who wait for one.
    fn full(waiting: usize) -> Fleet {
        let mut fleet = Fleet::new(100);
        has_places(&mut fleet, 101);
        for n in 0..waiting {
            fleet.idle_pod(100 + n);
        }
        fleet
    }

    fn has_places(fleet: &mut Fleet, count: i64) {
        let allocatable = [("pods".to_owned(), Quantity::new(count, Notation::Decimal))].into();
        let state = Box::new(NodeState { allocatable: Some(allocatable), ..NodeState::default() });
        fleet.node.handle(fleet.now, Input::NodeChanged { state });
    }

    fn running(fleet: &Fleet) -> i64 {
        fleet.node.used()["pods"].value()
    }

    #[test]
    fn a_pod_that_waits_is_looked_at_only_when_there_may_be_room() {
        let [without, with] = [0, 1].map(|waiting| {
            let mut fleet = full(waiting);
            assert_eq!(running(&fleet), 101);
            let events = EVENTS.map(|event| {
                let before = looks(&fleet.node);
                (event.happen)(&mut fleet);
                (event.name, looks(&fleet.node) - before)
            });
            assert_eq!(running(&fleet), 101, "it still waits");
            let before = looks(&fleet.node);
            has_places(&mut fleet, 102);
            (events, looks(&fleet.node) - before, running(&fleet))
        });
        assert_eq!(without.0, with.0);
        assert!(without.1 < with.1, "{} looks, {} with one that waits", without.1, with.1);
        assert_eq!((without.2, with.2), (101, 102));
    }
}
