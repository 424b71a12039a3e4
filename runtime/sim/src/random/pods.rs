//! Pods of all shapes.

use std::collections::BTreeMap;

use husk_core::placement::Placement;
use husk_core::quantity::Quantity;
use husk_core::scheduling::{Toleration, TolerationOperator};
use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodSpec, Probe, ProbeKind, PullPolicy, ResizeRestartPolicy, ResourceList,
    Resources, RestartAction, RestartPolicy, RestartRule, SYSTEM_CRITICAL_PRIORITY,
};

use super::dice::Dice;

const POLICIES: [RestartPolicy; 4] =
    [RestartPolicy::Always, RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never];

/// Amounts that are asked for: cpu, memory.
pub(super) const CPU: [&str; 4] = ["100m", "250m", "500m", "1"];
pub(super) const MEMORY: [&str; 4] = ["8Mi", "16Mi", "32Mi", "64Mi"];

/// Exit codes that mean something somewhere.
pub(super) const CODES: [i32; 8] = [0, 0, 1, 2, 42, 137, 143, 255];

impl Dice {
    /// A pod.
    pub(super) fn pod(&mut self) -> PodSpec {
        let inits = *self.pick(&[0, 0, 0, 1, 1, 2, 3, 4]);
        let apps = *self.pick(&[1, 1, 1, 2, 2, 3, 5]);
        let init_containers: Vec<_> = (0..inits).map(|n| self.init_container(n)).collect();
        let containers: Vec<_> = (0..apps).map(|n| self.app(n)).collect();
        let spec = PodSpec {
            restart_policy: *self.pick(&POLICIES),
            init_containers,
            containers,
            ephemeral_containers: Vec::new(),
            termination_grace_period_seconds: Some(*self.pick(&[0, 1, 2, 5, 5, 20, 30, 30, 60])),
            active_deadline_seconds: self.maybe(10, &[30, 300, 1200]),
            readiness_gates: self.maybe(15, &["example.com/gate"]).into_iter().map(String::from).collect(),
            priority: self.maybe(3, &[-5, 10, 100, SYSTEM_CRITICAL_PRIORITY]),
            resources: None,
            overhead: ResourceList::new(),
            host_network: false,
            os: Some("linux".into()),
            placement: self.placement(),
        };
        as_validated(spec)
    }

    fn placement(&mut self) -> Placement {
        let tolerations = match self.below(8) {
            0 => vec![None],
            1 => vec![Some(20)],
            2 => vec![Some(0), Some(300)],
            _ => Vec::new(),
        };
        let toleration = |seconds| Toleration {
            key: "broken".into(),
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect: "NoExecute".into(),
            seconds,
        };
        Placement {
            tolerations: tolerations.into_iter().map(toleration).collect(),
            gates: self.maybe(25, &["example.com/wait"]).into_iter().map(String::from).collect(),
            group: self.maybe(12, &["g0", "g1"]).map(String::from),
            never_preempts: self.one_in(6),
            ..Placement::default()
        }
    }

    fn init_container(&mut self, n: u32) -> ContainerSpec {
        if self.one_in(2) {
            let sidecar = ContainerSpec { restart_policy: Some(RestartPolicy::Always), ..self.container("s", n) };
            return self.with_probes_and_hooks(sidecar);
        }
        let policy = self.maybe(6, &[RestartPolicy::Never, RestartPolicy::OnFailure]);
        let container = ContainerSpec { restart_policy: policy, ..self.container("i", n) };
        self.with_rules(container)
    }

    fn app(&mut self, n: u32) -> ContainerSpec {
        let policy = self.maybe(5, &POLICIES);
        let container = ContainerSpec { restart_policy: policy, ..self.container("a", n) };
        let container = self.with_rules(container);
        self.with_probes_and_hooks(container)
    }

    fn container(&mut self, letter: &str, n: u32) -> ContainerSpec {
        ContainerSpec {
            name: format!("{letter}{n}"),
            image: format!("image-{}", self.below(6)),
            image_pull_policy: *self.pick(&[PullPolicy::IfNotPresent, PullPolicy::IfNotPresent, PullPolicy::Always]),
            hash: 1,
            resources: self.resources(),
            ..ContainerSpec::default()
        }
    }

