//! What a pod's record still says of the time before the agent started.

use husk_core::Instant;
use husk_core::reasons::INITIALIZED;
use husk_core::record::{Interruption as After, PodRecord};
use husk_core::status::{ConditionStatus, ContainerState, ContainerStatus, Phase, Terminated};

use crate::change::{Change, Interruption, LaneState};
use crate::recorder::{Recorder, containers, ended};

impl Recorder {
    /// Goes on with a pod that was there before: begins with what its record still says, and with what became of its instances.
    pub fn restored(now: Instant, record: &PodRecord, after: After, bytes: usize) -> Self {
        let status = record.status();
        let conditions = status.conditions.iter();
        let begun = conditions.filter_map(|condition| condition.last_transition_time).chain(status.start_time).min();
        let mut recorder =
            Self::bounded(begun.unwrap_or_else(|| record.saved_at()).min(now), record.meta(), record.spec(), bytes);
        // The log forgets from its front: the oldest comes first.
        let mut known = recorder.what_is_known(record);
        known.sort_by_key(|(at, _)| *at);
        known.iter().for_each(|(at, change)| recorder.log.push(*at, change));
        let mut events: Vec<_> = record.events().collect();
        events.sort_by_key(|event| event.last_seen);
        events.into_iter().for_each(|event| recorder.event(event.last_seen, event));
        recorder.assume(record.status());
        recorder.log.set_complete_since(now);
        let what = match after {
            After::Handover => return recorder,
            After::AgentRestart => Interruption::AgentRestarted,
            After::Reboot => Interruption::NodeRebooted,
        };
        recorder.log.push(now, &Change::Interrupted(what));
        recorder
    }

    fn what_is_known(&self, record: &PodRecord) -> Vec<(Instant, Change)> {
        let status = record.status();
        let begins = |container: &ContainerStatus| match &container.state {
            ContainerState::Running { started_at } => Some(*started_at),
            ContainerState::Terminated(end) => end.started_at,
            ContainerState::Waiting { .. } => None,
        };
        let apps = status.container_statuses.iter();
        let starts = apps.flat_map(|c| [begins(c), c.last_state.as_ref().and_then(|end| end.started_at)]).flatten();
        let initialized = status.conditions.iter().find(|c| c.kind == INITIALIZED && c.status == ConditionStatus::True);
        let initialized = initialized.and_then(|condition| condition.last_transition_time);
        let first = starts.chain(initialized).min().unwrap_or(self.origin);
        let mut known = vec![(self.origin, Change::Phase(Phase::Pending))];
        if status.phase != Phase::Pending {
            known.push((
                if status.phase.is_terminal() { record.saved_at() } else { first },
                Change::Phase(status.phase),
            ));
        }
        for condition in &status.conditions {
            let change = Change::Condition {
                kind: condition.kind.clone(),
                status: condition.status,
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            };
            known.push((condition.last_transition_time.unwrap_or(self.origin), change));
        }
        if let Some(deletion) = record.deletion() {
            let grace = std::time::Duration::from_secs(deletion.grace_seconds.unsigned_abs());
            let asked = Instant::ZERO + deletion.timestamp.since_epoch().saturating_sub(grace);
            known.push((asked, Change::Deleted));
        }
        for container in containers(status) {
            let Some(lane) = self.lane(&container.name) else { continue };
            let mut state = |at: Instant, state: LaneState| known.push((at, Change::State { lane, state }));
            let mut end = |end: &Terminated| {
                let finished = end.finished_at.unwrap_or(self.origin);
                state(end.started_at.unwrap_or(finished), LaneState::Running);
                state(finished, ended(end));
            };
            if let Some(last) = &container.last_state {
                end(last);
            }
            match &container.state {
                ContainerState::Terminated(last) => end(last),
                ContainerState::Running { started_at } => {
                    state(*started_at, if container.ready { LaneState::Ready } else { LaneState::Running });
                }
                ContainerState::Waiting { reason, .. } if container.last_state.is_none() => {
                    state(self.origin, LaneState::Waiting(reason.clone()));
                }
                ContainerState::Waiting { .. } => {}
            }
            let ends = [
                container.last_state.as_ref(),
                match &container.state {
                    ContainerState::Terminated(end) => Some(end),
                    _ => None,
                },
            ];
            for end in ends.into_iter().flatten() {
                let change = Change::Exit { lane, code: end.exit_code, reason: end.reason.clone() };
                known.push((end.finished_at.unwrap_or(self.origin), change));
            }
        }
        known
    }
}
