//! kill -9, SIGTERM, and what is there afterwards.

use serde_json::json;

use crate::husk::output;
use crate::world::{PODS, World, is_ready, restarts, shell};

// spec: TERM-11, STATE-04, NODE-04
#[test]
fn a_pod_goes_on_after_kill_9_as_it_was() {
    let mut world = World::new(&[]);
    let mut spec = shell("sleep 1000");
    spec["initContainers"] = json!([{
        "name": "once", "image": "busybox", "command": ["sh", "-c", "echo done >> /data/count"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }]);
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    world.create("web", &spec);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}});
    world.send("POST", "/api/v1/namespaces/default/configmaps", &config).ok();
    let mut before = world.running("web");
    for round in 1..=3 {
        // What is shown is on the disk: no matter when the power goes.
        let count = restarts(&before);
        world.kill();
        world.start();
        let after = world.running("web");
        assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
        assert_eq!(before["status"]["podIP"], after["status"]["podIP"]);
        assert_eq!(restarts(&after), count + 1, "round {round}: {after}");
        let last = &after["status"]["containerStatuses"][0]["lastState"]["terminated"];
        assert_eq!(last["reason"], "AgentRestarted", "{after}");
        let init = &after["status"]["initContainerStatuses"][0];
        assert_eq!((&init["restartCount"], &init["state"]["terminated"]["exitCode"]), (&json!(0), &json!(0)));
        before = after;
    }
    let uid = before["metadata"]["uid"].as_str().expect("a uid");
    let count =
        std::fs::read_to_string(world.path(&format!("data/pods/{uid}/volumes/data/count"))).expect("the volume");
    assert_eq!(count, "done\n", "the init container ran once");
    let config = world.get("/api/v1/namespaces/default/configmaps/c").expect("an answer").ok();
    assert_eq!(config["data"]["a"], "1");
}

// spec: TERM-11
#[test]
fn a_pod_that_has_ended_takes_its_address_from_nobody() {
    let mut world = World::new(&[]);
    let mut spec = shell("exit 0");
    spec["restartPolicy"] = "Never".into();
    world.create("once", &spec);
    let once = world.pod_until("once", |pod| pod["status"]["phase"] == "Succeeded");
    let ip = |pod: &serde_json::Value| pod["status"]["podIP"].clone();
    let mut others = (0..10).map(|n| {
        world.create(&format!("web-{n}"), &shell("sleep 1000"));
        world.running(&format!("web-{n}"))
    });
    let web = others.find(|pod| ip(pod) == ip(&once)).expect("an address that is free is used again");
    let name = web["metadata"]["name"].as_str().expect("a name").to_owned();
    world.kill();
    world.start();
    assert_eq!(ip(&world.running(&name)), ip(&web));
    assert_eq!(ip(&world.pod("once").expect("it stays")), ip(&once), "it still says which one it had");
}

// spec: TERM-07
#[test]
fn a_deletion_goes_on_after_kill_9() {
    let mut world = World::new(&[]);
    let mut spec = shell("trap '' TERM; echo deaf; while true; do sleep 1; done");
    spec["terminationGracePeriodSeconds"] = 60.into();
    world.create("web", &spec);
    world.running("web");
    world.delete("web");
    world.pod_until("web", |pod| !pod["metadata"]["deletionTimestamp"].is_null());
    world.kill();
    world.start();
    // Nothing of it runs any more, and nothing begins again.
    world.gone("web");
}

