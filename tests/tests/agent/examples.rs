//! The examples in an agent on an empty folder: from files, and applied by a client.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::husk::{container, example};
use crate::world::{World, is_ready};

/// The only one that isn't a pod.
const JOB: &str = "log-shipper.yaml";
/// Pods of the others.
const PODS: [&str; 11] = [
    "blue",
    "crash-loop",
    "demo",
    "graceful-stop",
    "hello",
    "init-order",
    "limits",
    "probes",
    "red",
    "restart-rules",
    "shop",
];

fn manifests() -> Vec<PathBuf> {
    let all = example("").read_dir().expect("examples").map(|entry| entry.expect("readable").path());
    all.filter(|path| !path.to_string_lossy().ends_with(".scenario.yaml")).collect()
}

#[test]
fn a_folder_of_examples_is_run() {
    let mut world = World::without_agent(&[]);
    for path in manifests() {
        let name = path.file_name().expect("a file");
        std::fs::copy(&path, world.path("manifests").join(name)).expect("copied");
    }
    world.start();
    do_what_their_comments_say(&mut world, "-edge-7");
    let of_job =
        |line: &str| line.contains(JOB) && line.contains("a Job needs a controller: write its Pod into the file");
    assert!(world.log().lines().any(of_job), "{}", world.log());
    // A pod whose file is gone ends as one that is deleted.
    let listener = follow(&world, "graceful-stop-edge-7");
    std::fs::remove_file(world.path("manifests/graceful-stop.yaml")).expect("it is there");
    world.gone("graceful-stop-edge-7");
    listener.ends_in_order();
}

#[test]
fn examples_are_applied() {
    let mut world = World::new(&[]);
    for path in manifests().iter().filter(|path| !path.ends_with(JOB)) {
        let applied = world.husk(&["apply", "-f", &path.to_string_lossy()]).output().expect("husk starts");
        assert!(applied.status.success() && applied.stderr.is_empty(), "{}: {applied:?}", path.display());
    }
    do_what_their_comments_say(&mut world, "");
    let listener = follow(&world, "graceful-stop");
    let deleted = world.husk(&["delete", "pod", "graceful-stop"]).output().expect("husk starts");
    assert!(deleted.status.success(), "{deleted:?}");
    listener.ends_in_order();
    let job = world.husk(&["apply", "-f", &example(JOB).to_string_lossy()]).output().expect("husk starts");
    let said = String::from_utf8_lossy(&job.stderr);
    assert!(!job.status.success() && said.contains("Job"), "{said}");
}

/// Those that go on for ever are seen at what is special about them.
fn do_what_their_comments_say(world: &mut World, suffix: &str) {
    let name = |pod: &str| format!("{pod}{suffix}");
    let phase = |pod: &Value| pod["status"]["phase"].clone();
    let pods = world.until("all of them", |world| {
        let list = world.get(crate::world::PODS)?.ok()["items"].as_array().cloned()?;
        let mut names: Vec<_> =
            list.iter().map(|pod| pod["metadata"]["name"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        (names.len() >= PODS.len()).then_some(names)
    });
    assert_eq!(pods, PODS.map(name));
    for pod in ["red", "blue", "shop", "probes", "graceful-stop"] {
        world.running(&name(pod));
    }
    for (pod, container, lines) in [
        ("hello", "hello", format!("Hello from {}\n", name("hello"))),
        ("init-order", "app", "first\nsecond\napp\n".into()),
    ] {
        world.pod_until(&name(pod), |pod| phase(pod) == "Succeeded");
        assert_eq!(world.written_by(&name(pod), container), Some(lines));
    }
    let crashes = world.pod_until(&name("crash-loop"), |pod| {
        let waiting = &container(&pod["status"], "flaky")["state"]["waiting"];
        waiting["reason"] == "CrashLoopBackOff"
    });
    assert_eq!(phase(&crashes), "Running");
    assert_eq!(container(&crashes["status"], "flaky")["lastState"]["terminated"]["exitCode"], 3);
    let limits = world.pod_until(&name("limits"), |pod| phase(pod) == "Failed");
    let hungry = &container(&limits["status"], "hungry")["state"]["terminated"];
    assert_eq!((&hungry["reason"], &hungry["exitCode"]), (&json!("OOMKilled"), &json!(137)));
    assert_eq!(world.written_by(&name("limits"), "neighbour").as_deref(), Some("all quiet here\n"));
    let rules = world.pod_until(&name("restart-rules"), |pod| phase(pod) == "Failed");
    let worker = container(&rules["status"], "worker");
    assert_eq!((&worker["restartCount"], &worker["state"]["terminated"]["exitCode"]), (&json!(1), &json!(7)));
    let webs = ["red", "blue"].map(|pod| world.running(&name(pod))["status"]["podIP"].clone());
    assert_ne!(webs[0], webs[1]);
    for pod in ["red", "blue"] {
        // It may have asked before there was an answer, which it says.
        let answers = format!("{} answers\n", name(pod));
        world.until(&answers, |world| world.written_by(&name(pod), "visitor")?.ends_with(&answers).then_some(()));
    }
    let demo = world.pod_until(&name("demo"), |pod| phase(pod) == "Succeeded");
    assert_eq!(container(&demo["status"], "cook")["restartCount"], 1);
    assert_eq!(container(&demo["status"], "cook")["state"]["terminated"]["exitCode"], 0);
    let printed = world.written_by(&name("demo"), "ticket-printer").unwrap_or_default();
    assert!(printed.ends_with("pancake for Barbara\nprinter off\n"), "{printed}");
    world.event(&name("probes"), "Killing", "failed liveness probe");
    world.pod_until(&name("probes"), |pod| {
        // On a busy machine it is restarted more than once.
        container(&pod["status"], "server")["restartCount"].as_u64() >= Some(1) && is_ready(pod)
    });
}

/// The sidecar's words, to its end.
struct Listener(std::process::Child);

fn follow(world: &World, pod: &str) -> Listener {
    let mut follow: Command = world.husk(&["logs", "-f", pod, "-c", "listener"]);
    let mut child = follow.stdout(Stdio::piped()).spawn().expect("husk starts");
    // It has begun when it says something.
    let mut first = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("a word");
    Listener(child)
}

impl Listener {
    fn ends_in_order(self) {
        let ended = self.0.wait_with_output().expect("it ends with the log");
        let words = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(words.ends_with("4 words were spoken\n"), "{words}");
    }
}
