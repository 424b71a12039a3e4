//! API objects: versions, compare and swap, lists, watches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use husk_core::Instant;
use husk_store::{
    Batch, ChangeKind, CommitError, Conflict, Expect, InvalidWrite, Limits, ObjectKey, Options, Scope, Store,
    WatchError,
};

use crate::support::{Machine, PODS, body, open, options, pod, put, with_limits};

fn conflict(result: Result<husk_store::Committed, CommitError>) -> Conflict {
    match result {
        Err(CommitError::Conflict(conflict)) => conflict,
        other => panic!("{other:?}"),
    }
}

#[test]
fn objects_are_created_replaced_and_deleted_as_expected_or_not_at_all() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let commit = |batch| store.commit(Instant::ZERO, batch);
    assert_eq!(conflict(commit(put("web", "1", Expect::Present))), Conflict::NotFound(pod("web")));
    assert_eq!(conflict(commit(put("web", "1", Expect::Version(7)))), Conflict::NotFound(pod("web")));
    let first = commit(put("web", "1", Expect::Absent)).expect("created").objects[0].version;
    assert_eq!(conflict(commit(put("web", "2", Expect::Absent))), Conflict::Exists(pod("web")));
    let second = commit(put("web", "2", Expect::Version(first))).expect("replaced").objects[0].version;
    assert!(second > first);
    let late = conflict(commit(put("web", "3", Expect::Version(first))));
    assert_eq!(late, Conflict::Version { key: pod("web"), expected: first, found: second });
    let same = commit(put("web", "2", Expect::Any)).expect("no change");
    assert_eq!((same.version, same.objects[0].version), (second, second), "what changes nothing has no new version");

    // All or nothing, and each write sees those before it.
    let both = put("a", "1", Expect::Absent).put(pod("web"), "u", b"3".to_vec(), Expect::Absent);
    assert_eq!(conflict(commit(both)), Conflict::Exists(pod("web")));
    assert_eq!((store.object(&pod("a")), store.version()), (None, second));
    let again = put("a", "1", Expect::Absent)
        .put(pod("a"), "u", b"2".to_vec(), Expect::Present)
        .delete(pod("a"), Expect::Present);
    let again = commit(again).expect("all three");
    assert_eq!((store.object(&pod("a")), again.version), (None, second + 3));

    assert!(commit(Batch::new().delete(pod("a"), Expect::Any)).is_ok());
    assert_eq!(conflict(commit(Batch::new().delete(pod("a"), Expect::Present))), Conflict::NotFound(pod("a")));
    let gone = commit(Batch::new().delete(pod("web"), Expect::Version(second))).expect("deleted");
    assert_eq!((&*gone.objects[0].body, gone.objects[0].version), (&b"2"[..], gone.version));
}

#[test]
fn lists_are_of_a_resource_or_a_namespace() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let keys = [
        ("pods", "b", "x"),
        ("pods", "a", "y"),
        ("pods", "a", "x"),
        ("pods", "ab", "x"),
        ("podsy", "a", "x"),
        ("nodes", "", "n"),
    ];
    for (resource, namespace, name) in keys {
        let batch = Batch::new().put(ObjectKey::new(resource, namespace, name), "u", b"{}".to_vec(), Expect::Absent);
        store.commit(Instant::ZERO, batch).expect("created");
    }
    let list = |resource, namespace| {
        let list = store.list(Scope { resource, namespace });
        assert_eq!(list.version, store.version());
        list.objects.iter().map(|object| object.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list("pods", None), ["pods/a/x", "pods/a/y", "pods/ab/x", "pods/b/x"]);
    assert_eq!(list("pods", Some("a")), ["pods/a/x", "pods/a/y"]);
    assert_eq!(list("nodes", None), ["nodes/n"]);
    assert_eq!(list("nodes", Some("")), ["nodes/n"]);
    assert!(list("configmaps", None).is_empty());
}

#[test]
fn everything_is_there_after_a_restart_and_versions_go_on() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let created = store
        .commit(Instant::ZERO, put("web", "1", Expect::Absent).fact("address/u", b"127.1.0.2".to_vec()))
        .expect("created");
    store.post(Batch::new().status(pod("web"), b"s".to_vec(), Expect::Any)).expect("posted");
    let last = store.version();
    assert!(last > created.version);
    drop(store);

    let store = open(&machine).store;
    assert!(store.version() >= last, "a version is never given twice, not even one of a status");
    let web = store.object(&pod("web")).expect("it is there");
    assert_eq!((&*web.body, &*web.uid, web.version, &web.status), (&b"1"[..], "u", created.version, &None));
    assert_eq!(store.fact("address/u").as_deref(), Some(&b"127.1.0.2"[..]));
    assert_eq!(store.facts("address/").len(), 1);
    assert!(matches!(store.changes(PODS, last, 9), Err(WatchError::Expired { .. })), "the history is of this run");
    let version = store.version();
    store
        .commit(Instant::ZERO, put("web", "2", Expect::Version(created.version)).drop_fact("address/u"))
        .expect("replaced");
    assert_eq!(store.changes(PODS, version, 9).expect("known").changes.len(), 1);
    store.close(Instant::ZERO).expect("closed");

    let store = open(&machine).store;
    assert_eq!((body(&store, "web").as_deref(), store.fact("address/u")), (Some("2"), None));
}

