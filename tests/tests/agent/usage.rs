//! What pods use, as it is shown (RES-13).

use serde_json::{Value, json};

use crate::world::{World, shell};

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";

/// A pod that computes for as long as it may.
fn busy() -> Value {
    let mut spec = shell("while true; do :; done");
    spec["containers"][0]["resources"] = json!({"limits": {"cpu": "100m", "memory": "64Mi"}});
    spec
}

/// Thousandths of a processor, or Mi, as `husk top` writes them.
fn number(cell: &str) -> u64 {
    cell.trim_end_matches(char::is_alphabetic).parse().unwrap_or_else(|error| panic!("{cell}: {error}"))
}

// spec: RES-13
#[test]
fn top_shows_what_pods_and_the_node_use() {
    let mut world = World::new(&[]);
    world.create("busy", &busy());
    world.create("idle", &shell("sleep 100000"));
    world.running("busy");
    world.running("idle");
    // A whole window of it.
    let cells = world.until("it is measured", |world| {
        let listed = world.husk_says(&["top", "pod", "--no-headers"]);
        let rows: Vec<Vec<String>> =
            listed.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
        (rows.len() == 2 && number(&rows[0][1]) >= 80).then_some(rows)
    });
    let [busy, idle] = &cells[..] else { panic!("{cells:?}") };
    assert_eq!((busy[0].as_str(), idle[0].as_str()), ("busy", "idle"));
    assert!(number(&busy[1]) <= 110, "more than its limit: {busy:?}");
    assert!(number(&idle[1]) <= 5, "it sleeps: {idle:?}");
    assert!((1..64).contains(&number(&busy[2])), "{busy:?}");
    let containers = world.husk_says(&["top", "pod", "busy", "--containers"]);
    assert!(containers.starts_with("POD    NAME   CPU(cores)   MEMORY(bytes)\nbusy   app "), "{containers}");
    let node = world.husk_says(&["top", "node"]);
    assert!(node.contains("edge-7") && !node.contains("unknown"), "{node}");

    let metrics = world.get(&format!("{METRICS}/namespaces/default/pods/busy")).expect("an answer").ok();
    assert_eq!((&metrics["kind"], &metrics["apiVersion"]), (&json!("PodMetrics"), &json!("metrics.k8s.io/v1beta1")));
    assert_eq!(metrics["containers"][0]["name"], "app");
    let list = world.get(&format!("{METRICS}/pods")).expect("an answer").ok();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(world.get(&format!("{METRICS}/namespaces/default/pods/lost")).expect("an answer").code, 404);
    let refused = world.send("DELETE", &format!("{METRICS}/namespaces/default/pods/busy"), &json!({}));
    assert_eq!(refused.code, 405);

    // The same for Prometheus.
    let text = world.get("/metrics").expect("an answer").body;
    let labels = r#"{container="app",pod="busy",namespace="default"}"#;
    let figure = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}{labels} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
    };
    assert!(figure("container_cpu_usage_seconds_total") > 0.5);
    let (periods, throttled) =
        (figure("container_cpu_cfs_periods_total"), figure("container_cpu_cfs_throttled_periods_total"));
    assert!(throttled > 0.0 && throttled <= periods);
    assert!(figure("container_cpu_cfs_throttled_seconds_total") > 0.0);
    assert_eq!(figure("container_spec_memory_limit_bytes"), f64::from(64 << 20));
    assert!(figure("container_memory_max_usage_bytes") >= figure("container_memory_working_set_bytes"));
}
