//! Pods of the API: from their creation to their end.

use serde_json::json;

use crate::world::{World, shell};

#[test]
fn a_pod_lives_and_is_seen() {
    let mut world = World::new(&[]);
    world.create("web", &shell("echo up; sleep 1000"));
    let pod = world.running("web");
    assert_eq!(pod["spec"]["nodeName"], "edge-7");
    assert!(pod["status"]["podIP"].as_str().is_some_and(|ip| ip.starts_with("127.")), "{pod}");
    let log = world.until("a line", |world| {
        let log = world.get("/api/v1/namespaces/default/pods/web/log")?;
        (log.code == 200 && !log.body.is_empty()).then_some(log.body)
    });
    assert_eq!(log, "up\n");
    let reasons = world.until("its events", |world| {
        let events = world.get("/api/v1/namespaces/default/events")?.ok();
        let reasons: Vec<String> = events["items"]
            .as_array()?
            .iter()
            .filter(|event| event["involvedObject"]["name"] == "web")
            .filter_map(|event| event["reason"].as_str().map(str::to_owned))
            .collect();
        reasons.iter().any(|reason| reason == "Started").then_some(reasons)
    });
    for wanted in ["Scheduled", "Pulled", "Created", "Started"] {
        assert!(reasons.iter().any(|reason| reason == wanted), "{wanted}: {reasons:?}");
    }
    let metrics = world.get("/metrics").expect("an answer");
    assert_eq!(metrics.code, 200);
    for line in ["kubelet_running_pods 1", "kubelet_running_containers{container_state=\"running\"} 1"] {
        assert!(metrics.body.lines().any(|known| known == line), "{line}: {}", metrics.body);
    }
    world.delete("web");
    world.gone("web");
    assert_eq!(world.end(), Some(0));
}

#[test]
fn conditions_of_clients_count_for_readiness() {
    let mut world = World::new(&[]);
    let mut spec = shell("sleep 1000");
    spec["readinessGates"] = json!([{"conditionType": "example.com/open"}]);
    world.create("gated", &spec);
    world.pod_until("gated", |pod| pod["status"]["phase"] == "Running");
    let open = json!({"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}});
    world.send("PATCH", "/api/v1/namespaces/default/pods/gated/status", &open).ok();
    world.running("gated");
}

// spec: NODE-01
#[test]
fn the_node_shows_what_it_has_and_is_told_what_people_want() {
    let mut world = World::new(&[]);
    let node = world.get("/api/v1/nodes/edge-7").expect("an answer").ok();
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "edge-7");
    assert_eq!(node["status"]["allocatable"]["pods"], "1k");
    assert!(node["status"]["capacity"]["memory"].is_string(), "{node}");
    let cordoned = json!({"spec": {"unschedulable": true}});
    world.send("PATCH", "/api/v1/nodes/edge-7", &cordoned).ok();
    world.create("late", &shell("sleep 1000"));
    let waits = |pod: &serde_json::Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|c| c["type"] == "PodScheduled" && c["status"] == "False")
    };
    world.pod_until("late", waits);
    world.send("PATCH", "/api/v1/nodes/edge-7", &json!({"spec": {"unschedulable": null}})).ok();
    world.running("late");
}

#[test]
fn bad_configurations_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.yaml");
    for (text, said) in [
        ("staticPodPaths: /x\n", "staticPodPaths"),
        ("featureGates: {NoSuchThing: true}\n", "featureGates.NoSuchThing: unknown feature gate"),
        ("shutdownGracePeriod: soon\n", "`soon` is no time"),
        ("husk: {listen: '0.0.0.0:80'}\n", "not a loopback address"),
    ] {
        std::fs::write(&file, text).expect("written");
        let output = crate::husk::output(&["agent", "--config", &file.display().to_string()]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("config.yaml") && stderr.contains(said), "{stderr}");
    }
}
