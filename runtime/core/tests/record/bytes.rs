//! Any bytes: an error, or a record that a node can go on with. Never a panic, never an endless loop.

use std::collections::BTreeMap;
use std::time::Duration;

use husk_core::io::{Action, Hook, Input, Outcome, ProbeOutcome};
use husk_core::record::{Interruption, PodRecord};
use husk_core::spec::RestartPolicy::{Always, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, PodSpec};
use husk_core::{Instant, Node};
use proptest::prelude::*;

use crate::interrupted::restart_all;
use crate::world::{Life, OnSignal, Script, World, container, exits, pod, probe, secs, sidecar};
use crate::{app, with_inits};

/// Pods that have something of everything that a record holds.
fn eventful() -> [(PodSpec, Vec<(&'static str, Script)>); 4] {
    let probed = ContainerSpec {
        liveness_probe: Some(probe(Handler::Exec)),
        readiness_probe: Some(probe(Handler::HttpGet)),
        startup_probe: Some(probe(Handler::TcpSocket)),
        post_start: Some(Handler::Exec),
        pre_stop: Some(Handler::Sleep(7)),
        ..container("a0")
    };
    let slow_hooks: BTreeMap<_, _> =
        [(Hook::PostStart, (secs(3), Ok(()))), (Hook::PreStop, (secs(5), Err("broken".into())))].into();
    let stubborn = Script { hooks: slow_hooks, on_signal: OnSignal::Ignores, ..Script::default() };
    let asks = Script { lives: vec![Life::Exit(secs(10), Outcome::Code(42)), Life::Forever], ..Script::default() };
    let ephemeral = PodSpec { ephemeral_containers: vec![container("e0")], ..with_inits() };
    [
        (
            pod(Always, vec![container("i0"), sidecar("s0")], vec![probed, container("a1")]),
            vec![("i0", exits(4, 0)), ("a0", stubborn.clone()), ("s0", stubborn), ("a1", exits(3, 1))],
        ),
        (restart_all(), vec![("i0", exits(2, 0)), ("a0", asks)]),
        (ephemeral, vec![("i0", Script { image_failures: 2, ..exits(2, 1) })]),
        (PodSpec { active_deadline_seconds: Some(50), ..app(OnFailure) }, vec![("a0", exits(1, 1))]),
    ]
}

/// Bytes of a valid record, from somewhere in such a pod's life.
fn record() -> impl Strategy<Value = Vec<u8>> {
    (0..4_usize, 0..60_000_u32, prop::option::of(0..30_000_u32)).prop_map(|(which, millis, deleted)| {
        let seconds = |millis: u32| f64::from(millis) / 1000.0;
        let (spec, scripts) = eventful().into_iter().nth(which).expect("one of them");
        let mut world = World::with(spec, &scripts);
        world.teardown_delay = secs(2);
        if let Some(before) = deleted.filter(|before| *before < millis) {
            world.run_until(seconds(millis - before));
            world.delete(None);
        }
        world.run_until(seconds(millis));
        world.node.record(&world.uid).map_or_else(Vec::new, |record| record.to_bytes())
    })
}

#[derive(Clone, Debug)]
enum Damage {
    Set(usize, u8),
    Flip(usize, u32),
    Remove(usize),
    Insert(usize, u8),
    CutOff(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<usize>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (at(), 0..8_u32).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => at().prop_map(Damage::Remove),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        1 => at().prop_map(Damage::CutOff),
    ]
}

fn damaged(mut bytes: Vec<u8>, all: &[Damage]) -> Vec<u8> {
    for damage in all.iter().filter(|_| !bytes.is_empty()).cloned().collect::<Vec<_>>() {
        // The version stays, or nothing of the rest would be read.
        let at = |at: usize| 1 + at % bytes.len();
        match damage {
            Damage::Set(place, byte) => {
                let place = at(place).min(bytes.len() - 1);
                bytes[place] = byte;
            }
            Damage::Flip(place, bit) => {
                let place = at(place).min(bytes.len() - 1);
                bytes[place] ^= 1 << bit;
            }
            Damage::Remove(place) => {
                let place = at(place);
                if place < bytes.len() {
                    bytes.remove(place);
                }
            }
            Damage::Insert(place, byte) => bytes.insert(at(place), byte),
            Damage::CutOff(place) => bytes.truncate(at(place)),
        }
        if bytes.len() < 2 {
            break;
        }
    }
    bytes
}

/// If it is a record it is encoded the same again and again, and a node goes on with it.
fn check(bytes: &[u8]) {
    let Ok(record) = PodRecord::from_bytes(bytes) else { return };
    let again = record.to_bytes();
    let same = PodRecord::from_bytes(&again).expect("what was encoded is a record");
    assert_eq!(same.to_bytes(), again);
    for after in [Interruption::Handover, Interruption::AgentRestart, Interruption::Reboot] {
        live_on(record.clone(), after);
    }
}

/// Gives a node every answer that it wants, and lets time pass, for a while; then the pod is deleted.
fn live_on(record: PodRecord, after: Interruption) {
    let uid = record.uid().clone();
    let mut now = Instant::from_secs(1100);
    let mut node = Node::default();
    node.handle(now, Input::Restored { record: Box::new(record), after });
    for step in 0..60 {
        let orders: Vec<_> = std::iter::from_fn(|| node.poll_action()).take(10_000).collect();
        assert!(orders.len() < 10_000, "orders without end");
        for answer in orders.into_iter().filter_map(answer) {
            node.handle(now, answer);
        }
        if step == 40 {
            node.handle(now, Input::DeleteRequested { pod: uid.clone(), grace_seconds: Some(5) });
        }
        let Some(wake) = node.next_wake() else { continue };
        now = now.max(wake).min(now + Duration::from_secs(1000));
        node.advance(now);
    }
}

fn answer(order: Action) -> Option<Input> {
    let message = String::new;
    Some(match order {
        Action::SetUp { pod, attempt } => Input::SandboxReady { pod, attempt, ips: vec!["127.1.2.3".into()] },
        Action::PullImage { instance } => Input::ImageReady { instance, image_id: "sha256:1".into(), pulled: None },
        Action::Start { instance } => {
            let id = format!("{}-{}", instance.container, instance.attempt);
            Input::Started { instance, id }
        }
        Action::Signal { instance, .. } => Input::Exited { instance, outcome: Outcome::Signal(15), message: message() },
        Action::Kill { instance } => Input::Exited { instance, outcome: Outcome::Signal(9), message: message() },
        Action::RunProbe { instance, kind, run, .. } => {
            Input::ProbeResult { instance, kind, run, result: ProbeOutcome::Failure, message: message() }
        }
        Action::RunHook { instance, hook } => Input::HookDone { instance, hook, result: Ok(()) },
        Action::Teardown { pod, attempt } => Input::TornDown { pod, attempt },
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
        check(&[&[1], &*bytes].concat());
    }

    #[test]
    fn damaged_records(bytes in record(), damages in prop::collection::vec(damage(), 0..4)) {
        check(&damaged(bytes, &damages));
    }
}
