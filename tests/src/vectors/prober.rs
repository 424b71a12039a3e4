//! Family `prober`: one probe worker, step by step.

use husk_core::Instant;
use husk_core::io::ProbeOutcome;
use husk_core::prober::{Finished, InstanceState, InstanceView, Next, Prober, View};
use husk_core::restart::should_restart_after_exit;
use husk_core::runtime::Verdict;
use husk_core::spec::{ContainerSpec, Probe, ProbeKind, RestartPolicy};
use serde_json::{Value, json};

use super::objects::{container, flag, phase, pod_spec, probe, seconds, text};

/// Late enough that everything that happened before is after the epoch.
const NOW_SECONDS: u64 = 100_000;

pub(super) fn answer(input: &Value) -> Value {
    let mut worker = Worker::new(input);
    let mut answers = Vec::new();
    for step in input["steps"].as_array().into_iter().flatten() {
        let answer = worker.step(step);
        let stop = answer["stop"] == true;
        answers.push(answer);
        if stop {
            break;
        }
    }
    answers.into()
}

struct Worker {
    prober: Prober,
    probe: Probe,
    container: ContainerSpec,
    pod_policy: RestartPolicy,
    agent_up_seconds: Option<u64>,
}

impl Worker {
    fn new(input: &Value) -> Self {
        // Rules need a policy of the container's own; the cases take Never, so that only the rules restart it.
        let own_policy = match (flag(&input["sidecar"]), input["restartPolicyRules"].is_array()) {
            (true, _) => Some("Always"),
            (false, true) => Some("Never"),
            (false, false) => None,
        };
        let kind = match input["probe"].as_str() {
            Some("liveness") => ProbeKind::Liveness,
            Some("readiness") => ProbeKind::Readiness,
            _ => ProbeKind::Startup,
        };
        Self {
            prober: Prober::new(kind),
            probe: probe(&input["probeSpec"]),
            container: container(json!({
                "restartPolicy": own_policy,
                "restartPolicyRules": input["restartPolicyRules"],
            })),
            pod_policy: pod_spec(&json!({"restartPolicy": input["restartPolicy"]})).restart_policy,
            agent_up_seconds: input["agentUpSeconds"].as_u64(),
        }
    }

    fn step(&mut self, step: &Value) -> Value {
        // Nobody asks a prober about a pod that isn't there.
        if flag(&step["podUnknown"]) {
            return json!({"result": result(self.prober.published())});
        }
        let id = text(&step["containerID"]);
        let view = self.view(step, &id);
        let begun = self.prober.begin(&view, &self.probe, Instant::from_secs(NOW_SECONDS));
        let (mut changed, mut probed) = (begun.changed, 0);
        if begun.next == Next::Probe {
            let outcome = outcome(&step["probe"]);
            changed |= loop {
                probed += 1;
                if let Finished::Done { changed } = self.prober.finish(outcome, &self.probe) {
                    break changed;
                }
            };
        }
        json!({
            "result": result(self.prober.published()),
            "changed": changed,
            "probed": probed,
            "stop": begun.next == Next::Stop,
        })
    }

    fn view<'a>(&self, step: &Value, id: &'a str) -> View<'a> {
        let running_for = seconds(&step["runningForSeconds"]).as_secs();
        let exit_code = step["exitCode"].as_i64().and_then(|code| code.try_into().ok()).unwrap_or_default();
        let state = match step["state"].as_str() {
            Some("running") => InstanceState::Running { since: Instant::from_secs(NOW_SECONDS - running_for) },
            Some("terminated") => InstanceState::Ended {
                will_restart: should_restart_after_exit(&self.container, self.pod_policy, exit_code),
            },
            _ => InstanceState::Waiting,
        };
        let adopted = self.agent_up_seconds.is_some_and(|up| running_for > up);
        let sidecar = self.container.is_sidecar();
        let instance = InstanceView { id, state, started: flag(&step["started"]), adopted, sidecar };
        View { phase: phase(&step["phase"]), deleting: flag(&step["deleting"]), instance: Some(instance) }
    }
}

fn outcome(name: &Value) -> ProbeOutcome {
    match name.as_str() {
        Some("success") => ProbeOutcome::Success,
        Some("warning") => ProbeOutcome::Warning,
        Some("failure") => ProbeOutcome::Failure,
        Some("unknown") => ProbeOutcome::Unknown,
        _ => ProbeOutcome::Error,
    }
}

fn result(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => "",
        Some(Verdict::Success) => "success",
        Some(Verdict::Failure) => "failure",
        Some(Verdict::Unknown) => "unknown",
    }
}
