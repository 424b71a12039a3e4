//! What pods refer to, as clients create and change it: pods wait for it, and follow it.

use serde_json::{Value, json};

use crate::world::{PODS, World, shell};

fn put(world: &World, kind: &str, name: &str, data: &Value) {
    let resource = format!("/api/v1/namespaces/default/{}s", kind.to_lowercase());
    let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data});
    let is_there = world.get(&format!("{resource}/{name}")).is_some_and(|answer| answer.code == 200);
    match is_there {
        true => world.send("PUT", &format!("{resource}/{name}"), &object).ok(),
        false => world.send("POST", &resource, &object).ok(),
    };
}

/// Waits until the last line of a pod's container is this.
fn says(world: &mut World, pod: &str, line: &str) {
    world.until(line, |world| (world.written_by(pod, "app")?.lines().last()? == line).then_some(()));
}

/// Waits until a container waits for this reason. What it says about it.
fn waits(world: &mut World, pod: &str, reason: &str, says: &str) {
    world.pod_until(pod, |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == reason && waiting["message"].as_str().unwrap_or_default().contains(says)
    });
}

// spec: META-04
#[test]
fn a_pod_goes_on_when_what_it_waits_for_is_created() {
    let mut world = World::new(&[]);
    let mut spec = shell("echo $A $B; sleep 1000");
    spec["containers"][0]["env"] = json!([
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "a"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "key", "key": "b"}}},
    ]);
    world.create("web", &spec);
    waits(&mut world, "web", "CreateContainerConfigError", "\"conf\" not found");
    put(&world, "ConfigMap", "conf", &json!({"other": "1"}));
    waits(&mut world, "web", "CreateContainerConfigError", "couldn't find key a in ConfigMap default/conf");
    put(&world, "ConfigMap", "conf", &json!({"a": "1"}));
    waits(&mut world, "web", "CreateContainerConfigError", "\"key\" not found");
    // It waits on after a crash, too.
    world.kill();
    world.start();
    waits(&mut world, "web", "CreateContainerConfigError", "\"key\" not found");
    put(&world, "Secret", "key", &json!({"b": "Mg=="}));
    world.running("web");
    says(&mut world, "web", "1 2");

    let mut spec = shell("cat /conf/late; echo; sleep 1000");
    spec["volumes"] = json!([{"name": "conf", "configMap": {"name": "late"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "conf", "mountPath": "/conf"}]);
    world.create("mounts", &spec);
    world.event("mounts", "FailedMount", "MountVolume.SetUp failed for volume \"conf\" : configmap \"late\" not found");
    put(&world, "ConfigMap", "late", &json!({"late": "than never"}));
    world.running("mounts");
    says(&mut world, "mounts", "than never");
}

// spec: META-02, META-05
#[test]
fn files_of_a_running_pod_follow_objects_and_labels() {
    let mut world = World::new(&[]);
    put(&world, "ConfigMap", "conf", &json!({"a": "0", "b": "0"}));
    put(&world, "Secret", "key", &json!({"k": "b2xk"}));
    let mut spec = shell("while true; do echo $(cat /conf/a) $(cat /all/k) $(cat /all/labels); sleep 0.1; done");
    spec["volumes"] = json!([
        {"name": "conf", "configMap": {"name": "conf"}},
        {"name": "all", "projected": {"sources": [
            {"secret": {"name": "key"}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]}},
    ]);
    spec["containers"][0]["volumeMounts"] =
        json!([{"name": "conf", "mountPath": "/conf"}, {"name": "all", "mountPath": "/all"}]);
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec});
    world.send("POST", PODS, &pod).ok();
    let before = world.running("web");
    says(&mut world, "web", "0 old app=\"web\"");
    put(&world, "ConfigMap", "conf", &json!({"a": "1", "b": "1"}));
    says(&mut world, "web", "1 old app=\"web\"");
    put(&world, "Secret", "key", &json!({"k": "bmV3"}));
    says(&mut world, "web", "1 new app=\"web\"");
    let labels = json!({"metadata": {"labels": {"app": "shop"}}});
    world.send("PATCH", &format!("{PODS}/web"), &labels).ok();
    says(&mut world, "web", "1 new app=\"shop\"");
    let after = world.running("web");
    assert_eq!(before["status"]["containerStatuses"], after["status"]["containerStatuses"], "nothing was restarted");

    // What has changed while no agent was there is seen by the next one.
    world.kill();
    world.start();
    says(&mut world, "web", "1 new app=\"shop\"");
    put(&world, "ConfigMap", "conf", &json!({"a": "2", "b": "2"}));
    says(&mut world, "web", "2 new app=\"shop\"");
}

