//! Records that agents in the field have persisted open, and go on, in every later version.
//!
//! **The files in `version-1` are never written anew**, whatever a change breaks here: there are devices with just such bytes.
//! Whoever changes what a pod is made of gives the format another version (`src/record.rs`), which reads those of this one on, and
//! adds records of it in a folder beside: `HUSK_NEW_RECORDS=FOLDER cargo test -p husk-core --test record golden` writes them.

use husk_core::io::{Hook, Outcome, ProbeOutcome};
use husk_core::placement::{Placement, PodTerm, SpreadConstraint};
use husk_core::quantity::Quantity;
use husk_core::record::Interruption::{AgentRestart, Handover, Reboot};
use husk_core::record::{Interruption, PodRecord, RecordError};
use husk_core::scheduling::{NodeDemand, NodeSelectorRequirement, NodeSelectorTerm, Toleration, TolerationOperator};
use husk_core::selector::Selector;
use husk_core::spec::RestartPolicy::{Always, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, PodSpec, Probe, ProbeKind, PullPolicy, ResourceList, Resources};
use husk_core::status::{ConditionStatus, Phase};
use husk_core::{Action, Input, Instant};

use crate::interrupted::restart_all;
use crate::world::{Life, OnSignal, Script, World, container, exits, pod, probe, secs, sidecar};
use crate::*;

const ALL: [Interruption; 3] = [Handover, AgentRestart, Reboot];

const INIT: &[u8] = include_bytes!("version-1/init.record");
const CRASH_LOOP: &[u8] = include_bytes!("version-1/crash-loop.record");
const RESTART_ALL: &[u8] = include_bytes!("version-1/restart-all.record");
const ENDING: &[u8] = include_bytes!("version-1/ending.record");
const PROBED: &[u8] = include_bytes!("version-1/probed.record");
const RESIZED: &[u8] = include_bytes!("version-1/resized.record");
const WAITING: &[u8] = include_bytes!("version-1/waiting.record");

