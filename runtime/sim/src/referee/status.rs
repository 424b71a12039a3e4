//! What a pod may say of itself.

use husk_core::reasons;
use husk_core::status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus};
use husk_core::{Instant, Node};

use super::rule;
use super::seen::{PodSeen, Role};
use crate::broken::Broken;

impl PodSeen {
    /// Its status changed.
    pub(super) fn status_changed(&mut self, now: Instant, node: &Node) -> Result<(), Broken> {
        let uid = self.uid.clone();
        let Some(status) = node.status(&uid) else { return Ok(()) };
        self.check_conditions(now, status)?;
        self.mind_restart_of_all();
        self.check_phase(now, status)?;
        self.check_containers(now, status)?;
        self.check_ready(now, status)?;
        rule!(
            status.observed_generation <= self.generation + 1,
            now,
            "only what was asked for is observed",
            "{uid}: {} of {}",
            status.observed_generation,
            self.generation
        );
        if let Some(since) = self.start_time {
            rule!(
                status.start_time == Some(since),
                now,
                "a pod starts once",
                "{uid}: {since:?}, then {:?}",
                status.start_time
            );
        }
        rule!(
            self.qos.is_none() || self.qos == status.qos_class,
            now,
            "the class stays",
            "{uid}: {:?}",
            status.qos_class
        );
        (self.start_time, self.qos) = (status.start_time, status.qos_class);
        self.phase = status.phase;
        self.verdict |= !status.reason.is_empty();
        Ok(())
    }

    /// All containers restart, or did: it may be over in the same step.
    fn mind_restart_of_all(&mut self) {
        let restarting = self.conditions.iter().find(|(kind, ..)| kind == reasons::ALL_CONTAINERS_RESTARTING);
        let since = restarting.and_then(|(.., since)| *since);
        self.restart_all = restarting.is_some_and(|(_, status, _)| *status == ConditionStatus::True);
        self.restarted_all = self.restart_all_since != since;
        if self.restart_all || self.restarted_all {
            self.restart_all_since = since;
            self.begin_anew();
        }
    }

    /// All containers restart: what was done counts no longer.
    fn begin_anew(&mut self) {
        self.anew = true;
        for container in self.containers.iter_mut().filter(|container| container.role != Role::Ephemeral) {
            (container.cause, container.excused, container.ever_started) = (true, true, false);
            container.ended = None;
        }
    }

    fn is_true(&self, kind: &str) -> bool {
        self.conditions.iter().any(|(known, status, _)| known == kind && *status == ConditionStatus::True)
    }

    fn check_phase(&mut self, now: Instant, status: &PodStatus) -> Result<(), Broken> {
        let (uid, before, phase) = (&self.uid, self.phase, status.phase);
        rule!(
            !before.is_terminal() || before == phase,
            now,
            "a terminal phase is never left",
            "{uid}: {before:?}, then {phase:?}"
        );
        if phase.is_terminal() {
            let runs: Vec<_> = self.containers.iter().filter(|c| c.started).map(|c| &c.name).collect();
            rule!(runs.is_empty(), now, "nothing runs in a terminal phase", "{uid} is {phase:?}, {runs:?} run");
        }
        let back = before == Phase::Running && phase == Phase::Pending;
        let excused = self.anew || self.restart_all || self.restarted_all;
        rule!(!back || excused, now, "Running does not become Pending", "{uid}");
        if phase == Phase::Running {
            rule!(self.began || self.asked_to_go, now, "who is Running has begun", "{uid}");
        }
        Ok(())
    }

