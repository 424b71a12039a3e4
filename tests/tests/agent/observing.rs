//! How the agent shows itself to those who watch it: checks, events of the node, its lease, figures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use husk_core::io::Urgency;
use husk_store::{Boot, Options, Store};
use serde_json::{Value, json};

use crate::husk::command;
use crate::world::{World, shell};

const NODE_EVENTS: &str = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DNode";

fn node_events(world: &World) -> BTreeMap<String, Value> {
    let list = world.get(NODE_EVENTS).expect("an answer").ok();
    let events = list["items"].as_array().expect("items").iter();
    events.map(|event| (event["reason"].as_str().expect("a reason").to_owned(), event.clone())).collect()
}

#[test]
fn checks_are_told_by_name() {
    let mut world = World::new(&[]);
    world.until("it is ready", |world| world.get("/readyz").filter(|answer| answer.code == 200));
    let ready = world.get("/readyz?verbose").expect("an answer");
    let wanted = "[+]ping ok\n[+]syncloop ok\n[+]store ok\n[+]restore ok\n[+]shutdown ok\nreadyz check passed\n";
    assert_eq!((ready.code, ready.body.as_str()), (200, wanted));
    for (path, wanted) in [
        ("/livez?verbose", "[+]ping ok\n[+]syncloop ok\nlivez check passed\n"),
        ("/healthz?verbose", "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n"),
        ("/livez", "ok"),
        ("/readyz/store", "ok"),
    ] {
        let answer = world.get(path).expect("an answer");
        assert_eq!((answer.code, answer.body.as_str()), (200, wanted), "{path}");
    }
    assert_eq!(world.get("/readyz/etcd").expect("an answer").code, 404);
    // A node that shuts down is not ready, and lives.
    let mut deaf = shell("trap '' TERM; echo deaf; while true; do sleep 1; done");
    deaf["terminationGracePeriodSeconds"] = 1000.into();
    world.create("deaf", &deaf);
    world.running("deaf");
    world.signal("TERM");
    let ending = |world: &World| world.get("/readyz").filter(|answer| answer.code == 500);
    let answer = world.until("it is not ready any more", ending);
    assert!(answer.body.contains("[-]shutdown failed: the node shuts down\n"), "{answer:?}");
    assert_eq!(world.get("/livez").expect("an answer").code, 200);
}

