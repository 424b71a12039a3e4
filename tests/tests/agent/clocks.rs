//! Clocks that are set, and boards that begin again: what people's clocks say is shown, and decides nothing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::husk::command;
use crate::static_pods::{MANIFEST, write};
use crate::world::{World, restarts, shell};

const DAY: i64 = 86_400;
const YEAR: i64 = 365 * DAY;

/// The library that sets the clock of a process: tests/examples/clock.rs.
fn clock() -> PathBuf {
    let library = Path::new(command().get_program()).with_file_name("examples").join("libclock.so");
    assert!(library.exists(), "{} is missing: run `cargo build --workspace --examples` first", library.display());
    library
}

/// An agent whose wall clock can be set and whose board can be started again.
fn world() -> World {
    let mut world = World::without_agent(&[]);
    let (wall, boot) = (world.path("wall"), world.path("boot"));
    world.environment = vec![("LD_PRELOAD", clock()), ("HUSK_TEST_WALL", wall), ("HUSK_TEST_BOOT", boot)];
    set_wall(&world, 0);
    set_boot(&world, "first");
    world.start();
    world
}

/// At once, as a reader sees it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).expect("written");
    std::fs::rename(new, path).expect("renamed");
}

/// Sets the wall clock to so many seconds from what it really is.
fn set_wall(world: &World, seconds: i64) {
    replace(&world.path("wall"), &seconds.to_string());
}

fn set_boot(world: &World, id: &str) {
    replace(&world.path("boot"), id);
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

/// Seconds since 1970.
fn time(text: &Value) -> i64 {
    let text = text.as_str().unwrap_or_else(|| panic!("{text}: no time"));
    text.parse::<k8s_openapi::jiff::Timestamp>().expect("a time").as_second()
}

/// How long the container waited before it was started again, as its pod's status has it.
fn waited(pod: &Value) -> i64 {
    let container = container(pod);
    time(&container["state"]["running"]["startedAt"]) - time(&container["lastState"]["terminated"]["finishedAt"])
}

// spec: RESTART-12
#[test]
fn edge_36_a_wall_clock_that_is_set_changes_no_delay() {
    let mut world = world();
    let mut bounded = shell("sleep 100000");
    bounded["activeDeadlineSeconds"] = 5000.into();
    world.create("bounded", &bounded);
    let mut probed = shell("sleep 100000");
    probed["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
    world.create("probed", &probed);
    world.create("loops", &shell("sleep 1; exit 1"));
    let bounded = world.running("bounded");
    let probed = world.running("probed");
    let mut count = 1;
    for step in [YEAR, -2 * YEAR] {
        world.pod_until("loops", |pod| restarts(pod) >= count);
        set_wall(&world, step);
        count += 1;
        let is_back = |pod: &Value| restarts(pod) >= count && !container(pod)["state"]["running"].is_null();
        let pod = world.pod_until("loops", is_back);
        let shown =
            time(&container(&pod)["state"]["running"]["startedAt"]) - k8s_openapi::jiff::Timestamp::now().as_second();
        assert!((shown - step).abs() < DAY, "what is shown follows: {pod}");
        // 10 s, 20 s.
        let (waited, least) = (waited(&pod), 10 << (count - 2));
        assert!((least - 1..=2 * least).contains(&waited), "{waited} s before restart {count}: {pod}");
        for (name, before) in [("bounded", &bounded), ("probed", &probed)] {
            let after = world.running(name);
            assert_eq!(container(&after)["containerID"], container(before)["containerID"], "{after}");
            assert_eq!(restarts(&after), 0);
        }
    }
    // A file of another time is a pod all the same, and who is deleted ends.
    set_wall(&world, -2 * YEAR);
    write(&world, "beacon.yaml", MANIFEST);
    world.running("beacon-edge-7");
    let mut deaf = shell("trap '' TERM; while true; do sleep 1; done");
    deaf["terminationGracePeriodSeconds"] = 3.into();
    world.create("deaf", &deaf);
    world.running("deaf");
    world.delete("deaf");
    set_wall(&world, -4 * YEAR);
    world.gone("deaf");
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

// spec: RESTART-12, TERM-11
#[test]
fn an_agent_that_starts_with_another_time_goes_on_as_it_was() {
    let mut world = world();
    world.create("web", &shell("sleep 100000"));
    let mut deaf = shell("trap '' TERM; while true; do sleep 1; done");
    deaf["terminationGracePeriodSeconds"] = 600.into();
    world.create("deaf", &deaf);
    world.create("loops", &shell("exit 1"));
    world.running("deaf");
    let mut before = world.running("web");
    let mut loops = world.pod_until("loops", |pod| restarts(pod) >= 2);
    world.delete("deaf");
    for step in [-30 * YEAR, YEAR] {
        world.kill();
        set_wall(&world, step);
        world.start();
        let after = world.running("web");
        assert_eq!((&before["metadata"]["uid"], restarts(&before) + 1), (&after["metadata"]["uid"], restarts(&after)));
        let state = container(&after);
        let (ended, started) = (&state["lastState"]["terminated"], &state["state"]["running"]["startedAt"]);
        assert!(time(&ended["startedAt"]) <= time(&ended["finishedAt"]) && time(&ended["finishedAt"]) <= time(started));
        // It waits for the rest of its back-off, no less and no more.
        let after_loops = world.pod("loops").expect("it is there");
        assert!(restarts(&after_loops) <= restarts(&loops) + 1, "{after_loops}");
        (before, loops) = (after, after_loops);
    }
    world.gone("deaf");
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

// spec: INIT-06, STATE-04
#[test]
fn a_board_that_starts_again_runs_init_containers_once_more() {
    let mut world = world();
    let mut spec = shell("sleep 100000");
    let data = json!([{"name": "data", "mountPath": "/data"}]);
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["initContainers"] = json!([{
        "name": "setup", "image": "busybox", "command": ["sh", "-c", "echo done >> /data/count"], "volumeMounts": data,
    }]);
    world.create("web", &spec);
    let first = world.running("web");
    for (boot, reason, runs) in
        [("first", "AgentRestarted", 1), ("second", "NodeRebooted", 2), ("second", "AgentRestarted", 2)]
    {
        let before = restarts(&world.running("web"));
        world.kill();
        set_boot(&world, boot);
        world.start();
        if reason == "NodeRebooted" {
            world.event("edge-7", "Rebooted", &format!("Node edge-7 has been rebooted, boot id: {boot}"));
        }
        let after = world.running("web");
        assert_eq!(after["metadata"]["uid"], first["metadata"]["uid"]);
        assert_eq!(after["status"]["podIP"], first["status"]["podIP"]);
        assert_eq!(restarts(&after), before + 1, "{after}");
        assert_eq!(container(&after)["lastState"]["terminated"]["reason"], reason, "{after}");
        let uid = first["metadata"]["uid"].as_str().expect("a uid");
        let count = std::fs::read_to_string(world.data.join(format!("pods/{uid}/volumes/data/count")));
        assert_eq!(count.expect("the volume").lines().count(), runs, "{boot} {reason}");
    }
}