    fn check_conditions(&mut self, now: Instant, status: &PodStatus) -> Result<(), Broken> {
        let uid = &self.uid;
        let conditions = &status.conditions;
        for (n, Condition { kind, status, last_transition_time, .. }) in conditions.iter().enumerate() {
            rule!(!conditions[..n].iter().any(|c| c.kind == *kind), now, "conditions are unique", "{kind} of {uid}");
            let before = self.conditions.iter().find(|(known, ..)| known == kind);
            let since = last_transition_time.unwrap_or(Instant::ZERO);
            rule!(since <= now, now, "nothing changed in the future", "{kind} of {uid}: {since:?}");
            if let Some((_, was, before)) = before {
                let same = was == status;
                rule!(
                    !same || before == last_transition_time || since == now,
                    now,
                    "a transition time changes only with its status",
                    "{kind} of {uid}: {before:?}, then {since:?}"
                );
                rule!(
                    same || since == now,
                    now,
                    "a change is dated when it happens",
                    "{kind} of {uid}: {since:?}, before {before:?}"
                );
            }
        }
        for (kind, ..) in &self.conditions {
            let lasts = matches!(
                &**kind,
                reasons::READY | reasons::CONTAINERS_READY | reasons::POD_SCHEDULED | reasons::INITIALIZED
            );
            rule!(
                !lasts || conditions.iter().any(|c| c.kind == *kind),
                now,
                "a condition does not disappear",
                "{kind} of {uid}"
            );
        }
        let was_scheduled = self.is_true(reasons::POD_SCHEDULED);
        let seen = conditions.iter().map(|c| (c.kind.clone(), c.status, c.last_transition_time));
        self.conditions.clear();
        self.conditions.extend(seen);
        let scheduled = self.is_true(reasons::POD_SCHEDULED);
        rule!(scheduled || !was_scheduled, now, "who has a place keeps it", "{}", self.uid);
        Ok(())
    }

    fn check_containers(&mut self, now: Instant, status: &PodStatus) -> Result<(), Broken> {
        let uid = self.uid.clone();
        let PodStatus { init_container_statuses, container_statuses, ephemeral_container_statuses, .. } = status;
        for container in init_container_statuses.iter().chain(container_statuses).chain(ephemeral_container_statuses) {
            let name = &container.name;
            let seen = self.container(name);
            rule!(seen.is_some(), now, "only containers of the pod have a status", "{name} of {uid}");
            let Some(seen) = seen else { continue };
            rule!(
                container.restart_count >= seen.restarts,
                now,
                "restart counts never fall",
                "{name} of {uid}: {} became {}",
                seen.restarts,
                container.restart_count
            );
            seen.restarts = container.restart_count;
            let runs = matches!(container.state, ContainerState::Running { .. });
            rule!(!runs || seen.started, now, "only what runs is Running", "{name} of {uid}");
            let ended = matches!(container.state, ContainerState::Terminated(_));
            rule!(!ended || !seen.started, now, "what runs has not ended", "{name} of {uid}: {:?}", container.state);
            let counts = seen.role != Role::Init;
            rule!(!container.ready || !counts || runs, now, "what is ready runs", "{name} of {uid}");
            rule!(
                container.started || !container.ready || !counts,
                now,
                "what is ready has started",
                "{name} of {uid}"
            );
        }
        Ok(())
    }

    /// The pod is ready if its containers are, and its gates.
    fn check_ready(&self, now: Instant, status: &PodStatus) -> Result<(), Broken> {
        let (ready, containers_ready) = (has(status, reasons::READY), has(status, reasons::CONTAINERS_READY));
        let uid = &self.uid;
        rule!(!ready || containers_ready, now, "a ready pod has ready containers", "{uid}");
        rule!(!status.phase.is_terminal() || !containers_ready, now, "a pod that ended is not ready", "{uid}");
        let counts = |container: &&ContainerStatus| {
            let role = self.containers.iter().find(|seen| *seen.name == *container.name).map(|seen| seen.role);
            matches!(role, Some(Role::App | Role::Sidecar))
        };
        let mut counting =
            status.init_container_statuses.iter().chain(&status.container_statuses).filter(counts).peekable();
        if counting.peek().is_none() || status.phase.is_terminal() {
            return Ok(());
        }
        // A container that may run only once and ended well doesn't count.
        let spoils = |container: &ContainerStatus| {
            !container.ready && !matches!(&container.state, ContainerState::Terminated(end) if end.exit_code == 0)
        };
        let unready: Vec<_> = counting.filter(|container| spoils(container)).map(|container| &container.name).collect();
        rule!(
            !containers_ready || unready.is_empty(),
            now,
            "containers are ready only if all are",
            "{unready:?} of {uid} are not"
        );
        Ok(())
    }
}

fn has(status: &PodStatus, kind: &str) -> bool {
    status.conditions.iter().any(|c| c.kind == kind && c.status == ConditionStatus::True)
}
