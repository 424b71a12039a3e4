//! What `husk describe` says of containers (STATE-08).

use crate::device::Device;

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: mixed}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: prepare, image: busybox, command: [sh, -c, "exit 0"]}
  containers:
  - {name: stays, image: busybox, command: [sh, -c, "while true; do sleep 1; done"]}
  - {name: done, image: busybox, command: [sh, -c, "exit 0"]}
  - {name: crashes, image: busybox, command: [sh, -c, "exit 3"]}
"#;

/// The lines about a container, each as name and value.
fn about<'a>(described: &'a str, container: &str) -> Vec<(&'a str, &'a str)> {
    let head = format!("  {container}:");
    let lines = described.lines().skip_while(|line| *line != head).skip(1);
    let own = lines.take_while(|line| line.starts_with("    "));
    own.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim())).collect()
}

/// The lines from `state` on, up to the next that is no part of it.
fn part<'a>(lines: &[(&'a str, &'a str)], state: &str) -> Vec<(&'a str, &'a str)> {
    let parts = ["Reason", "Message", "Exit Code", "Signal", "Started", "Finished"];
    let from = lines.iter().position(|(name, _)| *name == state).unwrap_or_else(|| panic!("no {state}: {lines:?}"));
    let more = lines[from + 1..].iter().take_while(|(name, _)| parts.contains(name));
    lines[from..=from].iter().chain(more).copied().collect()
}

// spec: STATE-08
#[test]
fn every_container_is_described_with_its_states() {
    let device = Device::start();
    device.apply(POD);
    let waits =
        "--for=jsonpath={.status.containerStatuses[?(@.name==\"crashes\")].state.waiting.reason}=CrashLoopBackOff";
    device.husk(&["wait", waits, "pod/mixed", "--timeout=60s"]).ok();
    let described = device.husk(&["describe", "pod", "mixed"]).ok();
    let is_time = |(_, value): &(&str, &str)| value.contains(':') && value.contains(',');
    for (container, state) in [("prepare", "State"), ("done", "State"), ("crashes", "Last State")] {
        let lines = about(&described, container);
        let ended = part(&lines, state);
        let (reason, code) = if container == "crashes" { ("Error", "3") } else { ("Completed", "0") };
        assert_eq!(ended[..3], [(state, "Terminated"), ("Reason", reason), ("Exit Code", code)], "{described}");
        assert_eq!(ended.iter().skip(3).map(|(name, _)| *name).collect::<Vec<_>>(), ["Started", "Finished"]);
        assert!(ended[3..].iter().all(is_time), "{ended:?}");
    }
    let crashes = about(&described, "crashes");
    assert_eq!(part(&crashes, "State")[..2], [("State", "Waiting"), ("Reason", "CrashLoopBackOff")], "{described}");
    let stays = part(&about(&described, "stays"), "State");
    assert_eq!(stays[0], ("State", "Running"), "{described}");
    assert!(stays[1].0 == "Started" && is_time(&stays[1]), "{stays:?}");
    let count =
        |container: &str| about(&described, container).iter().find(|(name, _)| *name == "Restart Count").copied();
    assert_eq!((count("stays"), count("crashes")), (Some(("Restart Count", "0")), Some(("Restart Count", "1"))));
}