/// Pods in the midst of something: how the records came about, and how those of another version will.
fn in_the_midst() -> [(&'static str, World); 7] {
    let mut init = World::with(with_inits(), &INITS());
    init.run_until(3.0);

    let mut crash_loop = World::with(app(Always), &[("a0", exits(1, 1))]);
    crash_loop.run_until(20.0);

    let asks = Script { lives: vec![Life::Exit(secs(10), Outcome::Code(42)), Life::Forever], ..Script::default() };
    let mut restart_all = World::with(restart_all(), &[("i0", exits(1, 0)), ("a0", asks)]);
    restart_all.run_until(10.9);
    restart_all.run_until_ordered(|action| matches!(action, Action::Kill { .. }));

    let stubborn = Script {
        on_signal: OnSignal::Ignores,
        hooks: [(Hook::PreStop, (secs(5), Ok(())))].into(),
        ..Script::default()
    };
    let mut ending = World::with(hooked(), &[("a0", stubborn)]);
    ending.run_until(10.0);
    ending.delete(None);
    ending.run_until(16.0);

    let slow = (ProbeKind::Startup, secs(0), secs(15), ProbeOutcome::Failure);
    let fails = (ProbeKind::Readiness, secs(30), secs(100), ProbeOutcome::Failure);
    let mut probed = World::with(probed(), &[("a0", Script { probes: vec![slow, fails], ..Script::default() })]);
    probed.run_until(67.0);

    let mut resized = World::empty(Default::default(), &[]);
    resized.input(room("2"));
    resized.apply("p", "u1", asking("600m"));
    resized.run_until(10.0);
    resized.apply("p", "u1", asking("1200m"));
    resized.apply("q", "u2", asking("600m"));
    resized.apply("p", "u1", asking("1500m"));
    resized.run_until(11.0);

    let mut waiting = World::with(with_everything(), &[]);
    waiting.run_until(5.0);
    [
        ("init", init),
        ("crash-loop", crash_loop),
        ("restart-all", restart_all),
        ("ending", ending),
        ("probed", probed),
        ("resized", resized),
        ("waiting", waiting),
    ]
}

#[test]
fn pods_in_the_midst_of_something_have_records_of_this_version() {
    let folder = std::env::var_os("HUSK_NEW_RECORDS").map(std::path::PathBuf::from);
    for (name, world) in in_the_midst() {
        let bytes = world.node.record(&world.uid).expect("a record").to_bytes();
        assert!(PodRecord::from_bytes(&bytes).is_ok(), "{name}");
        if let Some(folder) = &folder {
            std::fs::write(folder.join(name).with_extension("record"), bytes).expect("a folder that can be written to");
        }
    }
}

#[test]
fn version_1_is_read_and_one_that_nobody_knows_is_refused_and_says_what_to_do() {
    for bytes in [INIT, CRASH_LOOP, RESTART_ALL, ENDING, PROBED, RESIZED, WAITING] {
        assert_eq!(bytes[0], 1);
        assert!(PodRecord::from_bytes(bytes).is_ok());
        let unknown = [&[200], &bytes[1..]].concat();
        let error = PodRecord::from_bytes(&unknown).expect_err("nobody knows that version");
        assert_eq!(error, RecordError::Version(200));
        let message = error.to_string();
        for says in ["format version 200", "reads version 1", "delete it and the pod is started anew from its object"] {
            assert!(message.contains(says), "{message}");
        }
    }
}

// spec: TERM-11, INIT-06
#[test]
fn init_half_done() {
    for after in ALL {
        let mut world = World::from_record(INIT, after, &INITS());
        assert_eq!((world.now, world.phase()), (Instant::from_secs(1003), Phase::Pending));
        if after == Handover {
            let i1 = world.runs("i1", 0);
            world.will_end(i1, 2, Outcome::Code(0));
        }
        world.run_until(20.0);
        let starts = ["i0", "i1", "a0"].map(|name| world.starts(name));
        let expected: [&[f64]; 3] = match after {
            Handover => [&[], &[], &[5.0]],
            AgentRestart => [&[], &[3.0], &[6.0]],
            Reboot => [&[3.0], &[5.0], &[8.0]],
        };
        assert_eq!(starts, expected, "{after:?}");
        assert_eq!(world.phase(), Phase::Running);
    }
}

// spec: TERM-11, RESTART-02
#[test]
fn in_a_crash_loop() {
    for after in ALL {
        let mut world = World::from_record(CRASH_LOOP, after, &[("a0", exits(1, 1))]);
        assert_eq!(world.now, Instant::from_secs(1020));
        assert_eq!(world.container("a0").restart_count, 2);
        world.run_until(32.0);
        if after == Handover {
            assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
        }
        world.run_until(100.0);
        // Ended at 13 and waits 20 s, then 40 s.
        assert_eq!(world.starts("a0"), [33.0, 74.0], "{after:?}");
        assert_eq!(world.container("a0").restart_count, 4);
    }
}

// spec: RESTART-09
#[test]
fn restart_all_half_done() {
    for after in ALL {
        let mut world = World::from_record(RESTART_ALL, after, &[("i0", exits(1, 0))]);
        if after == Handover {
            let a1 = world.runs("a1", 0);
            world.will_end(a1, 1, Outcome::Signal(9));
        }
        world.run_until(60.0);
        let starts = ["i0", "a0", "a1"].map(|name| world.starts(name).len());
        let counts = ["i0", "a0", "a1"].map(|name| world.container(name).restart_count);
        assert_eq!((starts, counts), ([1, 1, 1], [1, 1, 1]), "{after:?}");
        assert_eq!(world.condition("AllContainersRestarting").status, ConditionStatus::False);
        assert_eq!(world.phase(), Phase::Running);
    }
}

// spec: TERM-07
#[test]
fn ending_half_done() {
    for after in ALL {
        let stubborn = Script { on_signal: OnSignal::Ignores, ..Script::default() };
        let mut world = World::from_record(ENDING, after, &[("a0", stubborn)]);
        let deletion = world.node.deletion(&world.uid).expect("it is being deleted");
        assert_eq!((deletion.grace_seconds, deletion.timestamp), (30, Instant::from_secs(1040)));
        if after == Handover {
            world.runs("a0", 0);
            world.runs("s0", 0);
            world.run_until(39.0);
            assert!(!world.is_gone() && world.kills("a0").is_empty(), "its grace is not over");
            world.run_until(50.0);
            // The hook is over and it had its signal; the sidecar's turn is after it.
            assert_eq!((world.hooks("a0", Hook::PreStop), world.signals("a0")), (vec![], vec![]));
            assert_eq!((world.kills("a0"), world.signals("s0")), (vec![40.0], vec![40.0]));
        }
        world.run_until(100.0);
        assert!(world.is_gone() && world.forgotten.contains(&world.uid), "{after:?}");
        assert!(world.starts("a0").is_empty() && world.starts("s0").is_empty());
    }
}

// spec: NODE-03, PROBE-07
#[test]
fn probed_and_not_ready() {
    for after in ALL {
        let mut world = World::from_record(PROBED, after, &[]);
        assert_eq!(world.now, Instant::from_secs(1067));
        assert_eq!(readiness(&world), ConditionStatus::False);
        world.run_until(100.0);
        assert_eq!(readiness(&world), ConditionStatus::True);
        let probes = ProbeKind::ALL.map(|kind| world.probes("a0", kind));
        let expected: [&[f64]; 3] = match after {
            // They go on as they were: startup has its verdict, it succeeded at 20.
            Handover => [&[70.0, 80.0, 90.0, 100.0], &[75.0, 85.0, 95.0], &[]],
            AgentRestart | Reboot => [&[67.0, 77.0, 87.0, 97.0], &[72.0, 82.0, 92.0], &[67.0]],
        };
        assert_eq!(probes, expected, "{after:?}");
    }
}

// spec: RES-11
#[test]
fn a_resize_that_waits() {
    for after in ALL {
        let mut world = World::from_record(RESIZED, after, &[]);
        world.run_until(12.0);
        assert_eq!(world.condition("PodResizePending").reason, "Deferred");
        assert_eq!(world.container("a0").allocated_resources, cpu("1200m"));
        world.input(room("4"));
        world.run_until(13.0);
        assert_eq!(world.container("a0").allocated_resources, cpu("1500m"), "{after:?}");
        assert!(world.status().conditions.iter().all(|condition| condition.kind != "PodResizePending"));
    }
}

// spec: META-10
#[test]
fn everything_that_a_spec_can_say_is_read_as_it_was_written() {
    for after in ALL {
        let mut world = World::from_record(WAITING, after, &[]);
        assert_eq!(world.node.spec(&world.uid), Some(&with_everything()));
        assert_eq!(world.condition("PodScheduled").reason, "SchedulingGated");
        world.run_until(50.0);
        assert!(world.orders.is_empty(), "{after:?}: {:?}", world.orders);
        world.apply("p", "u1", PodSpec { placement: Placement::default(), ..with_everything() });
        world.run_until(60.0);
        assert_eq!(world.starts("i0"), [50.0], "{after:?}");
    }
}

fn hooked() -> PodSpec {
    let a0 = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    pod(Always, vec![sidecar("s0")], vec![a0])
}

fn probed() -> PodSpec {
    let startup_probe = Some(probe(Handler::TcpSocket));
    pod(
        Always,
        vec![],
        vec![ContainerSpec { startup_probe, liveness_probe: Some(probe(Handler::Exec)), ..ready_probe() }],
    )
}

fn cpu(amount: &str) -> ResourceList {
    [("cpu".into(), Quantity::parse(amount).expect("an amount"))].into()
}

fn asking(amount: &str) -> PodSpec {
    let resources = Resources { requests: cpu(amount), ..Resources::default() };
    pod(Always, vec![], vec![ContainerSpec { resources, ..container("a0") }])
}

fn room(amount: &str) -> Input {
    let state = husk_core::admission::NodeState { allocatable: Some(cpu(amount)), ..Default::default() };
    Input::NodeChanged { state: Box::new(state) }
}

/// No field is as it would be by default.
fn with_everything() -> PodSpec {
    let text = |text: &str| String::from(text);
    let amounts = |list: &[(&str, &str)]| -> ResourceList {
        list.iter().map(|(name, amount)| (text(name), Quantity::parse(amount).expect("an amount"))).collect()
    };
    let resources = Resources {
        requests: amounts(&[("cpu", "100m"), ("memory", "16Mi")]),
        limits: amounts(&[("memory", "32Mi"), ("gpio.husk.dev/relay-1", "1")]),
    };
    let labels = || [(text("app"), text("pump")), (text("zone"), text("a"))].into();
    let requirement = || NodeSelectorRequirement { key: text("k"), operator: text("In"), values: vec![text("v")] };
    let selector = || Selector::parse("app=pump,zone notin (a,b),!gone").expect("a selector");
    let term = || PodTerm {
        topology_key: text("zone"),
        selector: selector(),
        namespaces: vec![text("n")],
        namespace_selector: Some(selector()),
    };
    let special = Probe {
        initial_delay_seconds: 3,
        period_seconds: 7,
        timeout_seconds: 2,
        success_threshold: 2,
        failure_threshold: 4,
        termination_grace_period_seconds: Some(9),
        ..probe(Handler::Grpc)
    };
    let full = ContainerSpec {
        image: text("registry.example/pump:2"),
        image_pull_policy: PullPolicy::Always,
        hash: u64::MAX,
        restart_policy_rules: restart_all().containers[0].restart_policy_rules.clone(),
        restart_policy: Some(OnFailure),
        liveness_probe: Some(special.clone()),
        readiness_probe: Some(special.clone()),
        startup_probe: Some(special),
        post_start: Some(Handler::Sleep(2)),
        pre_stop: Some(Handler::HttpGet),
        stop_signal: Some(text("SIGUSR1")),
        resources: resources.clone(),
        resize_policy: [(text("cpu"), husk_core::spec::ResizeRestartPolicy::RestartContainer)].into(),
        ..container("a0")
    };
    PodSpec {
        ephemeral_containers: vec![ContainerSpec { target_container_name: Some(text("a0")), ..container("e0") }],
        active_deadline_seconds: Some(3600),
        readiness_gates: vec![text("example.com/gate")],
        priority: Some(-7),
        resources: Some(resources),
        overhead: amounts(&[("memory", "1Mi")]),
        host_network: true,
        os: Some(text("linux")),
        placement: Placement {
            demand: NodeDemand {
                node_selector: labels(),
                required_terms: Some(vec![NodeSelectorTerm {
                    expressions: vec![requirement()],
                    fields: vec![requirement()],
                }]),
            },
            tolerations: vec![Toleration {
                key: text("k"),
                operator: TolerationOperator::Equal,
                value: text("v"),
                effect: text("NoExecute"),
                seconds: Some(60),
            }],
            affinity: vec![term()],
            anti_affinity: vec![term()],
            spread: vec![SpreadConstraint {
                topology_key: text("zone"),
                selector: selector(),
                max_skew: 2,
                min_domains: 3,
            }],
            gates: vec![text("example.com/hold")],
            group: Some(text("gang")),
            never_preempts: true,
        },
        ..pod(OnFailure, vec![container("i0"), sidecar("s0")], vec![full])
    }
}
