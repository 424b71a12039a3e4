//! What may be ordered, and when.

use std::time::Duration;

use husk_core::grace::DEFAULT_GRACE_SECONDS;
use husk_core::io::{Hook, InstanceRef};
use husk_core::record::PodRecord;
use husk_core::spec::{ProbeKind, RestartPolicy};
use husk_core::status::{ContainerState, PodStatus};
use husk_core::{Action, Instant, Node};

use super::seen::{HookSeen, PodSeen, Role, Sandbox};
use super::{Referee, rule};
use crate::broken::Broken;

/// Time from the stop signal to KILL, at least.
const MINIMUM_GRACE: Duration = Duration::from_secs(2);

/// Events that say why the node ends a pod.
const VERDICTS: [&str; 6] =
    ["Evicted", "Preempted", "Terminated", "DeadlineExceeded", "TaintManagerEviction", "NodeShutdown"];

impl Referee {
    /// Something was ordered. `slack` is how long the world takes where it has to.
    pub(crate) fn action(&mut self, now: Instant, action: &Action, node: &Node, slack: Duration) -> Result<(), Broken> {
        let shutting_down = self.shutting_down;
        let Some(pod) = self.seen(action.pod()) else { return Ok(()) };
        // Who only waits for a place is not ended.
        pod.verdict |= shutting_down && pod.scheduled;
        // Of what is ordered in the same step only what comes after this belongs to its end.
        if matches!(action, Action::StatusChanged { .. }) && !pod.gone {
            pod.mind_deletion(now, node, slack)?;
        }
        pod.action(now, action, node)
    }
}

impl PodSeen {
    fn action(&mut self, now: Instant, action: &Action, node: &Node) -> Result<(), Broken> {
        let uid = self.uid.clone();
        rule!(self.exists(), now, "only pods that there are", "{action:?}");
        match action {
            Action::SetUp { .. } => {
                self.may_begin(now, action)?;
                let alive = self.containers.iter().any(|container| container.alive.is_some());
                let again = matches!(self.sandbox, Sandbox::Ordered | Sandbox::Ending);
                rule!(!alive && !again, now, "one sandbox at a time", "{uid} has one: {:?}", self.sandbox);
                self.sandbox = Sandbox::Ordered;
            }
            Action::PullImage { instance } => {
                self.may_begin(now, action)?;
                self.pull(now, instance)?;
            }
            Action::Start { instance } => {
                self.may_begin(now, action)?;
                self.start(now, instance)?;
                let granted = node.allocated(&uid, &instance.container).cloned();
                if let Some(container) = self.container(&instance.container) {
                    (container.has, container.gets) = (granted, None);
                }
            }
            Action::Signal { instance, .. } => self.signal(now, instance, node)?,
            Action::Kill { instance } => self.kill(now, instance, node)?,
            Action::RunProbe { instance, kind, run, .. } => self.probe(now, instance, *kind, *run, node)?,
            Action::RunHook { instance, hook } => self.hook(now, instance, *hook, node)?,
            Action::CancelHook { instance, hook } => {
                let container = self.container(&instance.container);
                let runs = container.as_ref().is_some_and(|c| c.hooks[*hook as usize] == HookSeen::Runs);
                // One whose instance has just ended is cancelled as well.
                let ended = container.as_ref().is_some_and(|container| container.alive.is_none());
                rule!(runs || ended, now, "what runs is cancelled", "{action:?}");
                if let Some(container) = container.filter(|container| container.alive.is_some()) {
                    container.hooks[*hook as usize] = HookSeen::Over;
                }
            }
            Action::UpdateResources { instance, revision, resources } => {
                let runs = self.runs(instance);
                rule!(runs && !self.gone, now, "what runs is resized", "{action:?}");
                rule!(self.revision.is_none_or(|last| last < *revision), now, "revisions grow", "{action:?}");
                let allocated = node.allocated(&uid, &instance.container);
                rule!(allocated == Some(resources), now, "an instance gets what is granted", "{action:?}");
                self.revision = Some(*revision);
                if let Some(container) = self.container(&instance.container) {
                    container.gets = Some((*revision, resources.clone()));
                }
            }
            Action::Teardown { .. } => {
                let alive: Vec<_> = self.containers.iter().filter(|c| c.alive.is_some()).map(|c| &c.name).collect();
                rule!(alive.is_empty(), now, "the sandbox is removed last", "{alive:?} of {uid} still run");
                self.sandbox = Sandbox::Ending;
            }
            Action::StatusChanged { .. } => {
                rule!(!self.gone, now, "of a pod that is gone nothing is shown", "{uid}");
                return self.status_changed(now, node);
            }
            Action::Gone { .. } => {
                rule!(!self.gone, now, "a pod goes once", "{uid}");
                rule!(self.asked_to_go, now, "only who is deleted goes", "{uid}");
                self.check_limit(now)?;
                self.gone = true;
            }
            // If it is gone by now, this is taken back behind it.
            Action::Persist { .. } => {}
            Action::Forget { .. } => {
                rule!(self.gone, now, "a pod is forgotten when it is gone", "{uid}");
                let alive = self.containers.iter().any(|container| container.alive.is_some());
                rule!(!alive, now, "nothing is left over", "a container of {uid} still runs");
                self.forgotten = true;
            }
            Action::Record { event } => {
                self.scheduled |= event.reason == "Scheduled";
                self.verdict |= VERDICTS.contains(&&*event.reason) || event.reason.starts_with("OutOf");
                if event.reason == "SandboxChanged" {
                    (self.verdict, self.ends_by) = (false, None);
                }
                // One that is stopped for a reason of its own may be started again; with any other the pod's end has begun.
                let caused = || self.containers.iter().any(|own| own.cause && Some(&*own.name) == event.container());
                if event.reason == "Killing" && !self.asked_to_go && !self.verdict && self.no_app_stays() && !caused() {
                    let grace = node.spec(&uid).and_then(|spec| spec.termination_grace_period_seconds);
                    let grace = u64::try_from(grace.unwrap_or(DEFAULT_GRACE_SECONDS)).unwrap_or_default();
                    self.ends_by.get_or_insert(now + Duration::from_secs(grace));
                }
            }
        }
        Ok(())
    }

