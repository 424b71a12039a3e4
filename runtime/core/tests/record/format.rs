//! The record itself: when it is persisted, and what bytes are one.

use husk_core::Instant;
use husk_core::io::{ProbeOutcome, Urgency};
use husk_core::record::Interruption::Reboot;
use husk_core::record::{PodRecord, RecordError};
use husk_core::spec::RestartPolicy::Always;
use husk_core::spec::{ContainerSpec, Handler, ProbeKind};

use crate::world::{Script, World, container, exits, pod, probe, secs, sidecar};
use crate::*;

#[test]
fn an_idle_pod_is_not_persisted() {
    let spec = pod(
        Always,
        vec![sidecar("s0")],
        vec![ContainerSpec { liveness_probe: Some(probe(Handler::HttpGet)), ..ready_probe() }, container("a1")],
    );
    let flapping = (ProbeKind::Liveness, secs(500), secs(511), ProbeOutcome::Failure);
    let mut world = World::with(spec, &[("a0", Script { probes: vec![flapping], ..Script::default() })]);
    world.run_until(60.0);
    // Taken, its sandbox, three starts, its readiness: not more than a few.
    assert!(world.persisted.len() <= 10, "{:?}", world.persisted);
    let before = world.persisted.len();
    world.run_until(86_400.0);
    assert!(world.probes("a0", ProbeKind::Liveness).len() > 8000);
    assert_eq!(world.persisted.len(), before, "a probe below its threshold changes nothing");
    world.delete(None);
    world.run_for(10.0);
    assert!(world.persisted.len() > before && world.forgotten.contains(&world.uid));
}

#[test]
fn readiness_that_flaps_can_wait_and_a_restart_cannot() {
    let fails = |from, to| (ProbeKind::Readiness, secs(from), secs(to), ProbeOutcome::Failure);
    let probes = vec![fails(60, 120), fails(180, 240)];
    let script = Script { probes, ..exits(300, 1) };
    let mut world = World::with(pod(Always, vec![], vec![ready_probe()]), &[("a0", script)]);
    world.run_until(50.0);
    let settled = world.persisted.len();
    world.run_until(290.0);
    let flaps: Vec<_> = world.persisted[settled..].iter().map(|(_, urgency)| *urgency).collect();
    assert_eq!(flaps, [Urgency::Calm; 4], "not ready, ready, and once more");
    let settled = world.persisted.len();
    world.run_until(310.0);
    assert_eq!(world.persisted[settled].1, Urgency::Soon);
}

#[test]
fn a_record_has_a_version_and_nothing_behind_it() {
    let mut world = World::with(app(Always), &[]);
    world.run_until(10.0);
    let record = world.node.record(&world.uid).expect("a record");
    let bytes = record.to_bytes();
    assert!(bytes.len() < 1024, "{} bytes", bytes.len());
    assert_eq!(PodRecord::from_bytes(&bytes), Ok(record.clone()));
    assert_eq!((record.uid(), record.saved_at()), (&world.uid, Instant::from_secs(1010)));
    assert_eq!(PodRecord::from_bytes(&[]), Err(RecordError::Empty));
    assert_eq!(PodRecord::from_bytes(&[0]), Err(RecordError::Version(0)));
    assert_eq!(PodRecord::from_bytes(&bytes[..bytes.len() - 1]), Err(RecordError::Malformed));
    assert_eq!(PodRecord::from_bytes(&[&*bytes, b"x"].concat()), Err(RecordError::TrailingBytes(1)));
    let message = RecordError::Version(9).to_string();
    assert!(message.contains("version 9") && message.contains("delete it"), "{message}");
}

#[test]
fn it_does_not_grow_with_every_instance() {
    let mut world = World::with(app(Always), &[("a0", exits(700, 0))]);
    let size = |world: &World| world.node.record(&world.uid).expect("a record").to_bytes().len();
    world.run_until(5.0 * 700.0 + 10.0);
    let early = size(&world);
    world.run_until(45.0 * 700.0 + 10.0);
    assert_eq!(world.container("a0").restart_count, 45);
    assert!(size(&world) < early + 64, "{} bytes, and {early} of them long ago", size(&world));
}

#[test]
fn a_pod_that_is_known_is_not_restored_over() {
    let mut world = World::with(app(Always), &[]);
    let record = Box::new(world.node.record(&world.uid).expect("a record"));
    world.run_until(10.0);
    let status = world.status();
    world.input(husk_core::Input::Restored { record, after: Reboot });
    assert_eq!(world.status(), status);
}
