//! Plays the core in virtual time: from wake-up to wake-up, without waiting.

use std::time::Duration;

use anyhow::{Result, bail};
use husk_core::backoff::BackoffConfig;
use husk_core::io::PodUid;
use husk_core::spec::{PodMeta, PodSpec};
use husk_core::{Action, Input, Instant, Node, NodeConfig};

use super::scenario::Scenario;
use super::scripted::Scripted;
use super::timeline::{Recorder, Timeline};

/// Far more than any pod needs in a day of virtual time: more than that is an endless loop.
const MOST_STEPS: u32 = 5_000_000;

/// Plays a pod until nothing more will happen, or until `until`.
pub(crate) fn play(meta: PodMeta, spec: PodSpec, scenario: &Scenario, until: Duration) -> Result<Timeline> {
    let crash_loop = BackoffConfig::standard(scenario.max_container_restart_period.map(|cap| cap.0));
    let config = NodeConfig { crash_loop, ..NodeConfig::default() };
    let until = Instant::ZERO + until;
    let pod = PodUid::from(meta.uid.as_str());
    let mut node = Node::new(config);
    let mut runtime = Scripted::new(scenario, &spec);
    let mut recorder = Recorder::new(&meta, &spec);
    for delete in &scenario.delete {
        let input = Input::DeleteRequested { pod: pod.clone(), grace_seconds: delete.grace_period_seconds };
        runtime.plan(Instant::ZERO + delete.at.0, input);
    }

    let mut now = Instant::ZERO;
    node.handle(now, Input::Applied { meta, spec: Box::new(spec) });
    for _ in 0..MOST_STEPS {
        let mut gone = false;
        while let Some(action) = node.poll_action() {
            recorder.action(now, &action);
            runtime.carry_out(now, &action);
            gone |= matches!(action, Action::Gone { .. });
        }
        recorder.settled(now, node.status(&pod));
        if gone {
            return Ok(recorder.over(now));
        }
        let next = match (runtime.next_due(), node.next_wake()) {
            (Some(due), Some(wake)) => due.min(wake),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return Ok(recorder.over(now)),
        };
        if next > until {
            return Ok(recorder.cut(until));
        }
        now = now.max(next);
        match runtime.pop_due(now) {
            Some(input) => {
                recorder.input(now, &input);
                node.handle(now, input);
            }
            None => node.advance(now),
        }
    }
    bail!("the simulation makes no progress at {now:?}: please report this with the manifest and the scenario")
}