// spec: TERM-07, TERM-11
#[test]
fn what_was_asked_for_in_the_last_moment_is_done() {
    let mut world = World::new(&[]);
    let mut spec = shell("trap '' TERM; while true; do sleep 1; done");
    spec["terminationGracePeriodSeconds"] = 600.into();
    for n in 0..5 {
        for name in [format!("changes-{n}"), format!("leaves-{n}")] {
            world.create(&name, &spec);
            world.running(&name);
        }
    }
    let image = |pod: &serde_json::Value| pod["status"]["containerStatuses"][0]["image"].clone();
    let change = |world: &World, name: &str| {
        let mut pod = world.pod(name).expect("it is there");
        pod["spec"]["containers"][0]["image"] = "alpine".into();
        world.send("PUT", &format!("{PODS}/{name}"), &pod).ok();
    };
    for n in 0..5 {
        change(&world, &format!("changes-{n}"));
    }
    world.kill();
    world.start();
    for n in 0..5 {
        world.pod_until(&format!("changes-{n}"), |pod| image(pod) == "alpine" && is_ready(pod));
    }
    for n in 0..5 {
        world.delete(&format!("leaves-{n}"));
    }
    world.kill();
    world.start();
    for n in 0..5 {
        // Nothing of it is begun again, to end in its own time.
        world.gone(&format!("leaves-{n}"));
    }
}

// spec: TERM-07, PHASE-08
#[test]
fn edge_24_a_terminated_pod_that_a_finalizer_holds_is_not_begun_again() {
    let mut world = World::new(&[]);
    let mut spec = shell("echo once; exit 0");
    spec["restartPolicy"] = "Never".into();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"name": "held", "finalizers": ["example.com/mine"]},
    });
    world.send("POST", PODS, &pod).ok();
    world.pod_until("held", |pod| pod["status"]["phase"] == "Succeeded");
    world.delete("held");
    let is_over = |pod: &serde_json::Value| pod["metadata"]["deletionGracePeriodSeconds"] == 0;
    let before = world.pod_until("held", is_over);
    // But for times, which are rounded.
    let ended = |pod: &serde_json::Value| {
        let status = &pod["status"];
        let container = &status["containerStatuses"][0];
        let exit = &container["state"]["terminated"]["exitCode"];
        [&status["phase"], &status["podIP"], &container["containerID"], &container["restartCount"], exit]
            .map(Clone::clone)
    };
    for _ in 0..2 {
        world.kill();
        world.start();
        let after = world.pod("held").expect("it is held");
        assert_eq!(ended(&before), ended(&after), "{after}");
    }
    world.create("web", &shell("sleep 1000"));
    world.running("web");
    let after = world.pod("held").expect("it is held");
    assert_eq!(ended(&before), ended(&after));
    let free = json!({"metadata": {"finalizers": null}});
    world.send("PATCH", &format!("{PODS}/held"), &free).ok();
    world.gone("held");
    world.end();
    let boot = husk_store::Boot { id: "a test".into(), uptime: std::time::Duration::ZERO };
    let options = husk_store::Options::new(boot);
    let opened = husk_store::Store::open(&world.data.join("state.redb"), options).expect("nobody has it");
    let records: Vec<_> = opened.records.iter().map(|record| record.uid().0.to_string()).collect();
    assert!(!records.iter().any(|uid| before["metadata"]["uid"] == **uid), "{records:?}");
}

// spec: TERM-10
#[test]
fn a_node_that_is_shut_down_ends_its_pods_and_they_begin_anew() {
    let mut world = World::new(&[]);
    world.create("web", &shell("sleep 1000"));
    let mut once = shell("sleep 1000");
    once["restartPolicy"] = "Never".into();
    world.create("once", &once);
    let before = world.running("web");
    world.running("once");
    assert_eq!(world.end(), Some(0), "{}", world.log());
    world.start();
    let after = world.running("web");
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"], "it is another pod");
    assert_eq!(restarts(&after), 0);
    let ended = world.pod("once").expect("it stays");
    assert_eq!((&ended["status"]["phase"], &ended["status"]["reason"]), (&json!("Failed"), &json!("Terminated")));
    let conditions = ended["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let target = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").cloned();
    assert_eq!(target.expect("a target")["reason"], "TerminationByKubelet");
}

#[test]
fn a_second_agent_is_refused() {
    let world = World::new(&[]);
    let (data, other) = (world.path("data"), world.path("other.sock"));
    let refused =
        output(&["agent", "--data-dir", &data.display().to_string(), "--socket", &other.display().to_string()]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("another agent (process") && stderr.contains("--data-dir"), "{stderr}");
}
