//! What the configuration file changes, and when.

use serde_json::{Value, json};

use crate::world::{World, shell};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn log_of(world: &mut World, pod: &str) -> String {
    world.until("its output", |world| {
        let log = world.get(&format!("{PODS}/{pod}/log"))?;
        (log.code == 200 && !log.body.is_empty()).then_some(log.body)
    })
}

fn named(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

// spec: NODE-06
#[test]
fn a_gate_that_is_off_drops_its_field_with_a_warning_and_changes_nothing_else() {
    let mut world = World::configured("featureGates: {HostnameOverride: false}\n");
    let mut spec = shell("hostname; sleep 1000");
    spec["hostnameOverride"] = "other.example".into();
    spec["containers"][0]["lifecycle"] = json!({"stopSignal": "SIGTERM"});
    spec["os"] = json!({"name": "linux"});
    let created = world.send("POST", PODS, &named("web", &spec));
    let said = "spec.hostnameOverride: it is not taken: the feature gate HostnameOverride is off";
    assert!(created.warnings().iter().any(|warning| warning.contains(said)), "{created:?}");
    let pod = created.ok();
    assert_eq!(pod["spec"].get("hostnameOverride"), None);
    assert_eq!(pod["spec"]["containers"][0]["lifecycle"]["stopSignal"], "SIGTERM", "another gate's field stays");
    assert_eq!(log_of(&mut world, "web"), "web\n");
    // The same for a pod from a file.
    let mut of_file = named("beacon", &spec);
    of_file["spec"]["containers"][0]["command"] = json!(["sh", "-c", "hostname; sleep 1000"]);
    std::fs::write(world.path("manifests/beacon.json"), of_file.to_string()).expect("written");
    let pod = world.running("beacon-edge-7");
    assert_eq!(pod["spec"].get("hostnameOverride"), None);
    assert!(world.log().contains("HostnameOverride"), "{}", world.log());
}

// spec: NODE-06
#[test]
fn what_a_gate_allows_is_allowed_by_every_door() {
    let mut world =
        World::configured("featureGates: {TaintTolerationComparisonOperators: true, PodLevelResources: false}\n");
    let mut spec = shell("sleep 1000");
    spec["tolerations"] = json!([{"key": "k", "operator": "Gt", "value": "5", "effect": "NoSchedule"}]);
    spec["resources"] = json!({"limits": {"cpu": "1", "memory": "64Mi"}});
    let pod = world.create("web", &spec);
    // What follows from a field that was not taken doesn't follow either.
    assert_eq!((pod["spec"].get("resources"), &pod["status"]["qosClass"]), (None, &json!("BestEffort")));
    world.running("web");
    std::fs::write(world.path("manifests/beacon.json"), named("beacon", &spec).to_string()).expect("written");
    world.running("beacon-edge-7");
    let file = world.path("sent.json");
    std::fs::write(&file, named("sent", &spec).to_string()).expect("written");
    let socket = world.path("husk.sock").display().to_string();
    let applied = crate::husk::output(&["apply", "--socket", &socket, "-f", &file.display().to_string()]);
    assert!(applied.status.success(), "{applied:?}");
    world.running("sent");
}

// spec: NODE-06
#[test]
fn what_a_pod_uses_already_stays_when_its_gate_is_turned_off() {
    let mut world = World::configured("featureGates: {GenericWorkload: true}\n");
    let mut spec = shell("hostname; sleep 1000");
    spec["hostnameOverride"] = "other.example".into();
    world.create("web", &spec);
    assert_eq!(log_of(&mut world, "web"), "other.example\n");
    world.kill();
    world.configure("featureGates: {HostnameOverride: false}\n");
    world.start();
    world.running("web");
    let labelled = world.send("PATCH", &format!("{PODS}/web"), &json!({"metadata": {"labels": {"a": "b"}}}));
    assert!(!labelled.head.contains("HostnameOverride"), "{labelled:?}");
    let pod = labelled.ok();
    assert_eq!(pod["spec"]["hostnameOverride"], "other.example");
    let waits = world.until("it runs again", |world| {
        let log = world.get(&format!("{PODS}/web/log"))?.body;
        (!log.is_empty()).then_some(log)
    });
    assert!(waits.lines().all(|line| line == "other.example"), "{waits}");
}

#[test]
fn hang_up_reads_the_configuration_again() {
    let mut world = World::configured("maxPods: 7\n");
    let allocatable = |world: &World, what: &str| {
        let node = world.get("/api/v1/nodes/edge-7")?.ok();
        node["status"]["allocatable"][what].as_str().map(str::to_owned)
    };
    assert_eq!(allocatable(&world, "pods").as_deref(), Some("7"));
    let memory = allocatable(&world, "memory");
    world.configure("maxPods: 9\nsystemReserved: {memory: 64Mi}\nstaticPodPath: /elsewhere\n");
    world.signal("HUP");
    world.until("there is room for more", |world| (allocatable(world, "pods")? == "9").then_some(()));
    assert_ne!(allocatable(&world, "memory"), memory, "64Mi are not for pods any more");
    world.until("it says what becomes of it", |world| {
        let log = world.log();
        let line = |field: &str, said: &str| log.lines().any(|line| line.contains(field) && line.contains(said));
        (line("maxPods", "takes effect now") && line("staticPodPath", "when the agent starts again")).then_some(())
    });
    // A mistake changes nothing.
    world.configure("maxPods: many\n");
    world.signal("HUP");
    world.until("it says what is wrong", |world| {
        let log = world.log();
        let (_, wrong) = log.split_once("the configuration stays as it was")?;
        (wrong.contains("config.yaml") && wrong.contains("maxPods: many")).then_some(())
    });
    assert_eq!(allocatable(&world, "pods").as_deref(), Some("9"));
    // New names of images count for the next container.
    world.configure("maxPods: 9\nhusk: {images: {nowhere: /nowhere/at/all.wasm}}\n");
    world.signal("HUP");
    world.until("it says so", |world| world.log().contains("husk.images").then_some(()));
    let mut spec = shell("sleep 1000");
    spec["containers"][0]["image"] = "nowhere".into();
    world.create("lost", &spec);
    world.pod_until("lost", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["message"].as_str().is_some_and(|message| message.contains("/nowhere/at/all.wasm"))
    });
}

