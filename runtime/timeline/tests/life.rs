//! Pods of a real node, each order answered at once, as their recorders see them.

use std::time::Duration;

use husk_core::admission::NodeState;
use husk_core::io::{InstanceRef, Outcome, PodUid, ProbeOutcome};
use husk_core::record::Interruption as After;
use husk_core::spec::{ContainerSpec, Handler, PodMeta, PodSpec, Probe, ProbeKind};
use husk_core::{Action, Input, Instant, Node, NodeConfig};
use husk_timeline::{Document, Interruption, Kind, LaneState, Recorder, Timeline, rows};

const BYTES: usize = 8 << 10;
const UID: &str = "0b1c6f0e-6a3e-4a55-9d8b-2f7f7f0d0a11";

/// A node with one pod, whose containers run until they are told otherwise.
struct World {
    node: Node,
    now: Instant,
    recorder: Recorder,
    /// How long an instance runs, and with which code it ends.
    runs: Option<(Duration, i32)>,
    ends: Vec<(Instant, InstanceRef)>,
    are_well: bool,
}

impl World {
    fn new(spec: &PodSpec) -> Self {
        Self::with(spec, None)
    }

    /// Each instance runs so long, and ends with that code.
    fn ending(spec: &PodSpec, after: u64, code: i32) -> Self {
        Self::with(spec, Some((Duration::from_secs(after), code)))
    }

    fn with(spec: &PodSpec, runs: Option<(Duration, i32)>) -> Self {
        // No whole number of microseconds, as clocks have it.
        let (meta, now) = (meta(), Instant::from_nanos(1_000_000_000_777));
        let recorder = Recorder::bounded(now, &meta, spec, BYTES);
        let node = Node::new(NodeConfig { node_name: "edge-7".into(), ..NodeConfig::default() });
        let mut world = Self { node, now, recorder, runs, ends: Vec::new(), are_well: true };
        world.tell(Input::NodeChanged { state: Box::new(NodeState { os: "linux".into(), ..NodeState::default() }) });
        world.tell(Input::Applied { meta, spec: Box::new(spec.clone()) });
        world
    }

    fn tell(&mut self, input: Input) {
        self.recorder.input(self.now, &input);
        self.node.handle(self.now, input);
        self.settle();
    }

    fn settle(&mut self) {
        let mut answers = Vec::new();
        while let Some(action) = self.node.poll_action() {
            self.recorder.action(self.now, &action);
            answers.extend(self.answer(action));
        }
        if let Some(status) = self.node.status(&UID.into()) {
            self.recorder.settled(self.now, status);
        }
        for answer in answers {
            self.now = self.now + Duration::from_micros(1500);
            self.tell(answer);
        }
    }

    fn answer(&mut self, action: Action) -> Option<Input> {
        Some(match action {
            Action::SetUp { pod, attempt } => Input::SandboxReady { pod, attempt, ips: vec!["127.1.0.1".into()] },
            Action::PullImage { instance } => Input::ImageReady { instance, image_id: "sha256:1".into(), pulled: None },
            Action::Start { instance } => {
                if let Some((time, _)) = self.runs {
                    self.ends.push((self.now + time, instance.clone()));
                }
                Input::Started { instance, id: "husk://1".into() }
            }
            Action::Signal { instance, .. } | Action::Kill { instance } => {
                self.ends.retain(|(_, other)| *other != instance);
                Input::Exited { instance, outcome: Outcome::Signal(15), message: String::new() }
            }
            Action::RunProbe { instance, kind, run, .. } => {
                let result = if self.are_well { ProbeOutcome::Success } else { ProbeOutcome::Failure };
                Input::ProbeResult { instance, kind, run, result, message: "it doesn't answer".into() }
            }
            Action::Teardown { pod, attempt } => Input::TornDown { pod, attempt },
            _ => return None,
        })
    }

    /// Lets time pass.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let end = self.ends.iter().map(|(at, _)| *at).min();
            let next = [end, self.node.next_wake()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if end == Some(next)
                && let Some(place) = self.ends.iter().position(|(at, _)| *at == next)
            {
                let (_, instance) = self.ends.remove(place);
                let code = self.runs.map_or(0, |(_, code)| code);
                self.tell(Input::Exited { instance, outcome: Outcome::Code(code), message: String::new() });
            } else {
                self.node.advance(self.now);
                self.settle();
            }
        }
        self.now = self.now.max(until);
    }

    fn timeline(&self) -> Timeline {
        self.recorder.timeline(self.now)
    }
}

fn meta() -> PodMeta {
    PodMeta { namespace: "default".into(), name: "web".into(), uid: UID.into(), ..PodMeta::default() }
}

fn spec() -> PodSpec {
    let container = ContainerSpec { name: "app".into(), image: "busybox".into(), ..ContainerSpec::default() };
    PodSpec { containers: vec![container], ..PodSpec::default() }
}

fn probed(kind: ProbeKind) -> PodSpec {
    let mut spec = spec();
    let probe = Some(Probe {
        handler: Handler::HttpGet,
        initial_delay_seconds: 0,
        period_seconds: 10,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace_period_seconds: None,
    });
    match kind {
        ProbeKind::Liveness => spec.containers[0].liveness_probe = probe,
        ProbeKind::Readiness => spec.containers[0].readiness_probe = probe,
        ProbeKind::Startup => spec.containers[0].startup_probe = probe,
    }
    spec
}

/// As a client makes of it what the agent says.
fn sent(timeline: &Timeline) -> Timeline {
    let json = serde_json::to_string(&Document::of(timeline)).expect("JSON");
    let document: Document = serde_json::from_str(&json).expect("a document");
    document.timeline().expect("a timeline")
}

