//! Every manifest of examples/pods does what its comments say.

use crate::husk::{FAILED, SUCCEEDED, ended, example, output, run, start};

#[test]
fn every_example_is_valid() {
    let mut count = 0;
    for entry in example("").read_dir().expect("examples") {
        let path = entry.expect("readable").path();
        let name = path.display().to_string();
        if name.ends_with(".scenario.yaml") {
            continue;
        }
        let checked = output(&["check", &name]);
        assert!(checked.status.success() && checked.stderr.is_empty(), "{}", String::from_utf8_lossy(&checked.stderr));
        count += 1;
    }
    assert!(count >= 8, "{count} examples");
}

// spec: PHASE-04
#[test]
fn hello_says_hello_and_succeeds() {
    let ended = run(&example("hello.yaml"), &[]);
    assert_eq!(ended.code, Some(SUCCEEDED), "{}", ended.stderr);
    assert_eq!(ended.log("hello"), ["Hello from hello"]);
    assert_eq!(ended.phases().last(), Some(&"Succeeded"));
    assert_eq!(ended.terminated("hello")["reason"], "Completed");
}

// spec: INIT-01
// spec: INIT-05
#[test]
fn init_containers_run_in_order_before_the_app() {
    let ended = run(&example("init-order.yaml"), &[]);
    assert_eq!(ended.code, Some(SUCCEEDED), "{}", ended.stderr);
    assert_eq!(ended.log("app"), ["first", "second", "app"]);
    let places = [
        ended.event("first", "Started"),
        ended.end("first"),
        ended.event("second", "Started"),
        ended.end("second"),
        ended.event("app", "Started"),
    ];
    assert!(places.is_sorted(), "{places:?}");
    let names: Vec<_> =
        ended.status()["initContainerStatuses"].as_array().expect("two").iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["first", "second"]);
}

// spec: SIDE-01
// spec: SIDE-06
#[test]
fn the_sidecar_ships_the_log_and_does_not_keep_the_job_alive() {
    let ended = run(&example("log-shipper.yaml"), &[]);
    assert_eq!(ended.code, Some(SUCCEEDED), "{}", ended.stderr);
    // Tail may be there before the file is, and says so.
    let shipped: Vec<_> = ended.log("shipper").into_iter().filter(|line| !line.starts_with("tail: ")).collect();
    assert_eq!(shipped, ["order 1 is packed", "order 2 is packed", "order 3 is packed"]);
    assert!(ended.event("shipper", "Started") < ended.event("app", "Started"));
    assert!(ended.end("app") < ended.end("shipper"));
}

// spec: PROBE-03
// spec: PROBE-04
#[test]
fn probes_gate_judge_and_restart() {
    let mut run = start(&example("probes.yaml"), &[]);
    run.wait_for(|o| o["type"] == "event" && o["reason"] == "Killing");
    run.wait_for(|o| o["status"]["containerStatuses"][0]["restartCount"] == 1);
    run.interrupt();
    let ended = run.finish();
    let started = ended.place(|o| o["status"]["containerStatuses"][0]["started"] == true);
    let ready = ended.place(|o| o["status"]["containerStatuses"][0]["ready"] == true);
    let unhealthy = ended.place(|o| o["message"].as_str().is_some_and(|m| m.starts_with("Liveness probe failed")));
    let killing = ended.event("server", "Killing");
    assert!(started <= ready && ready < unhealthy && unhealthy < killing);
    assert!(ended.seen[killing]["message"].as_str().is_some_and(|m| m.contains("failed liveness probe")));
}

