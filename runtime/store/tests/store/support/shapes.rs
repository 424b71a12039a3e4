//! Pods of some shapes, and what their guests do.

use std::time::Duration;

use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodMeta, PodSpec, RestartAction, RestartPolicy, RestartRule,
};

use super::secs;

/// So many shapes there are.
pub(crate) const COUNT: usize = 6;

/// The one whose containers all begin again when one of them says so.
pub(crate) const RESTARTS_ALL: usize = 4;

/// What a guest does.
pub(crate) struct Guest {
    /// Then it ends by itself.
    pub(crate) lives: Option<Duration>,
    pub(crate) code: i32,
    /// After a signal; if not, it has to be killed.
    pub(crate) stops_in: Option<Duration>,
}

pub(crate) fn guest(container: &str, attempt: u32) -> Guest {
    let ends = |seconds, code| Guest { lives: Some(secs(seconds)), code, stops_in: Some(secs(1)) };
    match container {
        "setup" => ends(3, 0),
        // At the third try.
        "flaky-setup" => ends(2, i32::from(!attempt.is_multiple_of(3))),
        "crasher" => ends(17, 1),
        "job" => ends(40, 0),
        "trigger" => ends(25, 42),
        "deaf" => Guest { lives: None, code: 0, stops_in: None },
        _ => Guest { lives: None, code: 0, stops_in: Some(secs(5)) },
    }
}

pub(crate) fn pod(name: &str, uid: &str, shape: usize) -> (PodMeta, PodSpec) {
    let meta = PodMeta {
        namespace: "default".into(),
        name: name.into(),
        uid: uid.into(),
        generation: 1,
        ..PodMeta::default()
    };
    let (restart_policy, init, apps): (_, &[&str], &[&str]) = match shape {
        0 => (RestartPolicy::Always, &["setup"], &["crasher"]),
        1 => (RestartPolicy::Always, &["setup", "sidecar", "flaky-setup"], &["server", "deaf"]),
        2 => (RestartPolicy::OnFailure, &["sidecar"], &["job"]),
        3 => (RestartPolicy::Never, &["setup"], &["job", "crasher"]),
        RESTARTS_ALL => (RestartPolicy::Always, &["setup"], &["trigger", "server"]),
        _ => (RestartPolicy::Always, &[], &["hooked"]),
    };
    let spec = PodSpec {
        restart_policy,
        init_containers: init.iter().map(|name| container(name)).collect(),
        containers: apps.iter().map(|name| container(name)).collect(),
        termination_grace_period_seconds: Some(30),
        ..PodSpec::default()
    };
    (meta, spec)
}

fn container(name: &str) -> ContainerSpec {
    let rule =
        RestartRule { action: RestartAction::RestartAllContainers, operator: ExitCodeOperator::In, values: vec![42] };
    let own = ContainerSpec { name: name.into(), image: "app:1".into(), hash: 1, ..ContainerSpec::default() };
    match name {
        "sidecar" => ContainerSpec { restart_policy: Some(RestartPolicy::Always), ..own },
        "trigger" => {
            ContainerSpec { restart_policy: Some(RestartPolicy::Never), restart_policy_rules: vec![rule], ..own }
        }
        "hooked" => ContainerSpec { post_start: Some(Handler::HttpGet), pre_stop: Some(Handler::HttpGet), ..own },
        _ => own,
    }
}