#[test]
fn an_idle_pod_takes_less_than_a_kilobyte_however_long_it_idles() {
    let mut world = World::new(&probed(ProbeKind::Liveness));
    world.wait(Duration::from_secs(60));
    let size = world.recorder.size();
    assert!(size <= 1024, "{size}");
    world.wait(Duration::from_secs(24 * 3600));
    assert_eq!(world.recorder.size(), size);
    let timeline = world.timeline();
    let [probes] = timeline.lanes[0].probes.as_slice() else { panic!("{:?}", timeline.lanes[0].probes) };
    assert!(probes.ok && probes.count > 8_000, "{probes:?}");
    let drawn: Vec<_> = probes.times(Duration::from_secs(3600)).collect();
    assert_eq!((drawn.len(), drawn[0]), (25, probes.at));
}

#[test]
fn a_month_of_crashes_takes_what_is_allowed_and_tells_the_newest() {
    let mut world = World::ending(&probed(ProbeKind::Readiness), 20, 3);
    world.wait(Duration::from_secs(30 * 24 * 3600));
    let size = world.recorder.size();
    assert!(size <= BYTES + 1024, "{size}");
    let timeline = world.timeline();
    let since = timeline.complete_since.expect("something was forgotten");
    assert!(since > timeline.begin);
    let lane = &timeline.lanes[0];
    assert!(lane.restarts > 5_000, "{}", lane.restarts);
    let newest = lane.exits.iter().filter(|exit| exit.code == 3 && exit.at >= since).count();
    assert!(newest >= 8, "{newest}");
    assert!(lane.states.iter().any(|(_, state)| *state == LaneState::BackOff("CrashLoopBackOff".into())));
    // Since then it has been scheduled and initialized, however much was forgotten.
    for kind in ["PodScheduled", "Initialized"] {
        assert!(timeline.conditions.iter().any(|condition| condition.kind == kind), "{kind}");
    }
    assert_eq!(timeline.phases.len(), 1);
}

#[test]
fn what_is_sent_is_what_was_recorded() {
    let mut world = World::ending(&probed(ProbeKind::Readiness), 50, 3);
    world.wait(Duration::from_secs(300));
    world.are_well = false;
    world.wait(Duration::from_secs(60));
    world.tell(Input::DeleteRequested { pod: PodUid::from(UID), grace_seconds: None });
    world.wait(Duration::from_secs(60));
    let timeline = world.timeline();
    assert!(timeline.gone.is_some());
    let received = sent(&timeline);
    let json = |timeline: &Timeline| serde_json::to_value(Document::of(timeline)).expect("JSON");
    assert_eq!(json(&received), json(&timeline));
    // In every respect that can be drawn.
    assert_eq!(sent(&received), received);
    let lane = (&timeline.lanes[0], &received.lanes[0]);
    assert_eq!(
        (lane.0.states.len(), lane.0.probes.len(), lane.0.exits.len()),
        (lane.1.states.len(), lane.1.probes.len(), lane.1.exits.len())
    );
    let nonsense = r#"{"kind":"Timeline","apiVersion":"husk.dev/v1","pod":"a/b","seconds":1,"phase":"Running","gone":false,
        "containers":[],"changes":[{"seconds":0,"kind":"phase","what":"Flying"}]}"#;
    let nonsense: Document = serde_json::from_str(nonsense).expect("a document");
    assert!(nonsense.timeline().expect_err("no phase").to_string().contains("Flying"));
}

#[test]
fn after_a_restart_the_line_begins_with_what_the_record_says() {
    let mut world = World::ending(&spec(), 20, 3);
    world.wait(Duration::from_secs(75));
    let record = world.node.record(&UID.into()).expect("a record");
    let before = world.timeline();
    let now = Instant::from_nanos((world.now + Duration::from_secs(30)).as_nanos() / 1_000 * 1_000);
    for (after, what) in
        [(After::AgentRestart, Interruption::AgentRestarted), (After::Reboot, Interruption::NodeRebooted)]
    {
        let since = now + Duration::from_nanos(700);
        let timeline = Recorder::restored(since, &record, after, BYTES).timeline(since);
        let received = sent(&timeline);
        assert_eq!(
            received.complete_since,
            Some(received.interruptions[0].0),
            "it is the same instant for who draws it"
        );
        assert_eq!(timeline.interruptions, [(now, what)]);
        assert_eq!((timeline.complete_since, timeline.origin), (Some(now), before.origin));
        let (known, all) = (&timeline.lanes[0], &before.lanes[0]);
        assert_eq!(known.restarts, all.restarts);
        // Microseconds are enough for people.
        assert_eq!(known.exits.last(), all.exits.last());
        let reasons = |timeline: &Timeline| {
            let events = rows(timeline).into_iter().filter(|row| row.kind == Kind::Event);
            events.map(|row| row.what).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(reasons(&timeline), reasons(&before));
    }
}

#[test]
fn only_the_end_is_shown_and_what_was_so_then() {
    let mut world = World::ending(&spec(), 20, 3);
    world.wait(Duration::from_secs(75));
    let begin = Instant::ZERO + (world.now.since_epoch() - Duration::from_secs(15));
    let whole = world.timeline();
    let end = whole.clone().since(begin);
    assert_eq!((end.begin, end.end), (begin, whole.end));
    assert_eq!(end.phases, [(begin, whole.last_phase())]);
    let before = whole.lanes[0].states.iter().rev().find(|(at, _)| *at <= begin).expect("a state");
    assert_eq!(end.lanes[0].states.first(), Some(&(begin, before.1.clone())));
    assert!(end.events.iter().all(|event| event.at >= begin));
    assert!(end.conditions.iter().any(|condition| condition.kind == "PodScheduled" && condition.at == begin));
}