// spec: NODE-01
#[test]
fn the_node_has_events_and_a_lease() {
    let mut world = World::new(&[]);
    let first = node_events(&world);
    for reason in ["Starting", "NodeReady"] {
        let event = first.get(reason).unwrap_or_else(|| panic!("no {reason}: {first:?}"));
        assert_eq!((&event["type"], &event["source"]["component"]), (&json!("Normal"), &json!("kubelet")));
        // As upstream: the uid in it is the node's name.
        let about = json!({"kind": "Node", "apiVersion": "v1", "name": "edge-7", "uid": "edge-7"});
        assert_eq!(event["involvedObject"], about);
    }
    assert_eq!(first.len(), 2, "{first:?}");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-7";
    let renewed = |world: &World| world.get(lease).filter(|answer| answer.code == 200).map(|answer| answer.ok());
    let begun = world.until("the lease", renewed);
    assert_eq!(
        (&begun["spec"]["holderIdentity"], &begun["spec"]["leaseDurationSeconds"]),
        (&json!("edge-7"), &json!(40))
    );
    world.until("it is renewed", |world| {
        renewed(world).filter(|lease| lease["spec"]["renewTime"].as_str() > begun["spec"]["renewTime"].as_str())
    });

    world.kill();
    std::fs::write(world.path("data/state.redb"), [0x5a; 70_000]).expect("written");
    world.start();
    let after = node_events(&world);
    let set_aside = after.get("StateSetAside").unwrap_or_else(|| panic!("{after:?}"));
    assert_eq!(set_aside["type"], "Warning");
    assert!(set_aside["message"].as_str().is_some_and(|said| said.contains("state.redb.corrupt-1")), "{set_aside}");
    let mut describe = command();
    describe.args(["describe", "node", "edge-7"]).env("HUSK_SOCKET", world.path("husk.sock"));
    let described = describe.output().expect("husk starts");
    let described = String::from_utf8_lossy(&described.stdout).into_owned();
    assert!(described.contains("StateSetAside") && described.contains("NodeReady"), "{described}");
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_costs_no_other_pod() {
    let mut world = World::new(&[]);
    let keeps = |name: &str| {
        let mut spec = shell("echo line >> /data/lines; cat /data/lines; sleep 100000");
        spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
        spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        (name.to_owned(), spec)
    };
    for (name, spec) in ["web", "lost"].map(keeps) {
        world.create(&name, &spec);
    }
    let (before, lost) = (world.running("web"), world.running("lost"));
    world.until("it wrote", |world| world.written_by("lost", "app").filter(|log| log == "line\n"));
    world.kill();
    let boot = Boot { id: String::new(), uptime: Duration::ZERO };
    let opened = Store::open(&world.path("data/state.redb"), Options::new(boot)).expect("it opens");
    let lost_uid = lost["metadata"]["uid"].as_str().expect("a uid");
    for uid in ["of-nobody", lost_uid] {
        opened.store.persist(opened.now, uid, vec![0xff; 9], Urgency::Soon);
    }
    opened.store.close(opened.now).expect("written");
    world.start();
    world.event("edge-7", "StateUnreadable", "pod of-nobody: ");
    assert_eq!(world.running("web")["metadata"]["uid"], before["metadata"]["uid"]);
    // It begins anew, and has what it wrote: its volumes go with its object.
    assert_eq!(world.running("lost")["metadata"]["uid"], lost["metadata"]["uid"]);
    world.until("it has its volume", |world| world.written_by("lost", "app").filter(|log| log == "line\nline\n"));
}

/// A sample: its labels and its value.
type Sample = (BTreeMap<String, String>, f64);

/// Reads figures as Prometheus does, and is no less strict about it. By family: its type and its samples, each with its suffix.
fn figures(text: &str) -> BTreeMap<String, (String, Vec<(String, Sample)>)> {
    let body = text.strip_suffix("# EOF\n").expect("it ends as it should");
    let mut families: BTreeMap<String, (String, Vec<(String, Sample)>)> = BTreeMap::new();
    let (mut family, mut seen) = (String::new(), BTreeSet::new());
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            family = name.to_owned();
            assert!(families.insert(family.clone(), (kind.to_owned(), Vec::new())).is_none(), "{line} twice");
        } else if line.starts_with('#') {
            assert!(line.starts_with("# HELP ") || line.starts_with("# UNIT "), "{line}");
        } else {
            assert!(seen.insert(line.rsplit_once(' ').expect("a value").0.to_owned()), "{line} twice");
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = series.split_once('{').map_or((series, ""), |(name, rest)| (name, rest));
            let suffix = name.strip_prefix(&*family).unwrap_or_else(|| panic!("{line} is not of {family}"));
            let labels = labels.strip_suffix('}').unwrap_or(labels);
            let label = |label: &str| {
                let (name, value) = label.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
                (name.to_owned(), value.trim_end_matches('"').to_owned())
            };
            let labels = labels.split("\",").filter(|label| !label.is_empty()).map(label).collect();
            let value = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
            families.get_mut(&family).expect("declared").1.push((suffix.to_owned(), (labels, value)));
        }
    }
    families
}

