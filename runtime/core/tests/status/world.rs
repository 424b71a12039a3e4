//! A pod, its containers as the runtime reports them, and the status that is made of it, sync after sync.

use husk_core::api_status::{StartFailure, StatusInput, generate};
use husk_core::conditions;
use husk_core::runtime::{Instance, InstanceState, RuntimeStatus, Sandbox};
use husk_core::spec::{ContainerSpec, Handler, PodMeta, PodSpec, Probe, RestartPolicy};
use husk_core::status::{Condition, ContainerState, ContainerStatus, PodStatus};
use husk_core::status_manager::merge;
use husk_core::time::Instant;

/// What a status is made of, and the last one that was published.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) meta: PodMeta,
    pub(crate) spec: PodSpec,
    pub(crate) runtime: RuntimeStatus,
    pub(crate) status: PodStatus,
    pub(crate) start_failures: Vec<StartFailure>,
    pub(crate) terminal: bool,
    pub(crate) now: Instant,
}

impl World {
    pub(crate) fn new(policy: RestartPolicy, init: &[ContainerSpec], apps: &[&str]) -> Self {
        let spec = PodSpec {
            restart_policy: policy,
            init_containers: init.to_vec(),
            containers: apps.iter().map(|name| container(name)).collect(),
            ..PodSpec::default()
        };
        let runtime = RuntimeStatus {
            sandboxes: vec![Sandbox { ready: true, has_ip: true, ..Sandbox::default() }],
            ..RuntimeStatus::default()
        };
        let meta = PodMeta { generation: 1, ..PodMeta::default() };
        Self { meta, spec, runtime, ..Self::default() }
    }

    /// A new newest instance of a container.
    pub(crate) fn instance(&mut self, name: &str, state: InstanceState) -> &mut Instance {
        let count = self.runtime.of(name).count() as u32;
        let instance = Instance {
            name: name.into(),
            id: format!("{name}-{count}"),
            state,
            restart_count: self.runtime.newest(name).map_or(0, |i| i.restart_count + 1),
            ..Instance::default()
        };
        self.runtime.instances.insert(0, instance);
        &mut self.runtime.instances[0]
    }

    pub(crate) fn run(&mut self, name: &str) {
        self.instance(name, InstanceState::Running);
    }

    /// The newest instance ends.
    pub(crate) fn exit(&mut self, name: &str, code: i32, reason: &'static str) {
        let newest = self.runtime.instances.iter_mut().find(|i| i.name == name).expect("it was started");
        newest.state = InstanceState::Exited;
        newest.exit_code = code;
        newest.reason = reason.into();
    }

    pub(crate) fn hold_back(&mut self, name: &str, reason: &'static str, message: &str) {
        self.start_failures.push(StartFailure {
            container: name.into(),
            reason: reason.into(),
            message: message.into(),
        });
    }

    /// Makes and publishes the status.
    pub(crate) fn sync(&mut self) -> &PodStatus {
        let new = generate(StatusInput {
            meta: &self.meta,
            spec: &self.spec,
            runtime: &self.runtime,
            old: &self.status,
            deleting: false,
            terminal: self.terminal,
            start_failures: &self.start_failures,
            failed_by_node: None,
            now: self.now,
        });
        let running = self.runtime.instances.iter().any(|i| i.state == InstanceState::Running);
        self.status = merge(&self.status, new, running, self.now);
        &self.status
    }

    pub(crate) fn container(&self, name: &str) -> &ContainerStatus {
        let PodStatus { init_container_statuses, container_statuses, .. } = &self.status;
        let mut all = init_container_statuses.iter().chain(container_statuses);
        all.find(|status| status.name == name).expect("every container has a status")
    }

    pub(crate) fn waiting_reason(&self, name: &str) -> &str {
        match &self.container(name).state {
            ContainerState::Waiting { reason, .. } => reason,
            other => panic!("{name} is not waiting but {other:?}"),
        }
    }

    pub(crate) fn condition(&self, kind: &str) -> &Condition {
        conditions::find(&self.status.conditions, kind).expect("it is set")
    }
}

pub(crate) fn container(name: &str) -> ContainerSpec {
    ContainerSpec { name: name.into(), ..ContainerSpec::default() }
}

pub(crate) fn sidecar(name: &str) -> ContainerSpec {
    ContainerSpec { restart_policy: Some(RestartPolicy::Always), ..container(name) }
}

pub(crate) fn probe() -> Option<Probe> {
    Some(Probe {
        handler: Handler::Exec,
        initial_delay_seconds: 0,
        period_seconds: 10,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace_period_seconds: None,
    })
}
