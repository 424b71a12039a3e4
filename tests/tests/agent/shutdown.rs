//! The node is shut down while much goes on, and somebody loses patience with it.

use serde_json::{Value, json};

use crate::husk::output;
use crate::world::{PODS, World, is_ready, restarts, shell};

const MANY: usize = 30;

/// A pod that writes its name when it is told to end, and takes a moment to do so.
fn writer(world: &World, name: &str) -> Value {
    let mut spec =
        shell(&format!("trap 'sleep 1; echo {name} >> /shared/order; exit 0' TERM; while true; do sleep 1; done"));
    spec["terminationGracePeriodSeconds"] = 20.into();
    spec["volumes"] = json!([{"name": "shared", "hostPath": {"path": world.path("shared")}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "shared", "mountPath": "/shared"}]);
    spec
}

fn all_ready(world: &World) -> Option<Vec<Value>> {
    let pods = world.get(PODS)?.ok()["items"].as_array().cloned()?;
    pods.iter().all(is_ready).then_some(pods)
}

// spec: TERM-10
#[test]
fn a_node_under_load_ends_its_pods_in_order_and_lets_no_second_agent_in() {
    let mut world = World::new(&[]);
    std::fs::create_dir(world.path("shared")).expect("a folder");
    let mut critical = writer(&world, "critical");
    critical["priority"] = 2_000_000_000.into();
    world.create("critical", &critical);
    for n in 0..MANY {
        world.create(&format!("p{n}"), &writer(&world, &format!("p{n}")));
        if n == MANY / 2 {
            let (data, other) = (world.data.display().to_string(), world.path("other.sock").display().to_string());
            let refused = output(&["agent", "--data-dir", &data, "--socket", &other]);
            let stderr = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{stderr}");
            assert!(stderr.contains("another agent (process"), "{stderr}");
        }
    }
    let before = world.until("all are ready", all_ready);
    assert_eq!(before.len(), MANY + 1);
    assert!(before.iter().all(|pod| restarts(pod) == 0), "the second agent touched nothing");
    assert_eq!(world.end(), Some(0), "{}", world.log());
    let order = std::fs::read_to_string(world.path("shared/order")).expect("they wrote");
    let order: Vec<&str> = order.lines().collect();
    assert_eq!((order.len(), order.last()), (MANY + 1, Some(&"critical")), "{order:?}");
    world.start();
    let after = world.until("all begin anew", all_ready);
    assert_eq!(after.len(), MANY + 1);
    let uids = |pods: &[Value]| pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect::<Vec<_>>();
    let old = uids(&before);
    assert!(uids(&after).iter().all(|uid| !old.contains(uid)), "they are other pods");
}

// spec: TERM-07, TERM-10
#[test]
fn a_shutdown_that_is_cut_short_is_one_all_the_same() {
    let mut world = World::new(&[]);
    let mut deaf = shell("trap '' TERM; while true; do sleep 1; done");
    deaf["terminationGracePeriodSeconds"] = 600.into();
    for name in ["a", "b", "c"] {
        world.create(name, &deaf);
    }
    let mut once = deaf.clone();
    once["restartPolicy"] = "Never".into();
    world.create("once", &once);
    world.create("leaving", &deaf);
    let before = world.until("all are ready", |world| all_ready(world).filter(|pods| pods.len() == 5));
    world.delete("leaving");
    world.pod_until("leaving", |pod| !pod["metadata"]["deletionTimestamp"].is_null());
    world.signal("TERM");
    // What its events say is on the disk.
    for name in ["a", "b", "c", "once"] {
        world.event(name, "Killing", "app");
    }
    world.kill();
    world.start();
    world.gone("leaving");
    for name in ["a", "b", "c"] {
        let old = before.iter().find(|pod| pod["metadata"]["name"] == name).expect("it was there");
        let new = world.running(name);
        assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"], "{name} begins anew");
    }
    let once = world.pod_until("once", |pod| pod["status"]["phase"] == "Failed");
    assert_eq!(once["status"]["reason"], "Terminated");
    assert!(world.pod("leaving").is_none());
}
