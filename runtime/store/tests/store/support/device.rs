//! What a device does with its store, in virtual time: what clients ask for is committed and then answered, records are kept in
//! the store's rhythm, and a status is shown once the pod's record is on the disk. Whoever was shown something remembers it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use husk_core::io::{Action, Input, InstanceRef, Outcome, PodUid};
use husk_core::record::{Interruption, PodRecord};
use husk_core::status::{ContainerState, ContainerStatus, Phase, PodStatus};
use husk_core::{Instant, Node, NodeConfig};
use husk_store::{Batch, CommitError, Expect, ObjectKey, Opened, Store};

use super::shapes::{self, Guest};
use super::sim::Random;
use super::{PODS, secs};

/// The disk refused, which it only does when the power is off.
#[derive(Debug)]
pub(crate) struct PowerCut;

/// A node, its store, and those who look at it.
pub(crate) struct Device<'c> {
    store: Store,
    node: Node,
    pub(crate) now: Instant,
    due: BTreeMap<(Instant, u64), Input>,
    sequence: u64,
    random: Random,
    /// Statuses that wait for their pods' records.
    waiting: BTreeMap<PodUid, Waiting>,
    /// Init containers that were through when the agent ended, and the board didn't.
    completed: BTreeSet<(PodUid, String)>,
    clients: &'c mut Clients,
}

#[derive(Default)]
struct Waiting {
    status: Option<PodStatus>,
    is_gone: bool,
    is_forgotten: bool,
}

/// An object of a pod, as clients write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) uid: String,
    pub(crate) shape: usize,
    /// `deletionGracePeriodSeconds`.
    pub(crate) leaving: Option<i64>,
}

impl Object {
    fn to_bytes(&self) -> Vec<u8> {
        let leaving = self.leaving.map_or_else(String::new, |grace| grace.to_string());
        format!("{} {} {leaving}", self.uid, self.shape).into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).expect("text");
        let parts: Vec<&str> = text.split(' ').collect();
        let [uid, shape, leaving] = parts[..] else { panic!("{text}") };
        Self { uid: uid.into(), shape: shape.parse().expect("a number"), leaving: leaving.parse().ok() }
    }
}

/// What clients know.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// Objects by name, as they were answered.
    pub(crate) objects: BTreeMap<String, Object>,
    /// What one has asked for and was not answered: it is so, or as before.
    asked: Option<(String, Option<Object>)>,
    /// The highest version that was seen.
    version: u64,
    shown: BTreeMap<String, Shown>,
    /// When the board was started, as far as anything was run since.
    booted: Instant,
    pods_made: u64,
}

/// What was seen of a pod.
#[derive(Clone, Debug, Default)]
struct Shown {
    restarts: BTreeMap<String, u32>,
    completed_init: BTreeSet<String>,
    phase: Option<Phase>,
    ips: Vec<String>,
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses)
}

impl Shown {
    /// Nothing that was seen is taken back.
    fn see(&mut self, uid: &str, status: &PodStatus, booted: Instant) {
        let about = || format!("{uid}: {self:#?}\nand then {status:#?}");
        for container in containers(status) {
            let before = self.restarts.get(&container.name).copied().unwrap_or(0);
            assert!(container.restart_count >= before, "restarts fell: {}", about());
        }
        let ended = self.phase.filter(|phase| phase.is_terminal());
        assert!(ended.is_none_or(|phase| phase == status.phase), "an ended pod lives: {}", about());
        assert!(self.ips.is_empty() || status.pod_ips.is_empty() || self.ips == status.pod_ips, "moved: {}", about());
        self.restarts.extend(containers(status).map(|c| (c.name.clone(), c.restart_count)));
        self.completed_init = completed_init(status, booted);
        self.phase = Some(status.phase);
        if !status.pod_ips.is_empty() {
            self.ips.clone_from(&status.pod_ips);
        }
    }
}

/// Those that were through since then.
fn completed_init(status: &PodStatus, since: Instant) -> BTreeSet<String> {
    let has_completed = |container: &&ContainerStatus| {
        let ContainerState::Terminated(ended) = &container.state else { return false };
        ended.exit_code == 0 && ended.started_at.is_some_and(|started| started >= since)
    };
    status.init_container_statuses.iter().filter(has_completed).map(|container| container.name.clone()).collect()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("pods", "default", name)
}

