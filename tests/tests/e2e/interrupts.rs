//! Ctrl-C: gracefully, then with less grace, then at once.

use crate::husk::{FAILED, TIMED_OUT, ended, run_text, start};

const STUBBORN: &str = "
apiVersion: v1
kind: Pod
metadata: {name: stubborn}
spec:
  terminationGracePeriodSeconds: 3600
  containers:
  - name: app
    image: busybox
    command: [sh, -c, \"trap '' TERM; echo deaf; while true; do sleep 1; done\"]
";

fn stubborn() -> (tempfile::TempDir, crate::husk::Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, STUBBORN).expect("written");
    let mut run = start(&path, &["--data-dir", &folder.path().join("data").display().to_string()]);
    run.wait_for_log("app", "deaf");
    (folder, run)
}

// spec: TERM-05
#[test]
fn a_second_interrupt_cuts_the_grace_and_kills() {
    let (_folder, mut run) = stubborn();
    run.interrupt();
    run.wait_for(|o| o["type"] == "event" && o["reason"] == "Killing");
    run.interrupt();
    let ended = run.finish();
    assert_eq!(ended.code, Some(FAILED));
    assert_eq!(ended.terminated("app")["exitCode"], 137);
}

#[test]
fn a_third_interrupt_ends_it_at_once() {
    let (folder, mut run) = stubborn();
    for said in ["again for less grace", "again to kill", "killing"] {
        run.interrupt();
        run.wait_for(|o| o["type"] == "note" && o["text"].as_str().is_some_and(|text| text.contains(said)));
    }
    let run = run.finish();
    assert_eq!(run.code, Some(FAILED));
    assert_eq!(run.seen.last().expect("something")["type"], "gone");
    // Nobody waited for its end, as the second one does; even so nothing is left behind.
    assert!(run.seen.iter().all(|o| ended(o, "app").is_null()), "{:#?}", run.seen);
    let pods = std::fs::read_dir(folder.path().join("data/pods")).into_iter().flatten().flatten();
    assert_eq!(pods.count(), 0);
}

#[test]
fn time_that_is_up_ends_a_pod_gracefully() {
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  containers:
  - name: app
    image: busybox
    command: [sh, -c, \"trap 'echo bye; exit 0' TERM; while true; do sleep 1; done\"]
";
    let ended = run_text(pod, &["--timeout", "5s"]);
    assert_eq!(ended.code, Some(TIMED_OUT), "{}", ended.stderr);
    assert_eq!(ended.log("app"), ["bye"]);
}
