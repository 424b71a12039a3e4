//! Stores that can't be used: set aside with a reason, never a panic, never without end.

use husk_core::Instant;
use husk_store::{Expect, Opened, Store};

use crate::support::sim::Random;
use crate::support::{Fault, Machine, PODS, body, open, options, put};

/// A store with some content, closed in good order or not.
fn store(closed: bool) -> (Machine, Vec<u8>) {
    let machine = Machine::default();
    let store = open(&machine).store;
    for i in 0..40 {
        let name = format!("web-{i}");
        store
            .commit(Instant::ZERO, put(&name, &name.repeat(60), Expect::Absent).record(&name, vec![0; 900]))
            .expect("created");
    }
    if closed {
        store.close(Instant::ZERO).expect("closed");
    } else {
        std::mem::forget(store);
    }
    machine.boot(0);
    let bytes = machine.store_file().expect("a file");
    (machine, bytes)
}

/// What is asserted of every start, whatever was there: it works, and it is the whole old store or an empty one.
fn start(machine: &Machine) -> Opened {
    let opened = open(machine);
    let objects = opened.store.list(PODS).objects;
    match &opened.set_aside {
        Some(_) => assert!(objects.is_empty() && opened.unreadable.is_empty()),
        None => assert!(objects.iter().all(|object| *object.body == *object.key.name().repeat(60).into_bytes())),
    }
    opened.store.commit(opened.now, put("after", "after".repeat(60).as_str(), Expect::Any)).expect("it can be written");
    opened
}

fn set_aside(bytes: Vec<u8>) -> String {
    let machine = Machine::default();
    machine.replace_store(bytes.clone());
    let opened = start(&machine);
    let aside = opened.set_aside.expect("it is set aside");
    assert_eq!((&*aside.name, &*aside.kept_as), ("store", "corrupt-1"));
    // As it was; only in a database that is well redb has noted that it was open.
    let kept = machine.file("corrupt-1").expect("kept");
    assert!(kept == bytes || kept.starts_with(b"redb") && kept.len() >= bytes.len());
    let message = aside.to_string();
    assert!(message.contains("kept as corrupt-1") && message.contains("static pods run"), "{message}");
    drop(opened.store);
    assert_eq!(open(&machine).set_aside, None);
    aside.why
}

#[test]
fn what_is_no_store_is_set_aside_with_a_reason() {
    let (_, good) = store(true);
    assert_eq!(set_aside(Vec::new()), "it is empty");
    assert_eq!(set_aside(b"red".to_vec()), "it is cut off after 3 bytes");
    assert_eq!(set_aside(vec![0; 100_000]), "its beginning is nothing but zeros");
    assert_eq!(
        set_aside(b"SQLite format 3\0 and so on".to_vec()),
        "it is not a store of Husk's but a file of another kind"
    );
    for len in [9, 100, 320, 4096, good.len() / 2, good.len() - 1] {
        set_aside(good[..len].to_vec());
    }
    let mut zeroed = good.clone();
    zeroed[4096..].fill(0);
    set_aside(zeroed);
    let mut torn = good.clone();
    torn.splice(0..0, *b"x");
    set_aside(torn);
}

#[test]
fn a_database_of_another_application_or_a_newer_agent_is_set_aside() {
    let (_, bytes) = store(true);
    // The names of tables are in the file as they are; so is the format's version. A checksum covers them, so they are changed
    // through redb itself.
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("other.redb");
    let foreign = redb::TableDefinition::<&str, &str>::new("cookies");
    let database = redb::Database::create(&path).expect("created");
    let transaction = database.begin_write().expect("begun");
    transaction.open_table(foreign).expect("opened").insert("a", "b").expect("inserted");
    transaction.commit().expect("committed");
    drop(database);
    assert_eq!(set_aside(std::fs::read(&path).expect("read")), "it is a database of another application");

    let meta = redb::TableDefinition::<&str, &[u8]>::new("husk.meta");
    std::fs::write(&path, &bytes).expect("written");
    for (version, says) in [
        (&[2][..], "it has format version 2, this agent knows 1: it is from a newer one"),
        (&[1, 2][..], "it doesn't say its format version"),
    ] {
        let database = redb::Database::create(&path).expect("opened");
        let transaction = database.begin_write().expect("begun");
        transaction.open_table(meta).expect("opened").insert("store.format", version).expect("inserted");
        transaction.commit().expect("committed");
        drop(database);
        assert_eq!(set_aside(std::fs::read(&path).expect("read")), says);
    }
}

#[test]
fn flipped_bits_and_lost_blocks_are_found_or_do_no_harm() {
    for closed in [true, false] {
        let (machine, good) = store(closed);
        let mut random = Random(7);
        let mut found = 0;
        for round in 0..600 {
            let mut bytes = good.clone();
            match round % 4 {
                // Where it hurts most: the headers.
                0 => bytes[random.below(320)] ^= 1 << random.below(8),
                1 => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
                2 => {
                    let at = random.below(bytes.len());
                    let end = (at + random.below(9000)).min(bytes.len());
                    bytes[at..end].fill([0, 0xff][random.below(2)]);
                }
                _ => {
                    let at = random.below(bytes.len()) / 4096 * 4096;
                    let to = random.below(bytes.len()) / 4096 * 4096;
                    let len = 4096.min(bytes.len() - at.max(to));
                    bytes.copy_within(at..at + len, to);
                }
            }
            machine.replace_store(bytes);
            found += usize::from(start(&machine).set_aside.is_some());
        }
        // Not every byte matters: free pages, the older of the two headers.
        assert!(found > 100, "{found} of 600");
    }
}

#[test]
fn a_disk_that_can_not_be_read_is_damage_too() {
    let (machine, _) = store(true);
    machine.fail(Fault::Read);
    let opened = Store::open_on(machine.medium(), options());
    // The new store is on the same disk; whether that can be read is another matter.
    match opened {
        Ok(opened) => assert!(opened.set_aside.is_some_and(|aside| aside.why.contains("can't be read"))),
        Err(error) => assert!(error.to_string().contains("check the disk"), "{error}"),
    }
}

#[test]
fn versions_of_a_store_begun_anew_are_beyond_those_of_the_old() {
    let (machine, good) = store(true);
    let old = open(&machine).store.version();
    let mut seen = old;
    for round in 1..4_u8 {
        machine.replace_store(good[..100 * usize::from(round)].to_vec());
        let opened = start(&machine);
        assert!(opened.set_aside.is_some() && opened.store.version() > seen + (1 << 30));
        seen = opened.store.version();
        assert_eq!(body(&opened.store, "web-1"), None);
    }
}