/// Labels of what is said of a container.
const CONTAINER: &[&str] = &["container", "namespace", "pod"];
/// Under the names and with the labels of a kubelet, as its documentation lists them.
const OF_A_KUBELET: [(&str, &str, &[&str]); 25] = [
    ("container_cpu_cfs_periods", "counter", CONTAINER),
    ("container_cpu_cfs_throttled_periods", "counter", CONTAINER),
    ("container_cpu_cfs_throttled_seconds", "counter", CONTAINER),
    ("container_cpu_usage_seconds", "counter", CONTAINER),
    ("container_memory_failcnt", "gauge", CONTAINER),
    ("container_memory_max_usage_bytes", "gauge", CONTAINER),
    ("container_memory_working_set_bytes", "gauge", CONTAINER),
    ("container_spec_memory_limit_bytes", "gauge", CONTAINER),
    ("container_start_time_seconds", "gauge", CONTAINER),
    ("kubelet_lifecycle_handler_http_fallbacks", "counter", &[]),
    ("kubelet_node_name", "gauge", &["node"]),
    ("kubelet_pod_start_duration_seconds", "histogram", &[]),
    ("kubelet_running_containers", "gauge", &["container_state"]),
    ("kubelet_running_pods", "gauge", &[]),
    ("kubelet_started_containers", "counter", &["container_type"]),
    ("kubelet_started_containers_errors", "counter", &["code", "container_type"]),
    ("kubelet_started_pods", "counter", &[]),
    ("kubelet_started_pods_errors", "counter", &[]),
    ("kubelet_started_user_namespaced_pods", "counter", &[]),
    ("kubelet_started_user_namespaced_pods_errors", "counter", &[]),
    ("node_cpu_usage_seconds", "counter", &[]),
    ("node_memory_working_set_bytes", "gauge", &[]),
    ("pod_cpu_usage_seconds", "counter", &["namespace", "pod"]),
    ("pod_memory_working_set_bytes", "gauge", &["namespace", "pod"]),
    ("prober_probe", "counter", &["container", "namespace", "pod", "pod_uid", "probe_type", "result"]),
];
/// The same.
const PROBE_TIMES: (&str, &str, &[&str]) =
    ("prober_probe_duration_seconds", "histogram", &["container", "namespace", "pod", "probe_type"]);

#[test]
fn figures_are_read_as_prometheus_reads_them_and_are_a_kubelets() {
    let mut world = World::new(&[]);
    let mut spec = shell("sleep 100000");
    spec["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
    world.create("web", &spec);
    world.running("web");
    let lost = json!({"containers": [{"name": "app", "image": "busybox", "env": [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "a"}}}]}]});
    world.create("lost", &lost);
    let text = world.until("all of them", |world| {
        let text = world.get("/metrics")?.body;
        let is_measured = text.contains("container_cpu_usage_seconds_total{");
        (text.contains("CreateContainerConfigError") && is_measured).then_some(text)
    });
    let families = figures(&text);
    for (name, kind, labels) in OF_A_KUBELET.into_iter().chain([PROBE_TIMES]) {
        let (found, samples) = families.get(name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
        assert_eq!(found, kind, "{name}");
        assert!(!samples.is_empty(), "{name}");
        for (suffix, (found, value)) in samples {
            let suffixes: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(suffixes.contains(&suffix.as_str()), "{name}{suffix}");
            let found: Vec<&str> = found.keys().map(String::as_str).filter(|label| *label != "le").collect();
            assert_eq!(found, labels, "{name}");
            assert!(*value >= 0.0, "{name} {value}");
        }
    }
    // Buckets hold what those before them hold, and the last one all.
    let (_, samples) = &families["kubelet_pod_start_duration_seconds"];
    let of =
        |suffix: &str| samples.iter().filter(|(s, _)| s == suffix).map(|(_, (_, value))| *value).collect::<Vec<_>>();
    let buckets = of("_bucket");
    assert!(buckets.is_sorted() && buckets.last() == of("_count").last(), "{samples:?}");
    // What is neither a kubelet's nor any process's is nobody's.
    for name in families.keys() {
        let is_known = OF_A_KUBELET.iter().chain([&PROBE_TIMES]).any(|(known, ..)| known == name);
        assert!(is_known || name.starts_with("process_") || name.starts_with("husk_"), "{name}");
    }
}