    /// Is there an instance, and does it run?
    fn runs(&self, at: &InstanceRef) -> bool {
        let container = self.containers.iter().find(|container| container.name == at.container);
        container.is_some_and(|container| container.alive == Some(at.attempt) && container.started)
    }

    /// Nothing begins in a pod that ends.
    fn may_begin(&self, now: Instant, action: &Action) -> Result<(), Broken> {
        let ends = self.gone || self.asked_to_go || self.phase.is_terminal();
        rule!(!ends, now, "nothing begins in a pod that ends", "{action:?}");
        rule!(self.scheduled, now, "nothing begins before the pod has its place", "{action:?}");
        Ok(())
    }

    fn pull(&mut self, now: Instant, at: &InstanceRef) -> Result<(), Broken> {
        let ready = self.sandbox == Sandbox::Ready;
        rule!(ready, now, "first the sandbox", "{at:?}");
        let Some(container) = self.container(&at.container) else { return Ok(()) };
        rule!(container.alive.is_none(), now, "one instance at a time", "{at:?} beside {:?}", container.alive);
        rule!(container.last_attempt.is_none_or(|last| last < at.attempt), now, "attempts grow", "{at:?}");
        container.last_attempt = Some(at.attempt);
        self.began = true;
        let Some(container) = self.container(&at.container) else { return Ok(()) };
        (container.pulling, container.pulled) = (Some(at.attempt), None);
        Ok(())
    }

    fn start(&mut self, now: Instant, at: &InstanceRef) -> Result<(), Broken> {
        let (policy, restart_all) = (self.policy, self.restart_all);
        let place = self.containers.iter().position(|container| container.name == at.container);
        let Some(place) = place else { return Ok(()) };
        let role = self.containers[place].role;
        for (n, other) in self.containers.iter().enumerate() {
            let before = match role {
                Role::Init | Role::Sidecar => n < place,
                Role::App => true,
                Role::Ephemeral => false,
            };
            let done = match other.role {
                Role::Init => other.ended == Some(0) && other.alive.is_none(),
                Role::Sidecar => other.ever_started || !other.lost && other.ended.is_some(),
                Role::App | Role::Ephemeral => true,
            };
            rule!(!before || done, now, "init containers come first", "{at:?} before {} was done", other.name);
        }
        let container = &mut self.containers[place];
        rule!(container.pulled == Some(at.attempt), now, "first the image", "{at:?}");
        rule!(container.alive.is_none(), now, "one instance at a time", "{at:?} beside {:?}", container.alive);
        if let (Some(code), 0, false, false) = (container.ended, container.rules, container.excused, restart_all) {
            let again = match (role, container.policy.unwrap_or(policy)) {
                (Role::Ephemeral, _) | (_, RestartPolicy::Never) => false,
                (Role::Init, _) | (_, RestartPolicy::OnFailure) => code != 0,
                (Role::Sidecar | Role::App, RestartPolicy::Always) => true,
            };
            rule!(again, now, "restart policies are kept", "{at:?} after exit code {code}");
        }
        (container.alive, container.pulled, container.ended, container.excused) = (Some(at.attempt), None, None, false);
        Ok(())
    }

