//! What must hold of every pod, as seen from the orders and from what is shown.

use std::collections::{BTreeMap, BTreeSet};

use husk_core::io::{Action, InstanceRef, Outcome, PodUid};
use husk_core::record::Interruption;
use husk_core::selector::Labels;
use husk_core::spec::PodSpec;
use husk_core::status::{ContainerState, ContainerStatus, PodStatus};
use husk_core::time::Instant;

use super::world::World;

/// What the world knows of one pod, from orders alone.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) spec: PodSpec,
    pub(super) labels: Labels,
    pub(super) generation: i64,
    pub(super) gone: bool,
    /// Instances that were ordered to start and haven't ended; true once they run.
    alive: BTreeMap<String, (u32, bool)>,
    /// Init containers that completed, and sidecars that were up.
    prepared: BTreeSet<String>,
    status: PodStatus,
}

impl Seen {
    pub(super) fn is_alive(&self, at: &InstanceRef) -> bool {
        self.alive.get(&*at.container).is_some_and(|(attempt, _)| *attempt == at.attempt)
    }

    pub(super) fn runs(&self, at: &InstanceRef) -> bool {
        self.alive.get(&*at.container) == Some(&(at.attempt, true))
    }

    pub(super) fn running(&self, uid: &PodUid) -> Vec<InstanceRef> {
        let running = self.alive.iter().filter(|(_, (_, runs))| *runs);
        let instance = |(name, (attempt, _)): (&String, &(u32, bool))| InstanceRef {
            pod: uid.clone(),
            container: name.as_str().into(),
            attempt: *attempt,
        };
        running.map(instance).collect()
    }

    pub(super) fn start_answered(&mut self, at: &InstanceRef, well: bool) {
        if !self.is_alive(at) {
            return;
        }
        let name = at.container.to_string();
        if well {
            if name.starts_with('i') && self.spec.container(&name).is_some_and(|(_, container)| container.is_sidecar())
            {
                self.prepared.insert(name.clone());
            }
            self.alive.insert(name, (at.attempt, true));
        } else {
            self.alive.remove(&name);
        }
    }

    /// Was that an instance that ran?
    pub(super) fn ended(&mut self, at: &InstanceRef, outcome: Outcome) -> bool {
        let ran = self.runs(at);
        if ran {
            self.alive.remove(&*at.container);
            if outcome.exit_code() == 0 {
                self.prepared.insert(at.container.to_string());
            }
        }
        ran
    }

    pub(super) fn interrupted(&mut self, after: Interruption, on_record: bool) {
        self.alive.clear();
        if after == Interruption::Reboot {
            self.prepared.clear();
        }
        if on_record {
            // That it is gone is told again.
            self.gone = false;
        }
    }
}

impl World {
    pub(super) fn check(&mut self, order: &Action, now: Instant, wild: bool) {
        match order {
            Action::Start { instance } => {
                let Some(seen) = self.pods.get_mut(&instance.pod) else { panic!("{order:?} of an unknown pod") };
                let name = instance.container.to_string();
                assert!(!seen.gone, "{name} is started after its pod has gone");
                let before = seen.alive.insert(name.clone(), (instance.attempt, false));
                assert_eq!(before, None, "a second instance of {name}");
                if name.starts_with('a') && !wild {
                    let missing = seen.spec.init_containers.iter().find(|init| !seen.prepared.contains(&init.name));
                    assert!(missing.is_none(), "{name} is started before {missing:?} is done");
                }
            }
            Action::StatusChanged { pod } => {
                let Some(status) = self.node.status(pod).cloned() else { return };
                let Some(seen) = self.pods.get_mut(pod) else { panic!("{order:?} of an unknown pod") };
                check_status(seen, &status, wild);
                assert!(status.start_time.is_none_or(|at| at <= now), "it began in the future");
                seen.status = status;
            }
            Action::Persist { pod, .. } => {
                let Some(record) = self.node.record(pod) else { panic!("nothing to persist of {pod}") };
                self.stored.insert(pod.clone(), record.to_bytes());
            }
            Action::Forget { pod } => {
                self.stored.remove(pod);
            }
            Action::Gone { pod } => {
                let Some(seen) = self.pods.get_mut(pod) else { panic!("{order:?} of an unknown pod") };
                assert!(!seen.gone, "gone twice");
                seen.gone = true;
            }
            _ => {}
        }
    }

    /// Everything was deleted: nothing is left, and it came in time.
    pub(super) fn check_the_end(&self, in_time: bool, now: Instant) {
        let left: Vec<_> = self.pods.iter().filter(|(_, seen)| !seen.gone).collect();
        assert!(left.is_empty(), "not gone: {left:?}");
        assert_eq!(self.node.pods().count(), 0);
        let alive: Vec<_> = self.pods.values().flat_map(|seen| seen.alive.keys()).collect();
        assert!(alive.is_empty(), "left over: {alive:?}");
        assert!(self.stored.is_empty(), "records are left: {:?}", self.stored.keys());
        assert!(self.node.used().is_empty(), "{:?} is not given back", self.node.used());
        assert!(in_time, "it took until {now:?}");
    }
}

fn check_status(seen: &Seen, status: &PodStatus, wild: bool) {
    let old = &seen.status;
    if old.phase.is_terminal() {
        assert_eq!(old.phase, status.phase, "a terminal phase was left");
    }
    if status.phase.is_terminal() && !wild {
        let running: Vec<_> = seen.alive.iter().filter(|(_, (_, runs))| *runs).collect();
        assert!(running.is_empty(), "{:?} was reported while {running:?} run", status.phase);
    }
    for is in containers(status) {
        if is.ready && is.name.starts_with('a') {
            assert!(matches!(is.state, ContainerState::Running { .. }), "ready and not running: {is:?}");
        }
        let Some(was) = containers(old).find(|was| was.name == is.name) else { continue };
        assert!(wild || was.restart_count <= is.restart_count, "a restart count fell: {was:?} {is:?}");
    }
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses).chain(&status.ephemeral_container_statuses)
}