    fn resources(&mut self) -> Resources {
        let list = |cpu: usize, memory: usize| {
            let amounts = [("cpu", CPU[cpu]), ("memory", MEMORY[memory])];
            let parsed =
                amounts.into_iter().filter_map(|(name, amount)| Some((name.into(), Quantity::parse(amount).ok()?)));
            parsed.collect::<ResourceList>()
        };
        let place = usize::try_from(self.below(4)).unwrap_or_default();
        match self.below(5) {
            0 | 1 => Resources::default(),
            2 => Resources { requests: list(place, place), limits: list(place, place) },
            3 => Resources { requests: list(place, place), limits: list(3, 3) },
            _ => Resources { requests: list(place, place), limits: ResourceList::new() },
        }
    }

    fn with_rules(&mut self, container: ContainerSpec) -> ContainerSpec {
        if !self.one_in(5) {
            return container;
        }
        let mut rule = || {
            let action = match self.one_in(2) {
                true => RestartAction::Restart,
                false => RestartAction::RestartAllContainers,
            };
            let operator = *self.pick(&[ExitCodeOperator::In, ExitCodeOperator::In, ExitCodeOperator::NotIn]);
            RestartRule { action, operator, values: vec![*self.pick(&CODES), 7] }
        };
        let rules = vec![rule(), rule()];
        let policy = container.restart_policy.filter(|policy| *policy != RestartPolicy::Always);
        ContainerSpec {
            restart_policy: policy.or(Some(RestartPolicy::Never)),
            restart_policy_rules: rules,
            ..container
        }
    }

    /// What regular init containers can't have.
    fn with_probes_and_hooks(&mut self, container: ContainerSpec) -> ContainerSpec {
        let resize_policy = match (container.resources == Resources::default(), self.one_in(4)) {
            (false, true) => BTreeMap::from([("memory".to_owned(), ResizeRestartPolicy::RestartContainer)]),
            _ => BTreeMap::new(),
        };
        ContainerSpec {
            resize_policy,
            liveness_probe: self.probe(4, ProbeKind::Liveness),
            readiness_probe: self.probe(3, ProbeKind::Readiness),
            startup_probe: self.probe(5, ProbeKind::Startup),
            post_start: self.handler(6),
            pre_stop: self.handler(4),
            stop_signal: self.maybe(12, &["SIGUSR1", "SIGINT", "SIGKILL"]).map(String::from),
            ..container
        }
    }

    fn handler(&mut self, times: u64) -> Option<Handler> {
        self.maybe(times, &[Handler::Exec, Handler::HttpGet, Handler::Sleep(1), Handler::Sleep(5), Handler::Sleep(40)])
    }

    fn probe(&mut self, times: u64, kind: ProbeKind) -> Option<Probe> {
        if !self.one_in(times) {
            return None;
        }
        let readiness = kind == ProbeKind::Readiness;
        Some(Probe {
            handler: *self.pick(&[Handler::Exec, Handler::HttpGet, Handler::TcpSocket]),
            initial_delay_seconds: *self.pick(&[0, 0, 3, 15]),
            period_seconds: *self.pick(&[1, 2, 5, 10, 10, 30]),
            timeout_seconds: *self.pick(&[1, 1, 2, 10]),
            success_threshold: if readiness { *self.pick(&[1, 1, 2, 3]) } else { 1 },
            failure_threshold: *self.pick(&[1, 2, 3, 3]),
            termination_grace_period_seconds: if readiness { None } else { self.maybe(4, &[1, 5, 20]) },
        })
    }
}

/// A hook may not sleep longer than the pod has grace, and a pod that never restarts can't be restarted for a resize.
fn as_validated(mut spec: PodSpec) -> PodSpec {
    let grace = spec.termination_grace_period_seconds.unwrap_or_default();
    for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
        if spec.restart_policy == RestartPolicy::Never {
            container.resize_policy.clear();
        }
        for hook in [&mut container.post_start, &mut container.pre_stop] {
            if let Some(Handler::Sleep(seconds)) = hook
                && i64::from(*seconds) >= grace
            {
                *hook = Some(Handler::Exec);
            }
        }
    }
    spec
}
