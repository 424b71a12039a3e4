//! Pods that a fuzzer draws: all fields within what validation lets through.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use husk_core::placement::{PodTerm, SpreadConstraint};
use husk_core::quantity::Quantity;
use husk_core::scheduling::{Toleration, TolerationOperator};
use husk_core::selector::{Labels, Selector};
use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodSpec, Probe, ResizeRestartPolicy, ResourceList, Resources,
    RestartAction, RestartPolicy, RestartRule,
};

/// The longest grace of anything.
pub(crate) const MOST_GRACE_SECONDS: u8 = 60;
/// The most containers of one list.
const MOST_CONTAINERS: usize = 3;

/// A pod.
#[derive(Clone, Debug, Arbitrary)]
pub(crate) struct PodShape {
    policy: Policy,
    init: Vec<ContainerShape>,
    apps: Vec<ContainerShape>,
    ephemeral: Option<ContainerShape>,
    grace: Option<u8>,
    deadline: Option<u8>,
    priority: Option<Priority>,
    amounts: Option<AmountsShape>,
    gate: bool,
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Policy {
    Always,
    OnFailure,
    Never,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Priority {
    Low,
    Zero,
    High,
    Critical,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Place {
    AwayFromItself,
    WithItself,
    Tolerant(u8),
    Spread,
    Group(bool),
    NeverPreempts,
}

#[derive(Clone, Debug, Arbitrary)]
struct ContainerShape {
    policy: Option<Policy>,
    rules: Vec<RuleShape>,
    probes: [Option<ProbeShape>; 3],
    post_start: Option<HookShape>,
    pre_stop: Option<HookShape>,
    amounts: Option<AmountsShape>,
    restarts_to_resize: bool,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct RuleShape {
    all: bool,
    not: bool,
    code: u8,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct ProbeShape {
    delay: u8,
    period: u8,
    timeout: u8,
    successes: u8,
    failures: u8,
    grace: Option<u8>,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum HookShape {
    Exec,
    Sleep(u8),
}

#[derive(Clone, Copy, Debug, Arbitrary)]
pub(crate) struct AmountsShape {
    cpu: u8,
    memory: u8,
    limited: bool,
}

/// A change of a pod that may be made.
#[derive(Clone, Debug, Arbitrary)]
pub(crate) enum Change {
    /// Other resources of a container.
    Resize(u8, AmountsShape),
    /// Another image.
    Image(u8),
    /// An ephemeral container more.
    Debug,
    /// Another deadline.
    Deadline(u8),
    /// No scheduling gates any more.
    Ungate,
    /// Nothing.
    Same,
}

impl PodShape {
    pub(crate) fn spec(&self) -> PodSpec {
        let named = |letter: char, shapes: &[ContainerShape]| -> Vec<ContainerSpec> {
            let numbered = shapes.iter().take(MOST_CONTAINERS).enumerate();
            numbered.map(|(n, shape)| shape.spec(format!("{letter}{n}"), letter == 'i')).collect()
        };
        let mut containers = named('a', &self.apps);
        if containers.is_empty() {
            containers.push(ContainerSpec {
                name: "a0".into(),
                image: "i".into(),
                hash: 1,
                ..ContainerSpec::default()
            });
        }
        let mut spec = PodSpec {
            restart_policy: self.policy.into(),
            init_containers: named('i', &self.init),
            containers,
            ephemeral_containers: self.ephemeral.iter().map(|_| ephemeral(0)).collect(),
            termination_grace_period_seconds: self.grace.map(grace),
            active_deadline_seconds: self.deadline.map(|seconds| i64::from(seconds) + 1),
            readiness_gates: if self.gate { vec!["example.com/gate".into()] } else { Vec::new() },
            priority: self.priority.map(Into::into),
            resources: self.amounts.map(|amounts| amounts.resources()),
            ..PodSpec::default()
        };
        let term = || PodTerm {
            topology_key: "zone".into(),
            selector: Selector::parse("app=x").unwrap_or_default(),
            ..PodTerm::default()
        };
        let placement = &mut spec.placement;
        match self.place {
            None => {}
            Some(Place::AwayFromItself) => placement.anti_affinity.push(term()),
            Some(Place::WithItself) => placement.affinity.push(term()),
            Some(Place::Tolerant(seconds)) => placement.tolerations.push(Toleration {
                key: "k".into(),
                operator: TolerationOperator::Exists,
                seconds: (seconds > 100).then(|| i64::from(seconds)),
                ..Toleration::default()
            }),
            Some(Place::Spread) => placement.spread.push(SpreadConstraint {
                topology_key: "zone".into(),
                selector: term().selector,
                max_skew: 1,
                min_domains: 2,
            }),
            Some(Place::Group(gated)) => {
                placement.group = Some("g".into());
                placement.gates = if gated { vec!["example.com/wait".into()] } else { Vec::new() };
            }
            Some(Place::NeverPreempts) => placement.never_preempts = true,
        }
        spec
    }

    pub(crate) fn labels(&self) -> Labels {
        match self.place {
            Some(Place::AwayFromItself | Place::WithItself | Place::Spread) => {
                BTreeMap::from([("app".into(), "x".into())])
            }
            _ => Labels::new(),
        }
    }
}

impl ContainerShape {
    fn spec(&self, name: String, init: bool) -> ContainerSpec {
        // Only Always makes sense for an init container without rules.
        let policy = self.policy.filter(|policy| !init || matches!(policy, Policy::Always) || !self.rules.is_empty());
        let is_sidecar = init && matches!(policy, Some(Policy::Always));
        let lives_on = !init || is_sidecar;
        // Rules need a policy of the container's own, and sidecars have none.
        let rules = self.rules.iter().take(2).filter(|_| policy.is_some() && !is_sidecar);
        let [liveness, readiness, startup] =
            self.probes.map(|probe| probe.filter(|_| lives_on).map(|probe| (probe, probe.spec())));
        let plain =
            |probe: Option<(ProbeShape, Probe)>| probe.map(|(_, probe)| Probe { success_threshold: 1, ..probe });
        ContainerSpec {
            name,
            image: "i".into(),
            hash: 1,
            restart_policy: policy.map(Into::into),
            restart_policy_rules: rules.map(|rule| rule.spec()).collect(),
            liveness_probe: plain(liveness),
            readiness_probe: readiness.map(|(_, probe)| Probe { termination_grace_period_seconds: None, ..probe }),
            startup_probe: plain(startup),
            post_start: self.post_start.filter(|_| lives_on).map(HookShape::handler),
            pre_stop: self.pre_stop.filter(|_| lives_on).map(HookShape::handler),
            resources: self.amounts.map(|amounts| amounts.resources()).unwrap_or_default(),
            resize_policy: if self.restarts_to_resize {
                BTreeMap::from([("memory".into(), ResizeRestartPolicy::RestartContainer)])
            } else {
                BTreeMap::new()
            },
            ..ContainerSpec::default()
        }
    }
}

impl Change {
    pub(crate) fn make(&self, spec: &mut PodSpec) {
        match self {
            Self::Resize(which, amounts) => {
                let count = spec.containers.len();
                spec.containers[usize::from(*which) % count].resources = amounts.resources();
            }
            Self::Image(which) => {
                let count = spec.containers.len();
                let container = &mut spec.containers[usize::from(*which) % count];
                container.hash += 1;
                container.image = format!("i:{}", container.hash);
            }
            Self::Debug if spec.ephemeral_containers.len() < MOST_CONTAINERS => {
                spec.ephemeral_containers.push(ephemeral(spec.ephemeral_containers.len()));
            }
            Self::Deadline(seconds) => {
                // It may be set, and lowered.
                let seconds = i64::from(*seconds) + 1;
                let least = spec.active_deadline_seconds.map_or(seconds, |before| before.min(seconds));
                spec.active_deadline_seconds = Some(least);
            }
            Self::Ungate => spec.placement.gates.clear(),
            Self::Debug | Self::Same => {}
        }
    }
}

fn ephemeral(n: usize) -> ContainerSpec {
    ContainerSpec { name: format!("e{n}"), image: "i".into(), hash: 1, ..ContainerSpec::default() }
}

/// At least a second: a pod's own grace of 0 counts as 1.
pub(crate) fn grace(drawn: u8) -> i64 {
    i64::from(drawn % MOST_GRACE_SECONDS) + 1
}

impl From<Policy> for RestartPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Always => Self::Always,
            Policy::OnFailure => Self::OnFailure,
            Policy::Never => Self::Never,
        }
    }
}

impl From<Priority> for i32 {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Low => -10,
            Priority::Zero => 0,
            Priority::High => 10,
            Priority::Critical => husk_core::spec::SYSTEM_CRITICAL_PRIORITY,
        }
    }
}

impl RuleShape {
    fn spec(self) -> RestartRule {
        RestartRule {
            action: if self.all { RestartAction::RestartAllContainers } else { RestartAction::Restart },
            operator: if self.not { ExitCodeOperator::NotIn } else { ExitCodeOperator::In },
            values: vec![i32::from(self.code)],
        }
    }
}

impl ProbeShape {
    fn spec(self) -> Probe {
        let up_to = |drawn: u8, most: u8| u32::from(drawn % most) + 1;
        Probe {
            handler: Handler::Exec,
            initial_delay_seconds: u32::from(self.delay % 20),
            period_seconds: up_to(self.period, 15),
            timeout_seconds: up_to(self.timeout, 5),
            success_threshold: up_to(self.successes, 3),
            failure_threshold: up_to(self.failures, 4),
            termination_grace_period_seconds: self.grace.map(grace),
        }
    }
}

impl HookShape {
    fn handler(self) -> Handler {
        match self {
            Self::Exec => Handler::Exec,
            Self::Sleep(seconds) => Handler::Sleep(u32::from(seconds % 40)),
        }
    }
}

impl AmountsShape {
    fn resources(self) -> Resources {
        let list = |cpu: u8, memory: u8| -> ResourceList {
            let amounts = [
                ("cpu", Quantity::from_milli(i64::from(cpu) * 20)),
                ("memory", Quantity::from_milli(i64::from(memory) * 1000)),
            ];
            amounts.into_iter().filter(|(_, amount)| !amount.is_zero()).map(|(name, a)| (name.into(), a)).collect()
        };
        let requests = list(self.cpu, self.memory);
        let limits = if self.limited {
            list(self.cpu.saturating_add(1), self.memory.saturating_add(1))
        } else {
            ResourceList::new()
        };
        Resources { requests, limits }
    }
}