    fn signal(&mut self, now: Instant, at: &InstanceRef, node: &Node) -> Result<(), Broken> {
        rule!(self.runs(at), now, "only what runs gets a signal", "{at:?}");
        self.may_stop(now, at, node)?;
        let ordered = self.asked_to_go && !self.verdict && !self.deadline && !self.gone;
        let spent = self.deletion.is_none_or(|deletion| deletion.timestamp <= now)
            || self.ends_by.is_some_and(|ends_by| ends_by <= now);
        let place = self.containers.iter().position(|container| container.name == at.container).unwrap_or_default();
        if ordered && !spent && self.containers[place].role == Role::Sidecar && !self.containers[place].cause {
            // One that is down has had its turn, and those before it need not wait for those behind it: so upstream has it.
            let next = self.containers.iter().skip(place + 1).position(|other| other.role == Role::Sidecar);
            for (n, other) in self.containers.iter().enumerate() {
                let first = match other.role {
                    Role::App => true,
                    Role::Sidecar => next.is_some_and(|next| n == place + 1 + next),
                    Role::Init | Role::Ephemeral => false,
                };
                let up = other.alive.is_some();
                rule!(!first || !up, now, "sidecars stop last", "{at:?} got its signal while {} was up", other.name);
            }
        }
        let container = &mut self.containers[place];
        rule!(container.signalled.is_none(), now, "one stop signal", "{at:?} got another");
        container.signalled = Some(now);
        Ok(())
    }

    fn kill(&mut self, now: Instant, at: &InstanceRef, node: &Node) -> Result<(), Broken> {
        self.may_stop(now, at, node)?;
        let forced = self.gone || self.restart_all || self.deletion.is_some_and(|deletion| deletion.grace_seconds == 0);
        let Some(container) = self.container(&at.container) else { return Ok(()) };
        rule!(container.alive == Some(at.attempt), now, "only what there is is killed", "{at:?}");
        rule!(!container.killed, now, "killed once", "{at:?}");
        if container.started && !forced {
            let since = container.signalled.map(|at| now - at);
            let long_enough = since.is_some_and(|since| since >= MINIMUM_GRACE);
            rule!(long_enough, now, "KILL comes at least 2 s after the signal", "{at:?}: {since:?}");
        }
        container.killed = true;
        Ok(())
    }

    /// Nothing is stopped without a cause.
    fn may_stop(&mut self, now: Instant, at: &InstanceRef, node: &Node) -> Result<(), Broken> {
        let granted = node.allocated(&self.uid, &at.container);
        if let Some(container) = self.container(&at.container) {
            // It goes on to stop, even if what was granted is taken back meanwhile.
            container.cause |= container.restarts_for(granted);
        }
        let pod_ends =
            self.asked_to_go || self.verdict || self.deadline || self.restart_all || self.gone || self.no_app_stays();
        let caused = self.container(&at.container).is_some_and(|container| container.cause);
        rule!(pod_ends || caused, now, "nothing is stopped without a cause", "{at:?}");
        Ok(())
    }

    fn probe(&mut self, now: Instant, at: &InstanceRef, kind: ProbeKind, run: u32, node: &Node) -> Result<(), Broken> {
        rule!(self.runs(at) && !self.gone, now, "what runs is probed", "{kind:?} of {at:?}");
        let ends = self.asked_to_go;
        let uid = self.uid.clone();
        let shows_running = node.status(&uid).is_some_and(|status| is_running(status, &at.container));
        let Some(container) = self.container(&at.container) else { return Ok(()) };
        rule!(shows_running, now, "probes come after postStart", "{kind:?} of {at:?}");
        let open = container.open_probes[kind as usize].replace(run);
        rule!(open.is_none(), now, "one run of a probe at a time", "{kind:?} of {at:?} beside {open:?}");
        if container.has_startup && kind != ProbeKind::Startup {
            let passed = node.probe_verdict(&uid, &at.container, ProbeKind::Startup);
            rule!(passed == Some(true), now, "startup gates the others", "{kind:?} of {at:?}");
        }
        let stops = ends && container.role != Role::Sidecar && kind != ProbeKind::Readiness;
        rule!(!stops, now, "only readiness is probed in a pod that ends", "{kind:?} of {at:?}");
        Ok(())
    }

    fn hook(&mut self, now: Instant, at: &InstanceRef, hook: Hook, node: &Node) -> Result<(), Broken> {
        rule!(self.runs(at) && !self.gone, now, "hooks belong to what runs", "{hook:?} of {at:?}");
        if hook == Hook::PreStop {
            self.may_stop(now, at, node)?;
        }
        let Some(container) = self.container(&at.container) else { return Ok(()) };
        let before = std::mem::replace(&mut container.hooks[hook as usize], HookSeen::Runs);
        rule!(before == HookSeen::Not, now, "each hook runs once", "{hook:?} of {at:?}");
        rule!(container.signalled.is_none(), now, "preStop comes before the signal", "{hook:?} of {at:?}");
        Ok(())
    }
}

fn is_running(status: &PodStatus, name: &str) -> bool {
    let mut all = status.init_container_statuses.iter().chain(&status.container_statuses);
    all.any(|container| container.name == name && matches!(container.state, ContainerState::Running { .. }))
}

/// Records are read as they were written.
pub(crate) fn check_record(now: Instant, record: &PodRecord, bytes: &[u8]) -> Result<(), Broken> {
    let read = PodRecord::from_bytes(bytes);
    rule!(read.as_ref() == Ok(record), now, "a record is read as it was written", "{read:?} of {record:?}");
    Ok(())
}
