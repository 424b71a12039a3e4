//! Disks that refuse: what is in memory stands, and all of it is on the disk once it is well again.

use husk_core::Instant;
use husk_store::{Batch, CommitError, Expect, OpenError, Options, Store, Urgency};

use crate::support::{Fault, Machine, PODS, body, boot, open, options, pod, put};

fn refused(result: Result<husk_store::Committed, CommitError>) -> husk_store::DiskError {
    match result {
        Err(CommitError::Disk(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refused_commit_changes_nothing_and_can_be_tried_again() {
    for (fault, says) in [
        (Fault::Full, "free space on this disk"),
        (Fault::ReadOnly, "mount it writable"),
        (Fault::Sync, "check the disk"),
        (Fault::Read, ""),
    ] {
        let machine = Machine::default();
        let store = open(&machine).store;
        store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
        let version = store.version();
        machine.fail(fault);
        let second = || put("web", "2", Expect::Version(version)).put(pod("new"), "n", b"1".to_vec(), Expect::Absent);
        for _ in 0..3 {
            if fault == Fault::Read {
                break;
            }
            let error = refused(store.commit(Instant::ZERO, second())).to_string();
            assert!(error.contains("store: can't write the agent's state") && error.contains(says), "{error}");
            assert_eq!((body(&store, "web").as_deref(), store.version()), (Some("1"), version));
            assert_eq!(store.list(PODS).objects.len(), 1);
        }
        // What needs no disk goes on.
        store.post(Batch::new().status(pod("web"), b"s".to_vec(), Expect::Present)).expect("posted");
        let version = store.version();
        machine.fail(None);
        store.commit(Instant::ZERO, put("web", "3", Expect::Version(version))).expect("committed");
        machine.boot(1);
        let store = open(&machine).store;
        assert_eq!((body(&store, "web").as_deref(), body(&store, "new")), (Some("3"), None), "{fault:?}");
    }
}

#[test]
fn nothing_is_trusted_that_a_failed_sync_left_in_the_cache() {
    // A later sync says nothing of pages that an earlier one lost: who goes on with the same file loses them with the power.
    for seed in 0..50 {
        let machine = Machine::default();
        let store = open(&machine).store;
        for i in 0..5 {
            store.commit(Instant::ZERO, put(&format!("web-{i}"), &"x".repeat(700), Expect::Absent)).expect("created");
        }
        machine.fail(Fault::Sync);
        let _ = refused(store.commit(Instant::ZERO, put("lost", "1", Expect::Absent)));
        machine.fail(None);
        store.commit(Instant::ZERO, put("late", "1", Expect::Absent)).expect("committed");
        machine.boot(seed);
        let opened = open(&machine);
        assert_eq!((opened.set_aside, opened.store.list(PODS).objects.len()), (None, 6));
    }
}

#[test]
fn an_agent_starts_on_a_full_disk_and_writes_when_there_is_space() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent).record("u", vec![0])).expect("created");
    drop(store);
    machine.boot(3);
    machine.fail(Fault::Full);
    let opened = open(&machine);
    let (store, now) = (opened.store, opened.now);
    assert!(opened.degraded.is_some_and(|error| error.is_full()));
    assert_eq!((body(&store, "web").as_deref(), opened.unreadable.len()), (Some("1"), 1));
    let _ = refused(store.commit(now, put("web", "2", Expect::Present)));
    store.persist(now, "u", vec![0, 1], Urgency::Soon);
    let due = store.next_wake().expect("it is tried again");
    assert!(due > now);
    assert!(store.advance(due).is_err());
    machine.fail(None);
    store.advance(store.next_wake().expect("again")).expect("written");
    assert_eq!(store.next_wake(), None);
    store.commit(now, put("web", "3", Expect::Present)).expect("committed");
    drop(store);
    let opened = open(&machine);
    assert_eq!((body(&opened.store, "web").as_deref(), &*opened.unreadable[0].bytes), (Some("3"), &[0, 1][..]));

    // Also if there never was a store.
    let machine = Machine::default();
    machine.fail(Fault::Full);
    let store = open(&machine).store;
    machine.fail(None);
    store.advance(store.next_wake().expect("it is tried again")).expect("written");
    assert!(machine.store_file().is_some());
}

#[test]
fn what_mends_the_store_is_one_transaction() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent).record("u", vec![0])).expect("created");
    machine.fail(Fault::Sync);
    let _ = refused(store.commit(Instant::ZERO, put("web", "2", Expect::Present)));
    machine.fail(None);
    let before = store.written().transactions;
    let batch = Batch::new().delete(pod("web"), Expect::Present).put(pod("new"), "n", b"1".to_vec(), Expect::Absent);
    store.commit(Instant::ZERO, batch.forget("u")).expect("committed");
    assert_eq!(store.written().transactions, before + 1);
    machine.boot(1);
    let opened = open(&machine);
    assert_eq!((body(&opened.store, "web"), body(&opened.store, "new").as_deref()), (None, Some("1")));
    assert_eq!(opened.unreadable, [], "the record is forgotten");
}

#[test]
fn no_start_gives_versions_that_one_on_a_full_disk_gave() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    drop(store);
    let mut given = std::collections::BTreeSet::new();
    let mut start = |id: &str, uptime: u64, fault: Option<Fault>| {
        machine.fail(fault);
        let opened = Store::open_on(machine.medium(), Options::new(boot(id, uptime))).expect("it opens");
        assert_eq!(opened.degraded.is_some(), fault.is_some());
        for i in 0..100 {
            let status = format!("{id} {uptime} {i}").into_bytes();
            opened.store.post(Batch::new().status(pod("web"), status, Expect::Present)).expect("posted");
            assert!(given.insert(opened.store.version()), "{id} {uptime}: {} twice", opened.store.version());
        }
        opened.store
    };
    // The board's power goes in between where the boot is another; nothing could be written then.
    for (id, uptime) in [("boot-1", 100), ("boot-1", 101), ("boot-2", 5), ("boot-2", 100), ("boot-3", 5)] {
        start(id, uptime, Some(Fault::Full));
    }
    start("boot-3", 6, None);
    // Space comes while it runs.
    let store = start("boot-4", 5, Some(Fault::Full));
    machine.fail(None);
    store.advance(store.next_wake().expect("it is tried again")).expect("written");
    drop(store);
    start("boot-5", 5, None);
}

#[test]
fn a_disk_that_can_not_be_written_is_named_at_the_start() {
    for (fault, says) in
        [(Fault::ReadOnly, "mount it writable or use another --data-dir"), (Fault::Sync, "check the disk")]
    {
        for before in [false, true] {
            let machine = Machine::default();
            if before {
                drop(open(&machine));
            }
            machine.fail(fault);
            let error = Store::open_on(machine.medium(), options()).expect_err("refused");
            assert!(matches!(error, OpenError::Io { .. }) && error.to_string().contains(says), "{error}");
            machine.fail(None);
            open(&machine);
        }
    }
}