// spec: RESTART-02
// spec: RESTART-04
// spec: STATE-04
// spec: RESTART-05
#[test]
fn a_crash_loop_restarts_at_once_and_then_backs_off() {
    let mut run = start(&example("crash-loop.yaml"), &["--max-container-restart-period", "1s"]);
    let waiting = run.wait_for(|o| {
        let container = &o["status"]["containerStatuses"][0];
        container["state"]["waiting"]["reason"] == "CrashLoopBackOff" && container["restartCount"] == 1
    });
    let container = &waiting["status"]["containerStatuses"][0];
    let message = container["state"]["waiting"]["message"].as_str().expect("a message");
    assert!(message.starts_with("back-off 1s restarting failed container=flaky pod=crash-loop"), "{message}");
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(waiting["status"]["phase"], "Running");
    run.wait_for(|o| o["status"]["containerStatuses"][0]["restartCount"] == 2);
    run.interrupt();
    let ended = run.finish();
    assert!(ended.reasons("flaky").contains(&"BackOff"));
    let first_restart = ended.place(|o| o["status"]["containerStatuses"][0]["restartCount"] == 1);
    let first_wait =
        ended.place(|o| o["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff");
    assert!(first_restart < first_wait, "the first restart is at once");
}

// spec: RESTART-07
// spec: RESTART-08
#[test]
fn rules_restart_on_one_exit_code_and_not_on_another() {
    let ended = run(&example("restart-rules.yaml"), &[]);
    assert_eq!(ended.code, Some(FAILED), "{}", ended.stderr);
    assert_eq!(ended.log("worker"), ["worth another try", "this is not going to work"]);
    assert_eq!(ended.container("worker")["restartCount"], 1);
    assert_eq!(ended.container("worker")["lastState"]["terminated"]["exitCode"], 42);
    assert_eq!(ended.terminated("worker")["exitCode"], 7);
}

// spec: TERM-02
// spec: HOOK-02
// spec: SIDE-04
#[test]
fn a_pod_stops_in_order() {
    let mut run = start(&example("graceful-stop.yaml"), &[]);
    run.wait_for_log("listener", "at work");
    run.interrupt();
    let ended = run.finish();
    let words = ["at work", "preStop: no new guests", "TERM: putting things away", "done"];
    // `tail -F` says so if it is there before the file.
    let heard: Vec<_> = ended.log("listener").into_iter().filter(|line| !line.starts_with("tail: ")).collect();
    // It may have been told to stop before it read the last word; at the stop it counts all of them.
    assert_eq!(heard.last(), Some(&"4 words were spoken"));
    assert!(words.starts_with(&heard[..heard.len() - 1]), "{heard:?}");
    assert_eq!(ended.terminated("app")["exitCode"], 0);
    assert!(ended.end("app") < ended.end("listener"));
    assert_eq!(ended.phases().last(), Some(&"Succeeded"));
    assert_eq!(ended.code, Some(SUCCEEDED));
}

#[test]
fn a_memory_limit_is_a_wall_for_one_container_only() {
    let ended = run(&example("limits.yaml"), &[]);
    assert_eq!(ended.code, Some(FAILED), "{}", ended.stderr);
    assert_eq!(ended.terminated("hungry")["exitCode"], 137);
    assert_eq!(ended.terminated("hungry")["reason"], "OOMKilled");
    assert_eq!(ended.log("neighbour"), ["all quiet here"]);
}

#[test]
fn two_pods_use_the_same_port() {
    let mut run = start(&example("two-webs.yaml"), &[]);
    run.wait_until(|seen| {
        ["red", "blue"].iter().all(|pod| {
            let of_pod = || seen.iter().filter(|o| o["pod"] == **pod);
            let is_ready = |o: &serde_json::Value| {
                let containers = o["status"]["containerStatuses"].as_array();
                containers.is_some_and(|all| all.iter().all(|container| container["ready"] == true))
            };
            let answer = format!("{pod} answers");
            of_pod().any(is_ready) && of_pod().any(|o| o["text"] == answer)
        })
    });
    run.interrupt();
    let ended = run.finish();
    let ip = |pod: &str| {
        let status = ended.seen.iter().rfind(|o| o["pod"] == pod && o["type"] == "status").expect("a status");
        status["status"]["podIP"].as_str().expect("an address").to_owned()
    };
    assert_ne!(ip("red"), ip("blue"));
}

#[test]
fn the_demo_shows_a_whole_life() {
    let demo = run(&example("demo.yaml"), &[]);
    assert_eq!(demo.code, Some(SUCCEEDED), "{}", demo.stderr);
    assert_eq!(demo.container("cook")["restartCount"], 1);
    assert_eq!(demo.log("ticket-printer").len(), 5, "{:?}", demo.log("ticket-printer"));
    assert_eq!(demo.phases(), ["Pending", "Running", "Succeeded"]);
    assert!(demo.statuses().any(|status| crate::husk::container(status, "cook")["ready"] == true));
    let places = [demo.end("kitchen-setup"), demo.event("ticket-printer", "Started"), demo.event("cook", "Started")];
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(
        ended(demo.seen.last().expect("something"), "cook"),
        &serde_json::Value::Null,
        "the last word is that it is gone"
    );
}