impl<'c> Device<'c> {
    /// Goes on with what the store has, as clients knew it before.
    pub(crate) fn begin(opened: Opened, seed: u64, clients: &'c mut Clients) -> Result<Self, PowerCut> {
        let Opened { store, now, interruption, records, unreadable, set_aside, .. } = opened;
        assert_eq!((set_aside, unreadable.as_slice()), (None, &[][..]));
        if interruption != Some(Interruption::AgentRestart) {
            // What was made by init containers in memory is gone (INIT-06).
            clients.booted = now;
            clients.shown.values_mut().for_each(|shown| shown.completed_init.clear());
        }
        let booted = clients.booted;
        clients.check(&store, &records, interruption);
        let mut device = Self {
            store,
            node: Node::new(NodeConfig::default()),
            now,
            due: BTreeMap::new(),
            sequence: 0,
            random: Random(seed),
            waiting: BTreeMap::new(),
            completed: BTreeSet::new(),
            clients,
        };
        let mut objects: BTreeMap<String, (String, Object)> = BTreeMap::new();
        for object in device.store.list(PODS).objects {
            let read = Object::from_bytes(&object.body);
            objects.insert(read.uid.clone(), (object.key.name().to_owned(), read));
        }
        for record in records {
            let uid = record.uid().clone();
            let Some((_, object)) = objects.remove(&*uid.0) else {
                device.store.forget(now, &uid.0);
                continue;
            };
            let after = interruption.expect("there are records of it");
            if after == Interruption::AgentRestart && object.shape != shapes::RESTARTS_ALL {
                device
                    .completed
                    .extend(completed_init(record.status(), booted).into_iter().map(|name| (uid.clone(), name)));
            }
            device.node.handle(now, Input::Restored { record: Box::new(record), after });
            if object.leaving.is_some() {
                device.node.handle(now, Input::DeleteRequested { pod: uid, grace_seconds: object.leaving });
            }
        }
        for (name, object) in objects.into_values() {
            match object.leaving {
                None => device.take(&name, &object),
                // Nothing of it was seen yet.
                Some(_) => device.commit(&name, None, Expect::Present)?,
            }
        }
        device.run_for(secs(0))?;
        Ok(device)
    }

    fn take(&mut self, name: &str, object: &Object) {
        let (meta, spec) = shapes::pod(name, &object.uid, object.shape);
        self.node.handle(self.now, Input::Applied { meta, spec: Box::new(spec) });
    }

    /// A client does something, by chance.
    pub(crate) fn ask(&mut self) -> Result<(), PowerCut> {
        let name = format!("p{}", self.random.below(8));
        let known = self.clients.objects.get(&name).cloned();
        match (known, self.random.below(4)) {
            (None, _) => {
                self.clients.pods_made += 1;
                let uid = format!("6f1c0f5e-7b1d-4d0c-9d5b-{:0>12}", self.clients.pods_made);
                let object = Object { uid, shape: self.random.below(shapes::COUNT), leaving: None };
                self.commit(&name, Some(&object), Expect::Absent)?;
                self.take(&name, &object);
            }
            (Some(object), 0) => {
                // Without grace: nobody wants to know of it any more.
                self.commit(&name, None, Expect::Present)?;
                let pod = PodUid::from(object.uid.as_str());
                self.node.handle(self.now, Input::DeleteRequested { pod, grace_seconds: Some(0) });
            }
            (Some(object), 1 | 2) if object.leaving.is_none() => {
                let object = Object { leaving: Some(30), ..object };
                self.commit(&name, Some(&object), Expect::Present)?;
                let pod = PodUid::from(object.uid.as_str());
                self.node.handle(self.now, Input::DeleteRequested { pod, grace_seconds: Some(30) });
            }
            (Some(_), _) => {}
        }
        self.run_for(secs(0))
    }

    /// Commits an object and answers the client.
    fn commit(&mut self, name: &str, object: Option<&Object>, expect: Expect) -> Result<(), PowerCut> {
        self.clients.asked = Some((name.to_owned(), object.cloned()));
        let batch = match object {
            Some(object) => Batch::new().put(key(name), &object.uid, object.to_bytes(), expect),
            None => Batch::new().delete(key(name), expect),
        };
        match self.store.commit(self.now, batch) {
            Ok(_) => {}
            Err(CommitError::Disk(_)) => return Err(PowerCut),
            Err(error) => panic!("{error}"),
        }
        self.clients.asked = None;
        self.clients.answered(name, object.cloned());
        self.clients.version = self.store.version();
        Ok(())
    }

    /// Lives for so long; what is to be persisted goes to the store, and the store is advanced when it wants to be.
    pub(crate) fn run_for(&mut self, time: Duration) -> Result<(), PowerCut> {
        let end = self.now + time;
        loop {
            while let Some(action) = self.node.poll_action() {
                self.obey(action);
            }
            self.show()?;
            let answer = self.due.keys().next().map(|(at, _)| *at);
            let next = [answer, self.node.next_wake(), self.store.next_wake()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let input = entry.remove();
                self.node.handle(self.now, input);
            }
            self.node.advance(self.now);
            self.store.advance(self.now).map_err(|_| PowerCut)?;
        }
        self.now = end;
        Ok(())
    }

