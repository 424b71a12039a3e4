//! What must hold whatever happens, checked at every step from what is said and ordered.
//!
//! Only the pod that an order is about is looked at, so a step costs the same however many pods there are;
//! [`Referee::check_all`] looks at all of them and is for now and then.

mod order;
mod seen;
mod status;

use std::collections::{BTreeSet, HashMap};

use husk_core::eviction::Pressure;
use husk_core::io::PodUid;
use husk_core::record::Interruption;
use husk_core::spec::{ResourceList, RestartPolicy};
use husk_core::{Input, Instant, Node};

pub(crate) use self::order::check_record;
use self::seen::{ContainerSeen, PodSeen, Role, Sandbox};
use crate::broken::{Broken, rule};
use crate::scenario::Subject;

/// Watches the rules.
pub(crate) struct Referee {
    pods: Vec<PodSeen>,
    by_uid: HashMap<PodUid, usize>,
    /// What the node has.
    allocatable: Option<ResourceList>,
    /// What was given away before.
    used: ResourceList,
    shutting_down: bool,
    short_of: BTreeSet<Pressure>,
    accepted: u64,
}

impl Referee {
    /// For some pods.
    pub(crate) fn new(subjects: &[Subject]) -> Self {
        let pods: Vec<_> = subjects.iter().map(PodSeen::new).collect();
        let by_uid = pods.iter().enumerate().map(|(n, pod)| (pod.uid.clone(), n)).collect();
        Self {
            pods,
            by_uid,
            allocatable: None,
            used: ResourceList::new(),
            shutting_down: false,
            short_of: BTreeSet::new(),
            accepted: 0,
        }
    }

    /// The core is about to be told of this.
    pub(crate) fn input(&mut self, input: &Input) {
        match input {
            Input::NodeChanged { state } => {
                // Who is there stays, even if that is more than there is now.
                self.allocatable.clone_from(&state.allocatable);
                return;
            }
            Input::Pressure { resource, shortage } => {
                if shortage.is_some() {
                    self.short_of.insert(*resource);
                } else {
                    self.short_of.remove(resource);
                }
                return;
            }
            Input::Shutdown { .. } => {
                self.shutting_down = true;
                return;
            }
            _ => {}
        }
        let Some(pod) = input.pod().and_then(|uid| self.by_uid.get(&uid)).map(|place| &mut self.pods[*place]) else {
            return;
        };
        if matches!(input, Input::Applied { .. }) && !pod.known {
            self.accepted += 1;
            pod.accepted = self.accepted;
        }
        pod.input(input);
    }

    /// The agent has ended, and all instances with it.
    pub(crate) fn interrupted(&mut self, after: Interruption) {
        self.shutting_down = false;
        self.short_of.clear();
        self.allocatable = None;
        self.used.clear();
        for pod in &mut self.pods {
            pod.interrupted(after);
        }
    }

    /// Everybody overslept by so much.
    pub(crate) fn overslept(&mut self, by: std::time::Duration) {
        for pod in &mut self.pods {
            pod.limit = pod.limit.map(|limit| limit + by);
        }
    }

    /// All orders of a step are out.
    pub(crate) fn settled(&mut self, now: Instant, node: &Node) -> Result<(), Broken> {
        if *node.used() == self.used {
            return Ok(());
        }
        for (resource, used) in node.used() {
            let capacity = |has| husk_core::admission::capacity(has, resource);
            let Some(has) = self.allocatable.as_ref().and_then(capacity) else { continue };
            let grew = self.used.get(resource).is_none_or(|before| used > before);
            rule!(*used <= has || !grew, now, "no more is given away than there is", "{resource}: {used} of {has}");
        }
        self.used.clone_from(node.used());
        Ok(())
    }

    /// Looks at every pod.
    pub(crate) fn check_all(&self, now: Instant, node: &Node) -> Result<(), Broken> {
        let mut firsts = HashMap::<(&str, &str), u64>::new();
        for pod in self.pods.iter().filter(|pod| pod.exists()) {
            let first = firsts.entry((&pod.namespace, &pod.name)).or_insert(pod.accepted);
            *first = pod.accepted.min(*first);
        }
        for pod in &self.pods {
            let blocked = firsts.get(&(&*pod.namespace, &*pod.name)).is_some_and(|first| *first != pod.accepted);
            pod.check_limit(now)?;
            if pod.exists() && !pod.gone && !blocked {
                pod.check_goes_on(now, node)?;
            }
        }
        self.check_sum(now, node)
    }

    /// What is given away is what the pods have that have a place.
    fn check_sum(&self, now: Instant, node: &Node) -> Result<(), Broken> {
        let seated = self.pods.iter().filter(|pod| pod.holds_place()).count();
        let counted = node.used().get("pods").map_or(0, |pods| pods.value());
        rule!(
            i64::try_from(seated) == Ok(counted),
            now,
            "the node counts who has a place",
            "it counts {counted}, {seated} have one"
        );
        Ok(())
    }

    /// All pods were deleted, and nothing more will happen.
    pub(crate) fn check_end(&self, now: Instant, node: &Node) -> Result<(), Broken> {
        let left: Vec<_> = self.pods.iter().filter(|pod| pod.exists() && pod.asked_to_go).map(|pod| &pod.uid).collect();
        rule!(left.is_empty(), now, "who is deleted goes", "{left:?} are still there and nothing more happens");
        for pod in &self.pods {
            let alive: Vec<_> = pod.containers.iter().filter(|c| c.alive.is_some()).map(|c| &c.name).collect();
            rule!(pod.exists() || alive.is_empty(), now, "nothing is left over", "{alive:?} of {} still run", pod.uid);
        }
        self.check_all(now, node)
    }

    /// The node is short of something, or shuts down.
    pub(crate) fn is_pressed(&self) -> bool {
        self.shutting_down || !self.short_of.is_empty()
    }

    fn seen(&mut self, uid: &PodUid) -> Option<&mut PodSeen> {
        self.by_uid.get(uid).map(|place| &mut self.pods[*place])
    }
}

impl PodSeen {
    /// Somebody works on it, or it is known when somebody will.
    fn check_goes_on(&self, now: Instant, node: &Node) -> Result<(), Broken> {
        // A static pod that ended need not have a terminal phase.
        let over = self.phase.is_terminal() || self.torn_down || self.is_static && self.verdict;
        if !self.scheduled || (over && !self.asked_to_go) {
            return Ok(());
        }
        let busy = |container: &ContainerSeen| self.is_busy(container, node);
        let sandbox = matches!(self.sandbox, Sandbox::Ordered | Sandbox::Ending | Sandbox::Failed);
        rule!(
            sandbox || self.containers.iter().any(busy),
            now,
            "no pod is forgotten",
            "nothing goes on in {}, phase {}",
            self.uid,
            self.phase.as_str()
        );
        let begins = sandbox || self.restart_all || !self.initialized(node) || self.misses_sidecars(node);
        if self.asked_to_go || self.verdict || begins {
            return Ok(());
        }
        for container in self.containers.iter().filter(|c| c.role == Role::App && c.rules == 0) {
            let policy = container.policy.unwrap_or(self.policy);
            let goes_on = busy(container) || policy != RestartPolicy::Always;
            rule!(
                goes_on,
                now,
                "what is always restarted is tried again",
                "{} of {} is neither up nor has it a time for the next try",
                container.name,
                self.uid
            );
        }
        Ok(())
    }
}
