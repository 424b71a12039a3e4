//! More rows of the contract on real containers.

use crate::husk::{FAILED, SUCCEEDED, run_text, start};

/// A pod of one container of a guest with these arguments.
fn pod(image: &str, args: &str, more: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: row}}
spec:
  restartPolicy: Never
  {more}
  containers:
  - name: app
    image: {image}
    args: {args}
"
    )
}

fn started(manifest: &str) -> (tempfile::TempDir, crate::husk::Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, manifest).expect("written");
    let run = start(&path, &[]);
    (folder, run)
}

// spec: STATE-07
// spec: STATE-03
#[test]
fn exit_codes_and_traps_reach_the_status() {
    for (args, code, reason) in [
        ("[exit, '0']", 0, "Completed"),
        ("[exit, '1']", 1, "Error"),
        ("[exit, '77']", 77, "Error"),
        ("[exit, '255']", 255, "Error"),
        ("[unreachable]", 134, "Error"),
        ("[div-by-zero]", 136, "Error"),
        ("[out-of-bounds]", 139, "Error"),
        ("[stack-overflow]", 139, "Error"),
    ] {
        let ended = run_text(&pod("crasher", args, ""), &[]);
        let terminated = ended.terminated("app");
        assert_eq!(
            (terminated["exitCode"].as_i64(), terminated["reason"].as_str()),
            (Some(code), Some(reason)),
            "{args}: {}",
            ended.stderr
        );
        assert_eq!(ended.code, Some(if code == 0 { SUCCEEDED } else { FAILED }), "{args}");
    }
}

// spec: TERM-03
#[test]
fn a_guest_without_a_handler_ends_by_term_at_once() {
    let (_folder, mut run) = started(&pod("crasher", "[sleep]", ""));
    run.wait_for(|o| o["type"] == "event" && o["reason"] == "Started");
    run.interrupt();
    let ended = run.finish();
    assert_eq!(ended.terminated("app")["exitCode"], 143);
    assert_eq!(ended.phases().last(), Some(&"Failed"));
}

// spec: POD-09
#[test]
fn a_deadline_ends_the_pod() {
    let ended = run_text(&pod("crasher", "[loop]", "activeDeadlineSeconds: 2"), &[]);
    assert_eq!(ended.code, Some(FAILED), "{}", ended.stderr);
    assert_eq!(ended.status()["reason"], "DeadlineExceeded");
    assert_eq!(ended.status()["phase"], "Failed");
    assert!(!ended.terminated("app").is_null());
}

// spec: COND-01
// spec: INIT-04
#[test]
fn conditions_turn_true_one_after_the_other() {
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: row}
spec:
  restartPolicy: Never
  initContainers:
  - {name: prepare, image: busybox, command: [sh, -c, 'sleep 1']}
  containers:
  - {name: app, image: busybox, command: [sh, -c, 'sleep 2']}
";
    let ended = run_text(pod, &[]);
    assert_eq!(ended.code, Some(SUCCEEDED), "{}", ended.stderr);
    let condition = |o: &serde_json::Value, kind: &str| {
        let all = o["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|c| c["type"] == kind).unwrap_or_default()
    };
    let order = ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
    let places = order.map(|kind| ended.place(|o| condition(o, kind)["status"] == "True"));
    assert!(places.is_sorted(), "{places:?}");
    let waiting = &ended.seen[ended.place(|o| condition(o, "Initialized")["status"] == "False")];
    let initialized = condition(waiting, "Initialized");
    assert_eq!(initialized["reason"], "ContainersNotInitialized");
    assert_eq!(initialized["message"], "containers with incomplete status: [prepare]");
    assert_eq!(waiting["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(condition(&serde_json::json!({ "status": ended.status() }), "Ready")["reason"], "PodCompleted");
}

// spec: HOOK-01
#[test]
fn a_post_start_hook_that_fails_ends_its_container() {
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: row}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: busybox
    command: [sh, -c, 'sleep 3600']
    lifecycle: {postStart: {exec: {command: [sh, -c, 'echo no luck; exit 4']}}}
";
    let ended = run_text(pod, &[]);
    assert_eq!(ended.code, Some(FAILED), "{}", ended.stderr);
    let event = &ended.seen[ended.event("app", "FailedPostStartHook")];
    assert_eq!(event["eventType"], "Warning");
}

// spec: PROBE-05
#[test]
fn an_unready_container_is_not_restarted() {
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: row}
spec:
  containers:
  - name: app
    image: probe-target
    args: [--ready-for, 4s, --unready-for, 4s]
    readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1, failureThreshold: 1}
";
    let (_folder, mut run) = started(pod);
    for ready in [true, false, true] {
        run.wait_for(|o| o["status"]["containerStatuses"][0]["ready"] == ready);
    }
    run.interrupt();
    let ended = run.finish();
    assert_eq!(ended.container("app")["restartCount"], 0);
}
