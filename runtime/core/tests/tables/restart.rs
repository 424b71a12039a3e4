//! Will a container that ended run again? Every policy of the pod × of the container × rules × end × cause × kind.

use husk_core::actions::{PodView, compute, restart_all_wanted};
use husk_core::runtime::{Instance, InstanceState, RuntimeStatus, Sandbox, StopReason};
use husk_core::spec::{ContainerSpec, ExitCodeOperator, PodSpec, RestartAction, RestartPolicy, RestartRule};
use husk_core::status::PodStatus;

use super::{POLICIES, container, holds, rows};

/// The first row that holds for a case decides.
///
/// `policy` is the one in force: the container's own, or else the pod's ("Container restart policy and rules": overrides).
/// `rule` is the action of the rule that matches the exit code, if any.
const TABLE: &str = "
kind        | cause         | policy    | rule    | code | then  | says
*           | interrupted   | *         | *       | *    | again | Nothing of the pod's asked for its end, so its policy isn't asked, nor its code (TERM-11)
sidecar     | *             | *         | all     | *    | all   | Restart All Containers: a watcher sidecar may exit with such a code
sidecar     | *             | *         | *       | *    | again | Sidecars ignore the pod's policy, theirs is Always (SIDE-02)
init        | exit          | *         | all     | !0   | all   | Restart All Containers: init containers may ask for it too
init        | exit          | *         | *       | 0    | no    | Init containers: exit 0 is the next one's turn (INIT-01)
app         | *             | *         | all     | *    | all   | Restart All Containers overrides every policy (RESTART-09)
app init    | *             | *         | again   | *    | again | Rules are evaluated whenever the container exits; a match is carried out (RESTART-08)
app         | changed       | *         | none    | *    | again | A changed definition restarts whatever the policy (POD-08)
app         | resize        | *         | none    | *    | again | resizePolicy RestartContainer restarts whatever the policy (RES-11)
app         | *             | Never     | none    | *    | no    | Never: a terminated container is not restarted
app         | exit          | Always    | none    | *    | again | Always: after any termination
app         | exit          | OnFailure | none    | 0    | no    | OnFailure: only if it exits with an error
app         | exit          | OnFailure | none    | !0   | again | OnFailure: only if it exits with an error
app         | probe hook    | *         | none    | *    | again | A kill by liveness, startup or postStart is a failure, exit 0 too (RESTART-10, HOOK-01)
init        | exit          | Never     | none    | !0   | no    | Init containers: under Never the pod fails (INIT-02)
init        | exit          | *         | none    | !0   | again | Init containers: Always means OnFailure (RESTART-01)
";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    App,
    Init,
    Sidecar,
}

/// The first two are possible for every kind of container.
const CAUSES: [(&str, Option<StopReason>); 7] = [
    ("exit", None),
    ("interrupted", Some(StopReason::Interrupted)),
    ("probe", Some(StopReason::LivenessProbe)),
    ("probe", Some(StopReason::StartupProbe)),
    ("hook", Some(StopReason::PostStartHook)),
    ("changed", Some(StopReason::Changed)),
    ("resize", Some(StopReason::Resize)),
];

/// Rules of a container, and which action they have for an exit code.
type Rules = (&'static [(RestartAction, ExitCodeOperator, &'static [i32])], fn(i32) -> &'static str);

const RULES: [Rules; 6] = [
    (&[], |_| "none"),
    (&[(RestartAction::Restart, ExitCodeOperator::In, &[42, 137])], |code| match code {
        42 | 137 => "again",
        _ => "none",
    }),
    (&[(RestartAction::Restart, ExitCodeOperator::NotIn, &[42, 0])], |code| match code {
        42 | 0 => "none",
        _ => "again",
    }),
    (&[(RestartAction::RestartAllContainers, ExitCodeOperator::In, &[42])], |code| match code {
        42 => "all",
        _ => "none",
    }),
    // The first that matches wins.
    (
        &[
            (RestartAction::Restart, ExitCodeOperator::In, &[1]),
            (RestartAction::RestartAllContainers, ExitCodeOperator::In, &[1, 42]),
        ],
        |code| match code {
            1 => "again",
            42 => "all",
            _ => "none",
        },
    ),
    (
        &[
            (RestartAction::RestartAllContainers, ExitCodeOperator::NotIn, &[0, 1]),
            (RestartAction::Restart, ExitCodeOperator::In, &[1, 42]),
        ],
        |code| match code {
            0 => "none",
            1 => "again",
            _ => "all",
        },
    ),
];

// spec: RESTART-01, RESTART-07, RESTART-08, RESTART-10, SIDE-02, TERM-11
#[test]
fn every_end_of_every_kind_of_container_is_decided_as_the_table_says() {
    let table = rows(TABLE);
    let mut used = vec![0; table.len()];
    for case in cases() {
        let rule = case.rule;
        let code = if case.code == 0 { "0" } else { "!0" };
        let words = [case.kind_word(), case.cause.0, case.policy_word(), rule, code];
        let decides = table.iter().position(|(cells, _)| cells.iter().zip(words).all(|(cell, word)| holds(cell, word)));
        let decides = decides.unwrap_or_else(|| panic!("no row for {case:?}"));
        used[decides] += 1;
        let (cells, line) = &table[decides];
        assert_eq!(case.answer(), cells[5], "{line}\n{case:?}");
    }
    let idle: Vec<_> = table.iter().zip(&used).filter(|(_, used)| **used == 0).map(|((_, line), _)| line).collect();
    assert!(idle.is_empty(), "rows that decide nothing: {idle:#?}");
}