#[test]
fn a_watch_sees_each_change_once_and_in_order() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let start = store.version();
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    let other = Batch::new().put(ObjectKey::new("nodes", "", "n"), "u", b"{}".to_vec(), Expect::Absent);
    store.commit(Instant::ZERO, other).expect("created");
    store.post(Batch::new().status(pod("web"), b"s".to_vec(), Expect::Any)).expect("posted");
    store.commit(Instant::ZERO, Batch::new().delete(pod("web"), Expect::Any)).expect("deleted");

    let mut from = start;
    let mut seen = Vec::new();
    while from != store.version() {
        // One of all changes at a time: those of others take a turn as well.
        let next = store.changes(PODS, from, 1).expect("known");
        assert!(next.version > from && next.changes.len() <= 1);
        seen.extend(next.changes);
        from = next.version;
    }
    let kinds: Vec<_> = seen.iter().map(|change| (change.kind, change.previous.is_some())).collect();
    assert_eq!(kinds, [(ChangeKind::Added, false), (ChangeKind::Modified, true), (ChangeKind::Deleted, true)]);
    assert_eq!(seen[2].object.status.as_deref(), Some(&b"s"[..]), "a deleted object as it was last");
    let elsewhere = Scope { resource: "pods", namespace: Some("other") };
    assert!(store.changes(elsewhere, start, 99).expect("known").changes.is_empty());
    let ahead = store.changes(PODS, from + 1, 99);
    assert!(
        matches!(ahead, Err(WatchError::Ahead { since, current }) if (since, current) == (from + 1, from)),
        "{ahead:?}"
    );
}

#[test]
fn the_history_is_bounded_in_number_and_in_bytes() {
    for limits in [
        Limits { history_changes: 4, ..Limits::default() },
        Limits { history_bytes: 4 * (128 + 1000), ..Limits::default() },
    ] {
        let machine = Machine::default();
        let store = Store::open_on(machine.medium(), with_limits(limits)).expect("open").store;
        let start = store.version();
        for i in 0..9 {
            store.commit(Instant::ZERO, put(&format!("web-{i}"), &"x".repeat(1000), Expect::Absent)).expect("created");
        }
        let last = store.version();
        let old = store.changes(PODS, start, 99);
        assert!(
            matches!(old, Err(WatchError::Expired { since, oldest }) if since == start && oldest == last - 4),
            "{old:?}"
        );
        assert_eq!(store.changes(PODS, last - 4, 99).expect("known").changes.len(), 4);
    }
}

#[test]
fn one_object_that_is_larger_than_the_history_ends_no_watch() {
    let machine = Machine::default();
    let limits = Limits { history_bytes: 1000, ..Limits::default() };
    let store = Store::open_on(machine.medium(), with_limits(limits)).expect("open").store;
    let start = store.version();
    store.commit(Instant::ZERO, put("large", &"x".repeat(5000), Expect::Absent)).expect("created");
    assert_eq!(store.changes(PODS, start, 9).expect("it is the newest").changes.len(), 1);
    let large = store.version();
    store.commit(Instant::ZERO, put("small", "1", Expect::Absent)).expect("created");
    assert!(matches!(store.changes(PODS, start, 9), Err(WatchError::Expired { oldest, .. }) if oldest == large));
}

#[test]
fn who_takes_no_changes_is_as_far_as_before() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let start = store.version();
    let asked = |limit| store.changes(PODS, start, limit).map(|changes| (changes.version, changes.changes.len()));
    assert_eq!(asked(0), Ok((start, 0)));
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    store.commit(Instant::ZERO, put("web", "2", Expect::Present)).expect("changed");
    assert_eq!([asked(0), asked(1), asked(2)], [Ok((start, 0)), Ok((start + 1, 1)), Ok((start + 2, 2))]);
}

#[test]
fn statuses_and_volatile_objects_take_no_disk() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    let operations = machine.operations();
    let event = ObjectKey::new("events", "default", "e");
    let version = store.version();
    for i in 0..100 {
        let batch = Batch::new().status(pod("web"), format!("{i}").into(), Expect::Any);
        store.post(batch.put(event.clone(), "e", format!("{i}").into(), Expect::Any)).expect("posted");
    }
    // With compare and swap, as a client may.
    let seen = store.object(&event).expect("there").version;
    store
        .commit(Instant::ZERO, Batch::new().put(event.clone(), "e", b"x".to_vec(), Expect::Version(seen)))
        .expect("swapped");
    store.commit(Instant::ZERO, Batch::new().status(pod("web"), b"y".to_vec(), Expect::Present)).expect("set");
    assert_eq!((machine.operations(), store.version()), (operations, version + 202));
    assert_eq!(store.next_wake(), None);
    // The same again is no change; what isn't there gets no status.
    store.post(Batch::new().status(pod("web"), b"y".to_vec(), Expect::Any)).expect("posted");
    store.post(Batch::new().status(pod("gone"), b"y".to_vec(), Expect::Any)).expect("posted");
    assert_eq!(store.version(), version + 202);

    let refused = store.post(put("web", "2", Expect::Any));
    assert_eq!(refused, Err(InvalidWrite::NeedsDisk("pods/default/web".into())));
    for batch in [Batch::new().forget("u"), Batch::new().record("u", vec![1]), Batch::new().fact("f", vec![])] {
        assert!(matches!(store.post(batch), Err(InvalidWrite::NeedsDisk(_))));
    }
    drop(store);
    assert_eq!(open(&machine).store.object(&event), None);
}

