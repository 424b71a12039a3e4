//! Stores of earlier versions. Their files are never made again: what a device has written once has to be read for ever.

use std::io::Read;

use flate2::read::GzDecoder;
use husk_core::record::Interruption;
use husk_store::{Batch, Expect, ObjectKey, Options, Store};

use crate::support::{Machine, boot, options, secs};

fn fixture(gz: &[u8]) -> Machine {
    let mut bytes = Vec::new();
    GzDecoder::new(gz).read_to_end(&mut bytes).expect("a whole file");
    let machine = Machine::default();
    machine.replace_store(bytes);
    machine
}

#[test]
fn version_1_is_read() {
    let machine = fixture(include_bytes!("fixtures/v1.redb.gz"));
    let opened = Store::open_on(machine.medium(), Options { boot: boot("boot-1", 9000), ..options() }).expect("open");
    assert_eq!(opened.set_aside, None);
    let store = opened.store;

    let web = store.object(&ObjectKey::new("pods", "default", "web")).expect("a pod");
    assert_eq!((&*web.uid, web.version, &web.status), ("6f1c0f5e-7b1d-4d0c-9d5b-000000000001", 3, &None));
    assert_eq!(&*web.body, br#"{"kind":"Pod","metadata":{"name":"web"},"revision":2}"#);
    let node = store.object(&ObjectKey::new("nodes", "", "husk")).expect("a node");
    assert_eq!((&*node.uid, node.version, &*node.body), ("n", 2, &br#"{"kind":"Node"}"#[..]));
    let large = store.object(&ObjectKey::new("configmaps", "default", "large")).expect("a ConfigMap");
    assert!(large.body.len() == 100_000 && large.body.iter().all(|byte| *byte == b'x'));
    assert_eq!(store.fact("address/6f1c").as_deref(), Some(&b"127.1.0.2"[..]));

    // Two records: one of a pod of core's version 1, one that never was any.
    let uids = opened.records.iter().map(|record| record.uid().to_string());
    let mut uids: Vec<_> = uids.chain(opened.unreadable.iter().map(|record| record.uid.clone())).collect();
    uids.sort();
    assert_eq!(uids, ["6f1c0f5e-7b1d-4d0c-9d5b-000000000001", "raw"]);
    let raw = opened.unreadable.iter().find(|record| record.uid == "raw").expect("unreadable");
    assert_eq!(raw.bytes, [0, 1, 2, 3]);

    // The same boot: its clock goes on.
    assert_eq!(opened.interruption, Some(Interruption::AgentRestart));
    assert_eq!(opened.now.since_epoch(), secs(9000));
    assert!(store.version() > 4);
    let replaced = Batch::new().put(node.key.clone(), "n", b"{}".to_vec(), Expect::Version(2));
    store.commit(opened.now, replaced).expect("it can be written");
}
