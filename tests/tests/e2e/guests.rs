//! The guests of examples/guests: each kind of module, how it ends, what it does when it is stopped.

use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use crate::husk::{Ended, Run, start};

/// Starts a pod of one container, `c`, in a guest's module: `toolbox.wasm` is a component, `toolbox.p1.wasm` a core module.
/// The folder must live as long as the run.
fn guest(module: &str, command: &[&str], more: serde_json::Value) -> (Run, TempDir) {
    let exe = std::env::current_exe().expect("tests have a path");
    let target = exe.ancestors().nth(3).expect("tests are in TARGET/PROFILE/deps");
    let module: PathBuf = target.join("guests").join(module);
    assert!(module.is_file(), "{} is missing: run `cargo xtask guests` first", module.display());
    let mut container = json!({ "name": "c", "image": "guest" });
    // The shell is called by its name, other modules by their own.
    let key = if command.first() == Some(&"sh") { "command" } else { "args" };
    container[key] = json!(command);
    for (key, value) in more.as_object().into_iter().flatten() {
        container[key] = value.clone();
    }
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "guest" },
        "spec": { "restartPolicy": "Never", "containers": [container] },
    });
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("pod.json");
    std::fs::write(&manifest, pod.to_string()).expect("written");
    (start(&manifest, &["--image", &format!("guest={}", module.display())]), folder)
}

fn run(module: &str, command: &[&str]) -> Ended {
    let (run, _folder) = guest(module, command, json!({}));
    run.finish()
}

/// Runs a guest until its log holds `up`, then stops it.
fn stopped(module: &str, command: &[&str], up: &str) -> Ended {
    let (mut run, _folder) = guest(module, command, json!({}));
    run.wait_for_log("c", up);
    run.interrupt();
    run.finish()
}

#[test]
fn the_shell_runs_scripts() {
    let cases: [(&str, &[&str], i32); 6] = [
        ("echo \"Running migration...\"; exit 1", &["Running migration..."], 1),
        ("for i in {1..3}; do echo \"$i: working\"; done", &["1: working", "2: working", "3: working"], 0),
        ("mkdir -p /tmp/d && cd /tmp/d && echo x > f && cat f && pwd && ls", &["x", "/tmp/d", "f"], 0),
        ("f() { [ $1 -gt 0 ] && f $(($1 - 1)); return 0; }; f 60; echo deep", &["deep"], 0),
        (
            "f() { f; }; f; echo no",
            &["sh: 100 functions are running inside each other: one calls itself without end"],
            2,
        ),
        ("nosuch", &["sh: nosuch: not found"], 127),
    ];
    for module in ["toolbox.wasm", "toolbox.p1.wasm"] {
        for (script, log, code) in cases {
            let ended = run(module, &["sh", "-c", script]);
            assert_eq!(ended.log("c"), log, "{module}: {script}");
            assert_eq!(ended.terminated("c")["exitCode"], code, "{module}: {script}");
        }
    }
    // Names need sockets, which preview 1 hasn't.
    let ended = run(
        "toolbox.wasm",
        &["sh", "-c", "nslookup nobody.default 2> /dev/null || echo unknown; nslookup $(hostname)"],
    );
    assert_eq!(ended.log("c")[..2], ["unknown", "Name:      guest"]);
}

// spec: TERM-03
#[test]
fn the_shell_acts_on_a_stop() {
    let cases: [(&str, &[&str], i32); 8] = [
        // Without a trap it ends at once, whatever it waits for.
        ("echo up; sleep 1h; echo no", &["up"], 143),
        ("echo up; tail -f /dev/null", &["up"], 143),
        ("echo up > /tmp/f; tail -F /tmp/f", &["up"], 143),
        ("echo up; while true; do :; done", &["up"], 143),
        // With one what waits is cut short, and the trap runs after it.
        ("trap 'echo bye; exit 0' TERM; echo up; sleep 1h; echo no", &["up", "bye"], 0),
        ("trap 'echo bye; exit 3' TERM; echo up; sleep infinity & wait; echo no", &["up", "bye"], 3),
        ("trap 'stop=1' TERM; echo up; while [ -z \"$stop\" ]; do sleep 60; done; echo end", &["up", "end"], 0),
        ("trap 'echo bye' EXIT; trap 'exit 7' TERM; echo up; (sleep 1h; echo no); echo no", &["up", "bye"], 7),
    ];
    for module in ["toolbox.wasm", "toolbox.p1.wasm"] {
        for (script, log, code) in cases {
            let ended = stopped(module, &["sh", "-c", script], "up");
            assert_eq!(ended.terminated("c")["exitCode"], code, "{module}: {script}");
            assert_eq!(ended.log("c"), log, "{module}: {script}");
        }
    }
}

