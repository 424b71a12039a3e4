//! How large a file gets.

use husk_core::Instant;
use husk_store::{Batch, Expect};

use crate::support::sim::Random;
use crate::support::{Machine, PODS, open, pod, put};

#[test]
fn a_file_does_not_grow_with_the_number_of_changes() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let mut random = Random(3);
    let mut sizes = Vec::new();
    for i in 0..4000_usize {
        let body = "x".repeat(random.below(4000));
        let batch =
            put(&format!("web-{}", random.below(20)), &body, Expect::Any).record("u", vec![0; random.below(2000)]);
        store.commit(Instant::ZERO, batch).expect("committed");
        if i.is_multiple_of(1000) {
            sizes.push(machine.store_file().expect("a file").len());
        }
    }
    assert!(sizes[3] <= 2 * sizes[1] && sizes[3] < 1 << 20, "{sizes:?}");
}

#[test]
fn a_file_that_is_mostly_empty_is_written_anew_at_the_start() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Any).record("u", vec![0; 10])).expect("committed");
    for i in 0..8 {
        let large = Batch::new().put(pod(&format!("large-{i}")), "u", vec![b'x'; 1 << 20], Expect::Any);
        store.commit(Instant::ZERO, large).expect("committed");
    }
    for i in 0..8 {
        store
            .commit(Instant::ZERO, Batch::new().delete(pod(&format!("large-{i}")), Expect::Present))
            .expect("committed");
    }
    // As if it was killed: nobody closes it.
    std::mem::forget(store);
    machine.boot(1);
    assert!(machine.store_file().expect("a file").len() > 8 << 20);
    let opened = open(&machine);
    assert!(machine.store_file().expect("a file").len() < 1 << 20);
    assert_eq!((opened.store.list(PODS).objects.len(), opened.unreadable.len()), (1, 1));
    drop(opened.store);
    assert_eq!(open(&machine).store.list(PODS).objects.len(), 1);
}
