//! Persisted records: any bytes are an error or the record of a pod that a node can go on with.

use std::sync::OnceLock;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use husk_core::io::{Action, Input, PodUid};
use husk_core::node::Node;
use husk_core::record::{Interruption, PodRecord};
use husk_core::time::Instant;

use crate::answer::answer;
use crate::life::Life;

/// Says that a record's own bytes follow.
const RAW: u8 = 0xff;
/// Lives that records are taken from.
const LIVES: u32 = 24;
/// More orders than this at one instant are orders without end.
const MOST_ORDERS: usize = 10_000;

/// Three bytes that choose what happened, how the world answers, and a record of a node's life; then changes of that record. Or the
/// bytes of a record, if the third byte is [`RAW`].
pub fn record(bytes: &[u8]) {
    let [choice, answers, base, rest @ ..] = bytes else { return };
    let changed = match *base {
        RAW => rest.to_vec(),
        base => {
            let bases = bases();
            rest.chunks_exact(4).fold(bases[usize::from(base) % bases.len()].clone(), changed)
        }
    };
    let record = match PodRecord::from_bytes(&changed) {
        Ok(record) => record,
        Err(error) => {
            assert!(error.to_string().len() < 1000);
            return;
        }
    };
    let written = record.to_bytes();
    let again = PodRecord::from_bytes(&written).unwrap_or_else(|error| panic!("not read again: {error}"));
    assert_eq!(again.to_bytes(), written, "written differently when read again");
    let after = [Interruption::Handover, Interruption::AgentRestart, Interruption::Reboot][usize::from(choice % 3)];
    let now = if choice & 0x80 == 0 { record.saved_at() } else { Instant::from_secs(1_000) };
    live_on(record, now, after, *answers);
}

/// Records from lives that are the same each time. They are made and not stored, so that they are always of this version.
fn bases() -> &'static [Vec<u8>] {
    static BASES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    BASES.get_or_init(|| {
        let drawn = |seed: u32| -> Vec<u8> {
            let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
            std::iter::successors(Some(seed), next).skip(1).map(|state| (state >> 24) as u8).take(1500).collect()
        };
        let lives = (0..LIVES).filter_map(|seed| Life::arbitrary(&mut Unstructured::new(&drawn(seed))).ok());
        lives.flat_map(crate::node::records).collect()
    })
}

/// Where, what, and two bytes for it.
fn changed(mut bytes: Vec<u8>, change: &[u8]) -> Vec<u8> {
    let [at, what, low, value] = *change else { return bytes };
    // The version stays, or nothing of the rest would be read.
    let at = 1 + (usize::from(at) << 3 | usize::from(low & 7)) % bytes.len().max(2);
    if at >= bytes.len() {
        return bytes;
    }
    match what % 6 {
        0 => bytes[at] = value,
        1 => bytes[at] ^= 1 << (value % 8),
        2 => drop(bytes.remove(at)),
        3 => bytes.insert(at, value),
        4 => bytes.truncate(at),
        _ => bytes[at] = bytes[at].wrapping_add(value),
    }
    bytes
}

/// Gives a node the answers that it wants, and lets time pass, for a while; then the pod is deleted.
fn live_on(record: PodRecord, mut now: Instant, after: Interruption, answers: u8) {
    let uid = record.uid().clone();
    let mut node = Node::default();
    node.handle(now, Input::Restored { record: Box::new(record), after });
    for step in 0..40_u32 {
        for order in orders(&mut node) {
            // An answer that nobody waits for changes nothing; it must do no harm either.
            let well = answers.rotate_left(step) & 1 == 0;
            if let Some(input) = answer(order, well) {
                node.handle(now, input);
            }
        }
        if step % 10 == 0 {
            look_at(&node, &uid);
        }
        match step {
            10 => node.handle(now, Input::NodeChanged { state: Box::default() }),
            30 => node.handle(now, Input::DeleteRequested { pod: uid.clone(), grace_seconds: Some(5) }),
            _ => {}
        }
        orders(&mut node);
        if let Some(wake) = node.next_wake() {
            assert!(wake > now, "something is due and isn't done");
            now = wake.min(now + Duration::from_secs(1_000));
            node.advance(now);
        }
    }
}

fn orders(node: &mut Node) -> Vec<Action> {
    let orders: Vec<_> = std::iter::from_fn(|| node.poll_action()).take(MOST_ORDERS).collect();
    assert!(orders.len() < MOST_ORDERS, "orders without end");
    orders
}

fn look_at(node: &Node, uid: &PodUid) {
    if let Some(record) = node.record(uid) {
        let bytes = record.to_bytes();
        let read = PodRecord::from_bytes(&bytes).unwrap_or_else(|error| panic!("its own record: {error}"));
        assert_eq!(read.to_bytes(), bytes);
    }
    if let Some(status) = node.status(uid) {
        let _ = husk_api::status_object(status, &husk_api::Wall(jiff::Timestamp::UNIX_EPOCH));
    }
}
