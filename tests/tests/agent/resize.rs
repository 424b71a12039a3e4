//! Running containers get other resources, in place (RES-11).

use serde_json::{Value, json};

use crate::world::{PODS, World};

/// Grows beyond 8 MiB when it is told to.
const GROWS: &str = "while [ ! -e /data/go ]; do sleep 0.1; done; x=0123456789abcdef; \
                     while [ ${#x} -lt 4000000 ]; do x=$x$x; done; echo grown; while true; do sleep 1; done";

fn pod(resize_policy: &Value) -> Value {
    json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "app", "image": "busybox", "command": ["sh", "-c", GROWS],
            "resources": resources("100m", "8Mi"),
            "resizePolicy": resize_policy,
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }],
        "volumes": [{"name": "data", "emptyDir": {}}],
    })
}

fn resources(cpu: &str, memory: &str) -> Value {
    json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}})
}

fn resize(world: &World, resources: &Value) {
    let mut pod = world.pod("web").expect("it is there");
    // Whoever changes it meanwhile changes its status.
    pod["metadata"]["resourceVersion"].take();
    pod["spec"]["containers"][0]["resources"] = resources.clone();
    world.send("PUT", &format!("{PODS}/web/resize"), &pod).ok();
}

fn app(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn condition<'a>(pod: &'a Value, kind: &str) -> &'a Value {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

// spec: RES-11
#[test]
fn a_container_has_more_at_once_and_is_not_restarted() {
    let mut world = World::new(&[]);
    world.create("web", &pod(&json!(null)));
    let before = world.running("web");
    assert_eq!(app(&before)["resources"], resources("100m", "8Mi"));
    resize(&world, &resources("500m", "64Mi"));
    let after = world.pod_until("web", |pod| app(pod)["resources"] == resources("500m", "64Mi"));
    assert_eq!(app(&after)["containerID"], app(&before)["containerID"]);
    // It would be killed for this by what it had.
    world.husk_says(&["exec", "web", "--", "touch", "/data/go"]);
    world.until("it has grown", |world| {
        let log = world.get(&format!("{PODS}/web/log"))?;
        (log.code == 200 && log.body.contains("grown")).then_some(())
    });
    // Less than what it holds can't be taken from it: that is said, and what it has stays.
    resize(&world, &resources("500m", "8Mi"));
    let refused = world.pod_until("web", |pod| condition(pod, "PodResizeInProgress")["reason"] == "Error");
    let message = condition(&refused, "PodResizeInProgress")["message"].as_str().unwrap_or_default();
    assert!(message.contains("the memory limit can't be lowered to 8388608 bytes"), "{refused}");
    assert_eq!(app(&refused)["resources"]["limits"]["memory"], "64Mi");
    assert_eq!(app(&refused)["restartCount"], 0);
    resize(&world, &resources("100m", "64Mi"));
    let last = world.pod_until("web", |pod| app(pod)["resources"] == resources("100m", "64Mi"));
    assert_eq!(app(&last)["containerID"], app(&before)["containerID"]);
    world.pod_until("web", |pod| condition(pod, "PodResizeInProgress").is_null());
}

// spec: RES-11
#[test]
fn a_container_that_wants_to_is_restarted_for_it() {
    let mut world = World::new(&[]);
    world.create("web", &pod(&json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}])));
    let before = world.running("web");
    resize(&world, &resources("200m", "8Mi"));
    let faster = world.pod_until("web", |pod| app(pod)["resources"] == resources("200m", "8Mi"));
    assert_eq!(app(&faster)["containerID"], app(&before)["containerID"]);
    resize(&world, &resources("200m", "64Mi"));
    let larger = world.pod_until("web", |pod| app(pod)["restartCount"] == 1 && app(pod)["ready"] == true);
    assert_eq!(app(&larger)["resources"], resources("200m", "64Mi"));
    assert_eq!(larger["status"]["podIP"], before["status"]["podIP"]);
}
