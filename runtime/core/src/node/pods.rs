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
    use super::super::Node;
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

    #[test]
    fn a_pod_that_waits_is_looked_at_only_when_there_may_be_room() {
        let mut fleet = Fleet::new(100);
        let before = looks(&fleet.node);
        fleet.idle_pod(100);
        let one = looks(&fleet.node) - before;
        fleet.idle_pod(101);
        assert_eq!(looks(&fleet.node) - before, 2 * one);
    }
}