#[test]
fn who_writes_the_spec_and_who_posts_the_status_do_not_undo_each_other() {
    let machine = Machine::default();
    let store = Arc::new(open(&machine).store);
    let start = store.version();
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    // While the disk works, a status and an event come in.
    let during = Arc::clone(&store);
    let late = ObjectKey::new("events", "default", "e");
    let posted = late.clone();
    machine.on_sync(move || {
        during.post(Batch::new().status(pod("web"), b"running".to_vec(), Expect::Any)).expect("posted");
        during.post(Batch::new().put(posted.clone(), "e", b"{}".to_vec(), Expect::Any)).expect("posted");
        assert_eq!(body(&during, "web").as_deref(), Some("1"), "what isn't durable isn't seen");
    });
    store.commit(Instant::ZERO, put("web", "2", Expect::Present)).expect("replaced");
    let web = store.object(&pod("web")).expect("there");
    assert_eq!((&*web.body, web.status.as_deref()), (&b"2"[..], Some(&b"running"[..])));
    assert!(store.object(&late).is_some());
    let versions: Vec<_> = store.changes(PODS, start, 99).expect("known").changes.iter().map(|c| c.version()).collect();
    assert!(versions.len() == 3 && versions.is_sorted(), "{versions:?}");
    // Another object under the name has nothing of it.
    machine.on_sync(|| {});
    store.commit(Instant::ZERO, Batch::new().put(pod("web"), "u2", b"2".to_vec(), Expect::Present)).expect("replaced");
    store.commit(Instant::ZERO, Batch::new().put(pod("web"), "u3", b"2".to_vec(), Expect::Present)).expect("replaced");
    assert_eq!(store.object(&pod("web")).expect("there").status, None);
}

#[test]
fn whoever_waits_for_changes_is_woken() {
    let machine = Machine::default();
    let woken = Arc::new(AtomicU64::new(0));
    let seen = Arc::new(OnceLock::<u64>::new());
    let (count, last) = (woken.clone(), seen.clone());
    let on_change = Box::new(move |version| {
        count.fetch_add(1, Ordering::Relaxed);
        let _ = last.set(version);
    });
    let store = Store::open_on(machine.medium(), Options { on_change, ..options() }).expect("open").store;
    let committed = store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    assert_eq!(seen.get(), Some(&committed.version));
    let before = woken.load(Ordering::Relaxed);
    store.post(Batch::new().status(pod("web"), b"s".to_vec(), Expect::Any)).expect("posted");
    assert_eq!(woken.load(Ordering::Relaxed), before + 1);
    store.post(Batch::new().status(pod("web"), b"s".to_vec(), Expect::Any)).expect("posted");
    assert_eq!(woken.load(Ordering::Relaxed), before + 1, "nothing changed");
}

#[test]
fn what_no_store_takes_is_refused_by_name() {
    let machine = Machine::default();
    let store = open(&machine).store;
    let key = |name: &str| Batch::new().put(ObjectKey::new("pods", "a", name), "u", vec![], Expect::Any);
    let large = Batch::new().put(pod("web"), "u", vec![0; (3 << 20) + 1], Expect::Any);
    let own = Batch::new().fact("store.boot", vec![]);
    for (batch, says) in [
        (key("a\0b"), "no NUL"),
        (key(""), "1 to 512 bytes"),
        (key(&"x".repeat(513)), "1 to 512 bytes"),
        (large, "pods/default/web has 3145729 bytes, the limit is 3145728"),
        (own, "store.boot: names of facts that begin with `store.`"),
    ] {
        let error = store.commit(Instant::ZERO, batch).expect_err("refused").to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn versions_are_reserved_before_they_run_out() {
    let machine = Machine::default();
    let store = open(&machine).store;
    store.commit(Instant::ZERO, put("web", "1", Expect::Absent)).expect("created");
    let statuses = |from: u32| {
        (from..from + 1000).fold(Batch::new(), |batch, i| batch.status(pod("web"), i.to_le_bytes().into(), Expect::Any))
    };
    let before = store.written().transactions;
    for round in 0..600 {
        store.post(statuses(round * 1000)).expect("posted");
        while let Some(due) = store.next_wake() {
            store.advance(due).expect("written");
        }
    }
    assert_eq!(store.written().transactions - before, 1, "half a million of them cost one transaction");
    let last = store.version();
    machine.boot(1);
    assert!(open(&machine).store.version() >= last);
}
