//! Exec probes: in the container's context, and ended when their time is over.

use serde_json::Value;

use crate::husk::{Run, container, start};

/// A pod whose container runs a script and is ready by another one.
fn probed(script: &str, probe: &str, more: &str) -> (tempfile::TempDir, Run) {
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: probed}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  \
         - name: app\n    image: busybox\n    env: [{{name: PLACE, value: edge}}]\n    command: [sh, -c, {script:?}]\n    \
         readinessProbe: {{{more}, exec: {{command: [sh, -c, {probe:?}]}}}}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, pod).expect("written");
    let run = start(&path, &[]);
    (folder, run)
}

fn is_ready(object: &Value) -> bool {
    container(&object["status"], "app")["ready"] == true
}

// spec: PROBE-13
#[test]
fn an_exec_probe_sees_what_its_container_sees() {
    let (_folder, mut run) = probed(
        "until [ -e /probed ]; do sleep 0.1; done; touch /made; sleep 3600",
        "[ -e /made ] && [ $PLACE = edge ] && exit 0; touch /probed; echo $PLACE; exit 1",
        "periodSeconds: 1",
    );
    let event = run.wait_for(|o| o["reason"] == "Unhealthy");
    assert_eq!(event["message"], "Readiness probe failed: exit code 1: edge");
    run.wait_for(is_ready);
    run.interrupt();
    // What a probe writes is for nobody's log.
    assert!(run.finish().log("app").is_empty());
}

// spec: PROBE-13
#[test]
fn an_exec_probe_that_takes_too_long_has_failed_and_is_ended() {
    let (_folder, mut run) = probed(
        "while true; do sleep 1; wc -l < /beats; done",
        "while true; do echo x >> /beats; sleep 0.1; done",
        // It runs once.
        "periodSeconds: 1000, timeoutSeconds: 2",
    );
    let event = run.wait_for(|o| o["reason"] == "Unhealthy");
    assert_eq!(event["message"], "Readiness probe failed: timed out after 2s");
    let mut beats = Value::Null;
    loop {
        let now = run.wait_for(|o| o["type"] == "log" && o["container"] == "app")["text"].clone();
        if now == beats {
            break;
        }
        beats = now;
    }
    run.interrupt();
    assert!(!run.finish().statuses().any(|status| container(status, "app")["ready"] == true));
}
