//! Pod records: when they are written, and how they come back.

use std::sync::{Arc, Mutex};

use husk_core::record::{Interruption, RecordError};
use husk_core::{Instant, PodRecord};
use husk_store::{Batch, Expect, Limits, Options, Store, Urgency, Written};

use crate::support::pods::Pods;
use crate::support::{Fault, Machine, boot, open, options, put, secs, with_limits};

const WINDOW: u64 = 250;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Transactions since then.
fn since(store: &Store, before: Written) -> u64 {
    store.written().transactions - before.transactions
}

fn records(machine: &Machine) -> Vec<(String, Vec<u8>)> {
    open(machine).unreadable.into_iter().map(|record| (record.uid, record.bytes)).collect()
}

#[test]
fn records_of_a_window_are_written_once_each_and_together() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let before = store.written();
    assert_eq!(store.next_wake(), None);
    for i in 0..100 {
        store.persist(at(1000 + i), &format!("pod-{}", i % 10), vec![0, i as u8], Urgency::Soon);
        store.advance(at(1000 + i)).expect("nothing due");
    }
    assert_eq!((store.next_wake(), since(&store, before)), (Some(at(1000 + WINDOW)), 0));
    store.advance(at(1000 + WINDOW)).expect("written");
    assert_eq!((store.next_wake(), since(&store, before)), (None, 1));
    store.forget(at(2000), "pod-3");
    store.forget(at(2000), "never-there");
    store.advance(store.next_wake().expect("due")).expect("written");
    drop(store);
    let kept: Vec<_> = (90..100).filter(|i| *i != 93).map(|i| (format!("pod-{}", i % 10), vec![0, i])).collect();
    assert_eq!(records(&machine), kept);
}

#[test]
fn a_commit_takes_with_it_what_waits() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let before = store.written();
    store.persist(at(1000), "a", vec![0, 1], Urgency::Soon);
    store.persist(at(1010), "b", vec![0, 1], Urgency::Soon);
    assert_eq!(store.next_wake(), Some(at(1000 + WINDOW)));
    store.advance(at(1000 + WINDOW)).expect("written");
    assert_eq!((store.next_wake(), since(&store, before)), (None, 1));
    // And what it writes itself waits no more.
    store.persist(at(2000), "a", vec![0, 2], Urgency::Soon);
    store.persist(at(2000), "b", vec![0, 2], Urgency::Soon);
    store.commit(at(2001), Batch::new().record("b", vec![0, 3]).fact("f", vec![])).expect("committed");
    assert_eq!((store.next_wake(), since(&store, before)), (None, 2));
    drop(store);
    assert_eq!(records(&machine), [("a".into(), vec![0, 2]), ("b".into(), vec![0, 3])]);
}

#[test]
fn what_is_only_nice_to_have_is_written_once_a_minute_at_most() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let before = store.written();
    // A condition that flaps each second for an hour, and nobody else.
    for second in 0..3600 {
        store.persist(at(second * 1000), "a", vec![0, second as u8], Urgency::Calm);
        while let Some(due) = store.next_wake().filter(|due| *due < at(second * 1000 + 1000)) {
            store.advance(due).expect("written");
        }
    }
    let written = since(&store, before);
    assert!((58..=61).contains(&written), "{written} transactions");
    // A restart doesn't wait for that, and the minute counts from it.
    store.flush(at(3_599_999)).expect("written");
    store.persist(at(3_600_000), "a", vec![0, 1], Urgency::Calm);
    assert!(!store.is_pending("a"), "nobody waits for that");
    store.persist(at(3_600_100), "a", vec![0, 2], Urgency::Soon);
    assert_eq!(store.next_wake(), Some(at(3_600_100 + WINDOW)));
    store.advance(at(3_600_100 + WINDOW)).expect("written");
    store.persist(at(3_601_000), "a", vec![0, 3], Urgency::Calm);
    assert_eq!(store.next_wake(), Some(at(3_660_100 + WINDOW)));
    // A commit in between is no reason to write it more often; the end of the agent is.
    store.commit(at(3_602_000), Batch::new().fact("f", vec![])).expect("committed");
    assert_eq!(store.next_wake(), Some(at(3_660_100 + WINDOW)));
    store.close(at(3_603_000)).expect("closed");
    assert_eq!(records(&machine), [("a".into(), vec![0, 3])]);
}

