//! `husk timeline`: what really happened to a pod, also when the agent was killed and when the pod is gone.

use serde_json::Value;

use crate::device::Device;

/// Crashes twice, a while after it has become ready.
const FLAKY: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: flaky}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: prepare, image: busybox, command: [sh, -c, "true"]}
  containers:
  - name: app
    image: busybox
    command: [sh, -c, "sleep 1; echo x >> /data/count; test $(wc -l < /data/count) -gt 2 && sleep 1000; exit 3"]
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
"#;

fn changes<'a>(timeline: &'a Value, kind: &str, container: Option<&str>) -> Vec<&'a str> {
    let changes = timeline["changes"].as_array().expect("changes").iter();
    let wanted = changes.filter(|change| change["kind"] == kind && change["container"].as_str() == container);
    wanted.filter_map(|change| change["what"].as_str()).collect()
}

/// Are they there in that order, whatever comes between?
fn has_in_order(all: &[&str], wanted: &[&str]) -> bool {
    let mut all = all.iter();
    wanted.iter().all(|word| all.any(|other| other == word))
}

#[test]
fn it_shows_a_life_with_crashes_a_kill_and_an_end() {
    let mut device = Device::start();
    device.apply(FLAKY);
    let restarted = ["wait", "pod/flaky", "--for=jsonpath={.status.containerStatuses[0].restartCount}=2"];
    device.husk(&[&restarted[..], &["--timeout=60s"]].concat()).ok();
    device.ready("flaky");

    let timeline = device.json(&["timeline", "flaky"]);
    let states = changes(&timeline, "state", Some("app"));
    assert!(has_in_order(&states, &["waiting", "ready", "back-off", "ready"]), "{states:?}");
    assert!(has_in_order(&changes(&timeline, "state", Some("prepare")), &["running", "exited"]), "{timeline}");
    assert!(has_in_order(&changes(&timeline, "phase", None), &["Pending", "Running"]), "{timeline}");
    let app = &timeline["containers"][1];
    assert_eq!((&app["role"], &app["restartCount"]), (&"app".into(), &2.into()));
    let codes: Vec<i64> =
        app["exits"].as_array().expect("exits").iter().filter_map(|e| e["exitCode"].as_i64()).collect();
    assert_eq!(codes, [3, 3]);
    assert!(app["probes"].as_array().is_some_and(|probes| probes.iter().any(|probe| probe["success"] == true)));
    assert!(timeline["start"].is_string() && timeline["completeSince"].is_null(), "{timeline}");

    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("flaky.svg");
    let table = device.husk(&["timeline", "pod/flaky", "--svg", &picture.display().to_string()]).ok();
    assert!(table.starts_with("TIME ") && table.contains("default/flaky is Running after"), "{table}");
    assert!(table.contains("Restarts: app 2."), "{table}");
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    for word in ["prepare", "readiness", "exit 3", "of real time", "back-off", "</svg>"] {
        assert!(svg.contains(word), "no {word}");
    }

    device.kill_and_start_again();
    device.ready("flaky");
    let after = device.json(&["timeline", "flaky"]);
    assert_eq!(changes(&after, "node", None), ["AgentRestarted"]);
    assert_eq!((&after["uid"], &after["containers"][1]["restartCount"]), (&timeline["uid"], &3.into()));
    assert!(after["completeSince"].as_f64() > timeline["seconds"].as_f64(), "{after}");
    // What the record knows of the time before: that it crashed, and how often.
    let before = after["changes"].as_array().expect("changes").iter().find(|change| change["what"] == "BackOff");
    assert!(before.is_some_and(|change| change["seconds"].as_f64() < after["completeSince"].as_f64()), "{after}");
    assert!(device.husk(&["timeline", "flaky"]).ok().contains("the agent was another"));

    device.husk(&["delete", "pod", "flaky"]).ok();
    let gone = device.json(&["timeline", "flaky"]);
    assert_eq!((&gone["gone"], &gone["uid"]), (&true.into(), &after["uid"]));
    assert!(has_in_order(&changes(&gone, "pod", None), &["delete", "gone"]), "{gone}");
    assert!(device.husk(&["timeline", "flaky", "--previous"]).failed().contains("nothing is known of a pod"));
    device.apply(FLAKY);
    device.ready("flaky");
    assert_eq!(device.json(&["timeline", "flaky"])["gone"], false);
    assert_eq!(device.json(&["timeline", "flaky", "--previous"])["uid"], gone["uid"]);
}

#[test]
fn a_pod_that_never_was_is_not_found() {
    let device = Device::start();
    assert!(device.husk(&["timeline", "nobody"]).failed().contains("pods \"nobody\" not found"));
}