#[test]
fn as_many_files_may_be_open_as_the_system_allows() {
    let mut world = World::without_agent(&[]);
    world.under = &["sh", "-c", "ulimit -Sn 120 && ulimit -Hn 300 && exec \"$0\" \"$@\""];
    world.configure("maxPods: 30\n");
    world.start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", world.pid())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    assert_eq!(line.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["300", "300"]);
    world.until("it says that this is little", |world| {
        let log = world.log();
        let said = |line: &str| line.contains("30 pods may need") && line.contains("the hard limit is 300");
        log.lines().any(said).then_some(())
    });
    // And what there is is enough for some.
    world.create("web", &shell("sleep 1000"));
    world.running("web");
}

// spec: META-03
#[test]
fn a_resource_without_a_limit_is_what_the_node_has_for_pods() {
    let mut world = World::configured(
        "systemReserved: {memory: 100Mi}\nkubeReserved: {memory: 28Mi}\nevictionHard: {memory.available: 72Mi}\n",
    );
    let node = world.get("/api/v1/nodes/edge-7").expect("an answer").ok();
    let mut spec = shell("echo $MEMORY; cat /etc/about/memory; sleep 1000");
    let memory = json!({"containerName": "app", "resource": "limits.memory", "divisor": "1Ki"});
    spec["containers"][0]["env"] = json!([{"name": "MEMORY", "valueFrom": {"resourceFieldRef": memory}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "about", "mountPath": "/etc/about"}]);
    spec["volumes"] =
        json!([{"name": "about", "downwardAPI": {"items": [{"path": "memory", "resourceFieldRef": memory}]}}]);
    world.create("web", &spec);
    let shown = log_of(&mut world, "web");
    let bytes = |list: &str| {
        let text = node["status"][list]["memory"].as_str().expect("an amount");
        husk_core::quantity::Quantity::parse(text).expect("a quantity").value()
    };
    assert_eq!(bytes("capacity") - bytes("allocatable"), 200 << 20);
    let expected = (bytes("allocatable") / 1024).to_string();
    assert!(shown.lines().all(|line| line == expected), "{shown} is not {expected}");
}

// spec: TERM-09
#[test]
fn of_the_pods_that_have_ended_the_oldest_go_first() {
    let mut world = World::configured("husk: {terminatedPodGCThreshold: 2}\n");
    let mut spec = shell("exit 0");
    spec["restartPolicy"] = "Never".into();
    for name in ["first", "second"] {
        world.create(name, &spec);
        world.pod_until(name, |pod| pod["status"]["phase"] == "Succeeded");
    }
    world.create("third", &spec);
    world.gone("first");
    world.pod_until("third", |pod| pod["status"]["phase"] == "Succeeded");
    assert!(world.pod("second").is_some());
    // As many as that stay over a restart, too.
    world.kill();
    world.start();
    world.create("fourth", &spec);
    world.gone("second");
    for name in ["third", "fourth"] {
        world.pod_until(name, |pod| pod["status"]["phase"] == "Succeeded");
    }
}

const MARKS: [&str; 4] =
    ["kubernetes.io/config.source", "kubernetes.io/config.mirror", "kubernetes.io/config.hash", "husk.dev/config.file"];

#[test]
fn a_client_makes_no_pod_that_comes_from_a_file() {
    let mut world = World::new(&[]);
    for mark in MARKS {
        let mut pod = named("web", &shell("sleep 1000"));
        pod["metadata"]["annotations"] = json!({mark: "file"});
        let refused = world.send("POST", PODS, &pod);
        assert_eq!(refused.code, 422, "{refused:?}");
        assert!(refused.body.contains(&format!("metadata.annotations[{mark}]")), "{refused:?}");
    }
    world.create("web", &shell("sleep 1000"));
    let pod = world.running("web");
    for mark in MARKS {
        let change = json!({"metadata": {"annotations": {mark: "file"}}});
        assert_eq!(world.send("PATCH", &format!("{PODS}/web"), &change).code, 422);
    }
    assert_eq!(world.pod("web").expect("it is there")["metadata"]["uid"], pod["metadata"]["uid"]);
    world.delete("web");
    world.gone("web");
}