#[test]
fn a_stage_after_one_that_goes_on_for_ever_sees_lines_as_they_come() {
    let ended = stopped("toolbox.wasm", &["sh", "-c", "while true; do echo a; echo up; sleep 1; done | grep u"], "up");
    assert!(ended.log("c").iter().all(|line| *line == "up"), "{:?}", ended.log("c"));
}

// spec: STATE-07
#[test]
fn the_crasher_ends_in_every_way() {
    let cases: [(&[&str], i32); 8] = [
        (&["exit", "7"], 7),
        (&["exit", "255"], 255),
        (&["panic"], 134),
        (&["unreachable"], 134),
        (&["div-by-zero"], 136),
        (&["out-of-bounds"], 139),
        (&["stack-overflow"], 139),
        (&["--after", "1ms", "exit", "3"], 3),
    ];
    for module in ["crasher.wasm", "crasher.p1.wasm"] {
        for (command, code) in cases {
            let ended = run(module, command);
            let terminated = ended.terminated("c");
            assert_eq!(terminated["exitCode"], code, "{module}: {command:?}");
            let why = terminated["message"].as_str().unwrap_or_default();
            let trapped = code > 133 && code < 255;
            assert_eq!(why.contains("wasm trap"), trapped, "{module}: {command:?}: {why}");
        }
        let limit = json!({ "resources": { "limits": { "memory": "32Mi" } } });
        let (greedy, _folder) = guest(module, &["out-of-memory"], limit);
        let ended = greedy.finish();
        assert_eq!(ended.terminated("c")["exitCode"], 137, "{module}");
        assert_eq!(ended.terminated("c")["reason"], "OOMKilled", "{module}");
    }
}

// spec: TERM-03
#[test]
fn a_guest_without_the_lifecycle_interface_ends_at_once() {
    for (module, way) in [("crasher.wasm", "loop"), ("crasher.wasm", "sleep"), ("crasher.p1.wasm", "sleep")] {
        let (mut run, _folder) = guest(module, &[way], json!({}));
        run.wait_for(|o| o["type"] == "event" && o["reason"] == "Started");
        run.interrupt();
        assert_eq!(run.finish().terminated("c")["exitCode"], 143, "{module} {way}");
    }
}

#[test]
fn pause_ends_well_when_it_is_stopped() {
    for module in ["pause.wasm", "pause.p1.wasm"] {
        let (mut run, _folder) = guest(module, &[], json!({}));
        run.wait_for(|o| o["type"] == "event" && o["reason"] == "Started");
        run.interrupt();
        assert_eq!(run.finish().terminated("c")["exitCode"], 0, "{module}");
    }
}

#[test]
fn a_guest_in_c_ends_well() {
    let ended = stopped("c-hello.p1.wasm", &["60000"], "hello from C, world");
    assert_eq!(ended.log("c"), ["hello from C, world", "signal 15: good bye after 0 steps"]);
    assert_eq!(ended.terminated("c")["exitCode"], 0);
    let (run, _folder) = guest("c-hello.p1.wasm", &["1", "2"], json!({ "env": [{ "name": "NAME", "value": "Husk" }] }));
    assert_eq!(run.finish().log("c"), ["hello from C, Husk", "step 1", "step 2"]);
}

#[test]
fn the_web_server_answers_probes_and_drains() {
    let probes = json!({ "readinessProbe": { "httpGet": { "path": "/healthz", "port": 8080 }, "periodSeconds": 1 } });
    let (mut run, _folder) = guest("web.wasm", &["--port", "8080"], probes);
    run.wait_for(|o| o["status"]["containerStatuses"][0]["ready"] == true);
    run.interrupt();
    let ended = run.finish();
    assert_eq!(ended.terminated("c")["exitCode"], 0);
    let log = ended.log("c");
    assert!(log.iter().any(|line| line.contains("\"GET /healthz HTTP/1.1\" 200")), "{log:?}");
    assert!(log.contains(&"INFO  SIGTERM: drained"), "{log:?}");
}

#[test]
fn the_probe_target_can_be_asked_from_inside() {
    let exec = |aspect: &str| json!({ "exec": { "command": ["probe-target", "check", aspect] }, "periodSeconds": 1 });
    let probes = json!({ "readinessProbe": exec("healthz"), "livenessProbe": exec("readyz") });
    let command = ["--ready-for", "2s", "--exit-code", "9"];
    let (run, _folder) = guest("probe-target.wasm", &command, probes);
    let ended = run.finish();
    // It was ready, then its liveness failed, and the policy lets it end.
    assert!(ended.statuses().any(|status| status["containerStatuses"][0]["ready"] == true));
    assert!(ended.reasons("c").contains(&"Unhealthy"), "{:?}", ended.reasons("c"));
    assert_eq!(ended.terminated("c")["exitCode"], 9);
}
