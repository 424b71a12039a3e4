//! Short hands for specs and scripts.

use std::time::Duration;

use husk_core::io::Outcome;
use husk_core::spec::{ContainerSpec, Handler, PodMeta, PodSpec, Probe, RestartPolicy};

use super::{Life, Script};

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn meta(name: &str, uid: &str) -> PodMeta {
    PodMeta {
        namespace: "d".into(),
        name: name.into(),
        uid: uid.into(),
        generation: 1,
        is_static: false,
        ..PodMeta::default()
    }
}

pub(crate) fn container(name: &str) -> ContainerSpec {
    ContainerSpec { name: name.into(), image: "i".into(), hash: 1, ..ContainerSpec::default() }
}

pub(crate) fn sidecar(name: &str) -> ContainerSpec {
    ContainerSpec { restart_policy: Some(RestartPolicy::Always), ..container(name) }
}

pub(crate) fn pod(policy: RestartPolicy, init: Vec<ContainerSpec>, apps: Vec<ContainerSpec>) -> PodSpec {
    PodSpec {
        restart_policy: policy,
        init_containers: init,
        containers: apps,
        termination_grace_period_seconds: Some(30),
        ..PodSpec::default()
    }
}

pub(crate) fn probe(handler: Handler) -> Probe {
    Probe {
        handler,
        initial_delay_seconds: 0,
        period_seconds: 10,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace_period_seconds: None,
    }
}

pub(crate) fn exits(after: u64, code: i32) -> Script {
    Script { lives: vec![Life::Exit(secs(after), Outcome::Code(code))], ..Script::default() }
}

/// One life after the other; the last repeats.
pub(crate) fn lives(lives: &[(u64, i32)]) -> Script {
    let lives = lives.iter().map(|(after, code)| Life::Exit(secs(*after), Outcome::Code(*code))).collect();
    Script { lives, ..Script::default() }
}
