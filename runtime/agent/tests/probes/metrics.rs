//! What is told of pods and their probes to Prometheus.

use crate::node::Node;
use crate::servers::{Server, Speaks};

/// The value of a series, which is written like this.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    line.parse().ok()
}

/// Waits until a series has at least that value.
async fn until(node: &Node, series: &str, least: f64) -> f64 {
    let wait = async {
        loop {
            if let Some(value) = value(&node.metrics(), series).filter(|value| *value >= least) {
                return value;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("no {series} in\n{}", node.metrics()))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_counted_under_the_kubelets_names() {
    let server = Server::start(Speaks::Http1).await;
    let mut node = Node::start();
    let probe = |kind: &str, path: &str| format!("{kind}: {{periodSeconds: 1, {}}}", server.get(path, ""));
    let containers = [
        ("well", format!("{}, {}", probe("readinessProbe", "/200"), probe("startupProbe", "/200"))),
        ("ill", probe("readinessProbe", "/500")),
        ("lost", "env: [{name: A, valueFrom: {configMapKeyRef: {name: missing, key: a}}}]".into()),
    ];
    let pod = node.apply("counted", &containers);
    node.ready(&pod, "well").await;
    let of = |kind: &str, result: &str, container: &str| {
        format!(
            "prober_probe_total{{probe_type=\"{kind}\",result=\"{result}\",container=\"{container}\",pod=\"counted\",\
             namespace=\"default\",pod_uid=\"counted\"}}"
        )
    };
    until(&node, &of("Readiness", "successful", "well"), 2.0).await;
    until(&node, &of("Readiness", "failed", "ill"), 2.0).await;
    assert_eq!(until(&node, &of("Startup", "successful", "well"), 1.0).await, 1.0);
    let durations = "prober_probe_duration_seconds_count{probe_type=\"Startup\",container=\"well\",pod=\"counted\",\
                     namespace=\"default\"}";
    assert_eq!(until(&node, durations, 1.0).await, 1.0);
    until(&node, "kubelet_running_containers{container_state=\"running\"}", 2.0).await;
    let errors =
        "kubelet_started_containers_errors_total{container_type=\"container\",code=\"CreateContainerConfigError\"}";
    until(&node, errors, 1.0).await;
    let text = node.metrics();
    for (series, expected) in [
        ("kubelet_node_name{node=\"test\"}", 1.0),
        ("kubelet_running_pods", 1.0),
        ("kubelet_started_pods_total", 1.0),
        ("kubelet_started_containers_total{container_type=\"container\"}", 2.0),
        (errors, 1.0),
    ] {
        assert_eq!(value(&text, series), Some(expected), "{series} in\n{text}");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let started = "container_start_time_seconds{container=\"well\",pod=\"counted\",namespace=\"default\"}";
    for at in [started, "process_start_time_seconds"] {
        let at = value(&text, at).unwrap_or_default();
        assert!(now - 3600.0 < at && at <= now + 1.0, "{at}");
    }
    for of_process in ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"] {
        assert!(value(&text, of_process).is_some_and(|value| value > 0.0), "{of_process}");
    }
    assert!(text.ends_with("# EOF\n"));
    // What is about a pod goes with it; what is counted over all pods stays.
    node.delete(&pod).await;
    let text = node.metrics();
    assert!(!text.contains("\"counted\""), "{text}");
    assert_eq!(value(&text, "kubelet_running_pods"), Some(0.0));
    assert_eq!(value(&text, "kubelet_running_containers{container_state=\"running\"}"), Some(0.0));
    assert_eq!(value(&text, "kubelet_started_pods_total"), Some(1.0));
    node.shutdown().await;
}
