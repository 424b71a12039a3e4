//! A device is emptied as a node of a cluster is: by the real `kubectl`. Where that isn't installed nothing is tested, so this claims no row
//! (DISR-03).

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::device::Device;
use crate::kubectl::Kubectl;

const MEMBERS: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: zk-0, labels: {app: zk}}, spec: &spec {
    terminationGracePeriodSeconds: 1,
    containers: [{name: app, image: busybox, command: [sh, -c, "while true; do sleep 1; done"]}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: zk-1, labels: {app: zk}}, spec: *spec}
- {apiVersion: v1, kind: Pod, metadata: {name: other}, spec: *spec}
"#;
const BUDGET: &str = r#"
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: zk}
spec: {minAvailable: 2, selector: {matchLabels: {app: zk}}}
"#;
const LATE: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: late}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: busybox, command: [sleep, "1000"]}]}
"#;

#[test]
fn a_drain_is_blocked_by_a_budget_and_goes_on_when_that_allows_it() {
    let device = Device::start();
    let Some(kubectl) = Kubectl::on(&device) else { return };
    device.apply(MEMBERS);
    device.apply(BUDGET);
    for pod in ["zk-0", "zk-1", "other"] {
        device.ready(pod);
    }
    let drain = ["drain", "device", "--force", "--timeout=100s"];
    let mut draining =
        kubectl.command(&drain).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("kubectl starts");
    let mut said = BufReader::new(draining.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let refused = said.find(|line| line.contains("will retry after"));
    let refused = refused.expect("an eviction is refused");
    assert!(refused.contains("Cannot evict pod as it would violate the pod's disruption budget"), "{refused}");
    // Nobody new comes meanwhile, and who is protected runs.
    let node = device.json(&["get", "node", "device"]);
    assert_eq!(node["spec"]["unschedulable"], true);
    device.apply(LATE);
    assert_eq!(device.husk(&["get", "pods", "-l", "app=zk", "-o", "name"]).ok(), "pod/zk-0\npod/zk-1\n");
    device.husk(&["wait", "--for=delete", "pod/other", "--timeout=60s"]).ok();
    device.husk(&["delete", "pdb", "zk"]).ok();
    let rest: Vec<String> = said.collect();
    assert!(draining.wait().expect("it ends").success(), "{rest:#?}");
    assert_eq!(device.husk(&["get", "pods", "-o", "name"]).ok(), "pod/late\n");
    let waits = device.json(&["get", "pod", "late"]);
    assert_eq!(waits["status"]["phase"], "Pending");
    // And back.
    assert_eq!(kubectl.run(&["uncordon", "device"]).ok(), "node/device uncordoned\n");
    device.ready("late");
    assert_eq!(kubectl.run(&["cordon", "device"]).ok(), "node/device cordoned\n");
    assert!(device.husk(&["get", "node", "device"]).ok().contains("SchedulingDisabled"));
}