#[derive(Debug)]
struct Case {
    kind: Kind,
    cause: (&'static str, Option<StopReason>),
    pod: RestartPolicy,
    own: Option<RestartPolicy>,
    rules: Vec<RestartRule>,
    rule: &'static str,
    code: i32,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [Kind::App, Kind::Init, Kind::Sidecar] {
        // Neither probes nor hooks are allowed on an init container (INIT-03), and its change restarts nothing (POD-08, RES-11).
        let causes = if kind == Kind::Init { &CAUSES[..2] } else { &CAUSES[..] };
        let own: &[_] = match kind {
            Kind::App => {
                &[None, Some(RestartPolicy::Always), Some(RestartPolicy::OnFailure), Some(RestartPolicy::Never)]
            }
            Kind::Init => &[None, Some(RestartPolicy::OnFailure), Some(RestartPolicy::Never)],
            Kind::Sidecar => &[Some(RestartPolicy::Always)],
        };
        for (cause, pod, own) in product(causes, &POLICIES, own) {
            // Rules need a policy of the container.
            let rules = if own.is_none() { &RULES[..1] } else { &RULES[..] };
            for ((rules, action), code) in rules.iter().flat_map(|rules| [0, 1, 42, 137, 143].map(|code| (rules, code)))
            {
                let rule = |(action, operator, values): &(RestartAction, ExitCodeOperator, &[i32])| RestartRule {
                    action: *action,
                    operator: *operator,
                    values: values.to_vec(),
                };
                let (rule, rules) = (action(code), rules.iter().map(rule).collect());
                cases.push(Case { kind, cause, pod, own, rules, rule, code });
            }
        }
    }
    cases
}

fn product<A: Copy, B: Copy, C: Copy>(a: &[A], b: &[B], c: &[C]) -> Vec<(A, B, C)> {
    a.iter().flat_map(|a| b.iter().flat_map(move |b| c.iter().map(move |c| (*a, *b, *c)))).collect()
}

impl Case {
    fn kind_word(&self) -> &'static str {
        match self.kind {
            Kind::App => "app",
            Kind::Init => "init",
            Kind::Sidecar => "sidecar",
        }
    }

    fn policy_word(&self) -> &'static str {
        match self.own.unwrap_or(self.pod) {
            RestartPolicy::Always => "Always",
            RestartPolicy::OnFailure => "OnFailure",
            RestartPolicy::Never => "Never",
        }
    }

    /// What the next look at the pod says.
    fn answer(&self) -> &'static str {
        let name = "it";
        let it = ContainerSpec { restart_policy_rules: self.rules.clone(), ..container(name, self.own) };
        let (init, mut apps) = match self.kind {
            Kind::App => (vec![], vec![it]),
            Kind::Init | Kind::Sidecar => (vec![it], vec![]),
        };
        apps.push(container("other", None));
        let spec = PodSpec { restart_policy: self.pod, init_containers: init, containers: apps, ..PodSpec::default() };
        let ended = Instance {
            name: name.into(),
            state: InstanceState::Exited,
            exit_code: self.code,
            stopped_for: self.cause.1,
            ..Instance::default()
        };
        // Beside an app or a sidecar somebody else runs, so that the pod is not over; an init container is alone.
        let other = Instance { name: "other".into(), state: InstanceState::Running, ..Instance::default() };
        let instances = if self.kind == Kind::Init { vec![ended] } else { vec![ended, other] };
        let sandboxes = vec![Sandbox { ready: true, has_ip: true, ..Sandbox::default() }];
        let runtime = RuntimeStatus { sandboxes, instances, ..RuntimeStatus::default() };
        if restart_all_wanted(&spec, &runtime, &PodStatus::default()) {
            return "all";
        }
        let view = PodView { spec: &spec, deleting: false, restart_all: false, runtime: &runtime, actuated: None };
        let actions = compute(view);
        let to_start = match self.kind {
            Kind::App => actions.containers_to_start,
            Kind::Init | Kind::Sidecar => actions.init_containers_to_start,
        };
        if to_start.contains(&0) { "again" } else { "no" }
    }
}

// spec: TERM-08
#[test]
fn nobody_runs_again_in_a_pod_that_is_deleted() {
    for case in cases().into_iter().filter(|case| case.kind == Kind::App) {
        let it = ContainerSpec { restart_policy_rules: case.rules.clone(), ..container("it", case.own) };
        let ended = Instance {
            state: InstanceState::Exited,
            exit_code: case.code,
            stopped_for: case.cause.1,
            ..Instance::default()
        };
        assert!(!husk_core::restart::should_start(&it, case.pod, true, Some(&ended)), "{case:?}");
    }
}