// spec: META-05
#[test]
fn files_of_a_volume_change_all_at_once() {
    let mut world = World::new(&[]);
    put(&world, "ConfigMap", "conf", &json!({"a": "0", "b": "0"}));
    let mut spec = shell("sleep 1000");
    spec["volumes"] = json!([{"name": "conf", "configMap": {"name": "conf"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "conf", "mountPath": "/conf"}]);
    world.create("web", &spec);
    let pod = world.running("web");
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let folder = world.data.join(format!("pods/{uid}/volumes/conf"));
    // Who opens the folder has all of the old files or all of the new ones, and finds every file at any time.
    let both = || {
        let current = folder.join(std::fs::read_link(folder.join("..data")).expect("a link"));
        let read = |name: &str| std::fs::read_to_string(current.join(name));
        Some((read("a").ok()?, read("b").ok()?))
    };
    for value in 1..=50 {
        let value = value.to_string();
        put(&world, "ConfigMap", "conf", &json!({"a": value, "b": value}));
        world.until("the new files", |_| {
            assert!(folder.join("a").exists() && folder.join("b").exists());
            // A folder that goes while it is read was the old one.
            let (a, b) = both()?;
            assert_eq!(a, b);
            (a == value).then_some(())
        });
    }
}

// spec: META-04
#[test]
fn a_variable_comes_from_a_file() {
    let mut world = World::new(&[]);
    let mut spec = shell("echo $GREETING ${OTHER-none}; sleep 1000");
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["initContainers"] = json!([{
        "name": "write", "image": "busybox", "command": ["sh", "-c", "echo \"GREETING='hello there'\" > /data/env"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }]);
    let from = |key: &str, optional: bool| json!({"fileKeyRef": {"volumeName": "data", "path": "env", "key": key, "optional": optional}});
    spec["containers"][0]["env"] = json!([
        {"name": "GREETING", "valueFrom": from("GREETING", false)},
        {"name": "OTHER", "valueFrom": from("OTHER", true)},
    ]);
    world.create("web", &spec);
    world.running("web");
    says(&mut world, "web", "hello there none");
    spec["containers"][0]["env"] = json!([{"name": "OTHER", "valueFrom": from("OTHER", false)}]);
    world.create("lost", &spec);
    waits(&mut world, "lost", "CreateContainerConfigError", "OTHER");
}

// spec: META-05
#[test]
fn a_pod_whose_volume_holds_too_much_is_evicted() {
    let mut world = World::new(&[]);
    // 2 MiB.
    let much = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done
        n=0; while [ $n -lt 32 ]; do echo $x >> /data/much; n=$((n + 1)); done; sleep 1000";
    let mut spec = shell(much);
    spec["volumes"] = json!([{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    world.create("greedy", &spec);
    spec["volumes"][0]["emptyDir"]["sizeLimit"] = "10Mi".into();
    world.create("modest", &spec);
    let pod = world.pod_until("greedy", |pod| pod["status"]["phase"] == "Failed");
    assert_eq!(pod["status"]["reason"], "Evicted");
    let message = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Mi\". ";
    assert_eq!(pod["status"]["message"], message);
    world.event("greedy", "Evicted", message);
    world.running("modest");
}