#[test]
fn who_writes_too_much_writes_more_seldom() {
    let machine = Machine::default();
    let limits = Limits { bytes_per_hour: 1 << 20, ..Limits::default() };
    let store = Store::open_on(machine.medium(), with_limits(limits.clone())).expect("open").store;
    let before = store.written();
    let mut now = Instant::ZERO;
    let mut gaps = Vec::new();
    for i in 0..200_u8 {
        store.persist(now, "a", vec![0, i], Urgency::Soon);
        let due = store.next_wake().expect("due");
        gaps.push(due.saturating_since(now));
        store.advance(due).expect("written");
        now = due;
    }
    assert_eq!((gaps[0], gaps[199]), (limits.window, limits.slow_window));
    // It never stops.
    assert_eq!(since(&store, before), 200);
    // An hour of rest, and it is as before.
    let later = now + secs(3600);
    store.advance(now).expect("written");
    store.persist(later, "a", vec![0, 10], Urgency::Soon);
    assert_eq!(store.next_wake(), Some(later + limits.window));
}

#[test]
fn a_disk_that_refuses_is_asked_again_more_and_more_seldom() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.persist(at(1000), "a", vec![0, 1], Urgency::Soon);
    machine.fail(Fault::Full);
    let mut waits = Vec::new();
    for _ in 0..9 {
        let due = store.next_wake().expect("it stays pending");
        let error = store.advance(due).expect_err("the disk is full");
        assert!(error.is_full() && error.to_string().contains("free space on this disk"), "{error}");
        waits.push(store.next_wake().expect("again").saturating_since(due).as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    machine.fail(None);
    store.advance(store.next_wake().expect("again")).expect("written");
    assert_eq!(store.next_wake(), None);
    drop(store);
    assert_eq!(records(&machine), [("a".into(), vec![0, 1])]);
}

#[test]
fn a_record_that_changes_while_it_is_written_is_written_again() {
    let machine = Machine::default();
    let store = Arc::new(open(&machine).store);
    store.persist(at(1000), "a", vec![0, 1], Urgency::Soon);
    let during = Arc::clone(&store);
    machine.on_sync(move || {
        during.persist(at(1300), "a", vec![0, 3], Urgency::Soon);
        during.forget(at(1300), "b");
    });
    store.commit(at(1250), Batch::new().record("a", vec![0, 2]).record("b", vec![0, 2])).expect("committed");
    machine.on_sync(|| {});
    assert_eq!(store.next_wake(), Some(at(1300 + WINDOW)));
    store.advance(at(1300 + WINDOW)).expect("written");
    drop(store);
    assert_eq!(records(&machine), [("a".into(), vec![0, 3])]);
}

#[test]
fn what_is_being_written_is_pending_until_it_is() {
    let machine = Machine::default();
    let store = Arc::new(open(&machine).store);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (during, saw) = (Arc::clone(&store), Arc::clone(&seen));
    machine.on_sync(move || saw.lock().expect("no panic").push(during.is_pending("a")));
    store.persist(at(1000), "a", vec![0, 1], Urgency::Soon);
    store.advance(at(1000 + WINDOW)).expect("written");
    assert!(!store.is_pending("a"));
    // The same with a transaction for somebody else.
    store.persist(at(2000), "a", vec![0, 2], Urgency::Soon);
    store.commit(at(2001), put("x", "1", Expect::Any)).expect("committed");
    assert!(!store.is_pending("a") && !store.is_refused());
    machine.on_sync(|| {});
    let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
    assert!(seen.len() >= 2 && seen.iter().all(|pending| *pending), "{seen:?}");
    machine.fail(Fault::Full);
    store.persist(at(3000), "a", vec![0, 3], Urgency::Soon);
    store.advance(at(3000 + WINDOW)).expect_err("refused");
    assert!(store.is_pending("a") && store.is_refused());
}

#[test]
fn pods_come_back_in_their_order_and_time_goes_on() {
    let machine = Machine::default();
    let opened = open(&machine);
    assert_eq!((opened.interruption, opened.now), (None, Instant::from_secs(100)), "time begins with the boot");
    let mut pods = Pods::new(opened.now, None);
    ["3", "1", "2"].into_iter().for_each(|name| pods.apply(name));
    let end = Instant::from_secs(5000);
    pods.run_until(end, &opened.store);
    assert!(opened.records.is_empty());
    drop(opened.store);

    // The agent starts again, 7,900 seconds after the boot.
    let reopen =
        |id, uptime| Store::open_on(machine.medium(), Options { boot: boot(id, uptime), ..options() }).expect("open");
    let again = reopen("boot-1", 7900);
    let names = |records: &[PodRecord]| {
        let uid = |record: &PodRecord| record.uid().0.chars().last().expect("a uid");
        records.iter().map(uid).collect::<String>()
    };
    assert_eq!((names(&again.records).as_str(), again.unreadable.len()), ("312", 0));
    assert_eq!((again.interruption, again.now), (Some(Interruption::AgentRestart), Instant::from_secs(7900)));
    let mut again_pods = Pods::restored(again.now, None, again.records, Interruption::AgentRestart);
    again_pods.run_until(Instant::from_secs(8000), &again.store);
    let restarts: Vec<_> = again_pods.restarts().into_values().collect();
    assert_eq!(restarts, [1, 1, 1], "each started again, none was lost");
    drop(again.store);

    // Without power: at least the time since this boot has passed since the last that is known.
    let rebooted = reopen("boot-2", 30);
    assert_eq!(rebooted.interruption, Some(Interruption::Reboot));
    let now = rebooted.now;
    assert!(now > Instant::from_secs(7900 + 30) && now < Instant::from_secs(8000), "{now:?}");
    drop(rebooted.store);
    let later = reopen("boot-2", 50);
    assert_eq!((later.interruption, later.now), (Some(Interruption::AgentRestart), now + secs(20)));
    drop(later.store);
    // A boot without a name can't be told from another.
    assert_eq!(reopen("", 60).interruption, Some(Interruption::Reboot));
    assert_eq!(reopen("", 70).interruption, Some(Interruption::Reboot));
}

#[test]
fn a_record_that_is_none_does_not_hide_the_others() {
    let machine = Machine::default();
    let opened = open(&machine);
    let mut pods = Pods::new(opened.now, None);
    pods.apply("1");
    pods.run_until(Instant::from_secs(200), &opened.store);
    opened.store.commit(pods.now, Batch::new().record("u", vec![99, 1, 2])).expect("committed");
    drop(opened.store);
    let again = open(&machine);
    assert_eq!(again.records.len(), 1);
    let [unreadable] = &again.unreadable[..] else { panic!("{:?}", again.unreadable) };
    assert_eq!((&*unreadable.uid, &unreadable.error), ("u", &RecordError::Version(99)));
    again.store.forget(again.now, "u");
    again.store.close(again.now).expect("closed");
    assert!(open(&machine).unreadable.is_empty());
}

#[test]
fn an_idle_pod_writes_nothing_and_one_that_crashes_writes_little() {
    let hour = |life: Option<u64>| {
        let machine = Machine::default();
        let opened = open(&machine);
        let mut pods = Pods::new(opened.now, life.map(secs));
        pods.apply("1");
        // After an hour the back-off is at its longest.
        pods.run_until(opened.now + secs(3600), &opened.store);
        let before = opened.store.written();
        pods.run_until(opened.now + secs(7200), &opened.store);
        let after = opened.store.written();
        (after.transactions - before.transactions, after.flash_bytes - before.flash_bytes)
    };
    assert_eq!(hour(None), (0, 0));
    let (transactions, bytes) = hour(Some(1));
    assert!((12..60).contains(&transactions), "{transactions} transactions");
    assert!(bytes < 2 << 20, "{bytes} bytes");
}

#[test]
fn a_commit_that_fails_leaves_records_as_they_were() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.persist(at(1000), "a", vec![0, 1], Urgency::Soon);
    machine.fail(Fault::Sync);
    let failed = store.commit(at(1001), put("web", "1", Expect::Any).record("a", vec![0, 2]));
    assert!(failed.is_err());
    machine.fail(None);
    store.flush(at(1002)).expect("written");
    drop(store);
    assert_eq!(records(&machine), [("a".into(), vec![0, 1])]);
}