    /// What is on the disk may be seen.
    fn show(&mut self) -> Result<(), PowerCut> {
        let ready: Vec<PodUid> = self.waiting.keys().filter(|uid| !self.store.is_pending(&uid.0)).cloned().collect();
        let booted = self.clients.booted;
        for uid in ready {
            let Some(waiting) = self.waiting.remove(&uid) else { continue };
            let known = self.clients.objects.iter().find(|(_, object)| *object.uid == *uid.0);
            let Some(name) = known.map(|(name, _)| name.clone()) else {
                if waiting.is_forgotten {
                    self.store.forget(self.now, &uid.0);
                }
                continue;
            };
            if let Some(status) = waiting.status {
                let batch =
                    Batch::new().status(key(&name), format!("{:?}", status.phase).into_bytes(), Expect::Present);
                self.store.post(batch).expect("a status needs no disk");
                self.clients.shown.entry(uid.0.to_string()).or_default().see(&uid.0, &status, booted);
                self.clients.version = self.store.version();
            }
            if waiting.is_gone {
                self.commit(&name, None, Expect::Present)?;
            }
            // Its record goes last.
            if waiting.is_forgotten {
                self.store.forget(self.now, &uid.0);
            }
        }
        Ok(())
    }

    fn obey(&mut self, action: Action) {
        let soon = Duration::from_millis(50);
        match action {
            Action::SetUp { pod, attempt } => {
                // Its own, as the shell gives it: by its uid.
                let number: u64 = pod.0[24..].parse().expect("it ends in a number");
                self.answer(soon, Input::SandboxReady { pod, attempt, ips: vec![format!("127.1.0.{number}")] });
            }
            Action::PullImage { instance } => {
                self.answer(soon, Input::ImageReady { instance, image_id: "sha256:0123".into(), pulled: None });
            }
            Action::Start { instance } => {
                let done = (instance.pod.clone(), instance.container.to_string());
                assert!(!self.completed.contains(&done), "an init container runs again: {done:?}");
                let id = format!("husk://{}/{}/{}", instance.pod, instance.container, instance.attempt);
                self.answer(soon, Input::Started { instance: instance.clone(), id });
                if let Guest { lives: Some(lives), code, .. } = shapes::guest(&instance.container, instance.attempt) {
                    self.exit(soon + lives, instance, Outcome::Code(code));
                }
            }
            Action::Signal { instance, .. } => {
                if let Some(takes) = shapes::guest(&instance.container, instance.attempt).stops_in {
                    self.exit(takes, instance, Outcome::Signal(15));
                }
            }
            Action::Kill { instance } => self.exit(soon, instance, Outcome::Signal(9)),
            Action::RunHook { instance, hook } => {
                self.answer(secs(4), Input::HookDone { instance, hook, result: Ok(()) });
            }
            Action::Teardown { pod, attempt } => self.answer(soon, Input::TornDown { pod, attempt }),
            Action::Persist { pod, urgency } => {
                let record = self.node.record(&pod).expect("a pod that is to be persisted");
                self.store.persist(self.now, &pod.0, record.to_bytes(), urgency);
            }
            Action::StatusChanged { pod } => {
                self.waiting.entry(pod.clone()).or_default().status = self.node.status(&pod).cloned();
            }
            Action::Gone { pod } => self.waiting.entry(pod).or_default().is_gone = true,
            Action::Forget { pod } => self.waiting.entry(pod).or_default().is_forgotten = true,
            _ => {}
        }
    }

    fn exit(&mut self, after: Duration, instance: InstanceRef, outcome: Outcome) {
        self.answer(after, Input::Exited { instance, outcome, message: String::new() });
    }

    fn answer(&mut self, after: Duration, input: Input) {
        self.sequence += 1;
        self.due.insert((self.now + after, self.sequence), input);
    }
}

impl Clients {
    fn answered(&mut self, name: &str, object: Option<Object>) {
        match object {
            Some(object) => self.objects.insert(name.to_owned(), object),
            None => self.objects.remove(name),
        };
    }

    /// After a start: what was answered is there, and what was seen is so.
    fn check(&mut self, store: &Store, records: &[PodRecord], after: Option<Interruption>) {
        let booted = self.booted;
        assert!(store.version() >= self.version, "versions go on: {} after {}", store.version(), self.version);
        let list = store.list(PODS).objects;
        let there: BTreeMap<String, Object> =
            list.iter().map(|object| (object.key.name().to_owned(), Object::from_bytes(&object.body))).collect();
        if let Some((name, object)) = self.asked.take()
            && there.get(&name) == object.as_ref()
        {
            self.answered(&name, object);
        }
        assert_eq!(there, self.objects, "what was answered");
        let uids: BTreeSet<&str> = there.values().map(|object| object.uid.as_str()).collect();
        self.shown.retain(|uid, _| uids.contains(uid.as_str()));
        for object in there.values() {
            let Some(shown) = self.shown.get(&object.uid) else { continue };
            let record = records.iter().find(|record| *record.uid().0 == *object.uid);
            let Some(record) = record else { panic!("no record of {object:?}, of which was seen {shown:?}") };
            // After a reboot volumes in memory are empty, and they run again (INIT-06); so they do where all containers begin again.
            if after == Some(Interruption::AgentRestart) && object.shape != shapes::RESTARTS_ALL {
                let completed = completed_init(record.status(), booted);
                assert!(shown.completed_init.is_subset(&completed), "{shown:?} and then {record:#?}");
            }
            shown.clone().see(&object.uid, record.status(), booted);
        }
    }
}
