//! Many at once: commits, statuses, records and watches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use husk_core::Instant;
use husk_store::{Batch, CommitError, Expect, ObjectKey, Urgency};

use crate::support::{Machine, PODS, body, open, pod, put};

#[test]
fn no_write_is_lost_and_no_watch_misses_one() {
    const THREADS: usize = 4;
    const EACH: usize = 100;
    let machine = Machine::default();
    let store = open(&machine).store;
    let start = store.version();
    store.commit(Instant::ZERO, put("counter", "0", Expect::Absent)).expect("created");
    let done = AtomicBool::new(false);
    let (store, done) = (&store, &done);
    let seen = thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    for i in 0..EACH {
                        store.persist(
                            Instant::from_millis(i as u64),
                            &format!("uid-{thread}"),
                            vec![0, i as u8],
                            Urgency::Soon,
                        );
                        let event = ObjectKey::new("events", "default", &format!("e-{thread}-{i}"));
                        let batch = Batch::new().put(event, "e", vec![], Expect::Absent);
                        store
                            .post(batch.status(pod("counter"), vec![thread as u8, i as u8], Expect::Any))
                            .expect("posted");
                        increment(store);
                    }
                })
            })
            .collect();
        let watcher = scope.spawn(move || {
            let (mut from, mut seen) = (start, Vec::new());
            loop {
                let last = done.load(Ordering::SeqCst);
                let next = store.changes(PODS, from, 7).expect("the history is long enough");
                seen.extend(next.changes);
                if last && next.version == from {
                    return seen;
                }
                from = next.version;
                thread::yield_now();
            }
        });
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        done.store(true, Ordering::SeqCst);
        watcher.join().expect("no panic")
    });
    let total = THREADS * EACH;
    assert_eq!(body(store, "counter"), Some(total.to_string()));
    assert!(seen.windows(2).all(|pair| pair[0].version() < pair[1].version()), "in order, each once");
    assert!(seen.windows(2).all(|pair| pair[1].previous.as_ref() == Some(&pair[0].object)), "none is missed");
    let counts = seen.windows(2).filter(|pair| pair[0].object.body != pair[1].object.body).count();
    assert_eq!((counts, seen.len()), (total, 1 + 2 * total));
}

/// Compare and swap until it works.
fn increment(store: &husk_store::Store) {
    loop {
        let before = store.object(&pod("counter")).expect("there");
        let count: usize = std::str::from_utf8(&before.body).expect("a number").parse().expect("a number");
        match store.commit(Instant::ZERO, put("counter", &(count + 1).to_string(), Expect::Version(before.version))) {
            Ok(_) => return,
            Err(CommitError::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
