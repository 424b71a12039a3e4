//! A device without any network: what is on it starts, and goes on.

use std::process::Command;

use serde_json::Value;

use crate::husk::command;
use crate::static_pods::write;
use crate::world::{World, restarts, sleeper};

/// A machine that has nothing but itself.
const ALONE: &[&str] = &["unshare", "--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];
/// Not even that.
const CUT_OFF: &[&str] = &["unshare", "--map-root-user", "--net"];

const WEB: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: nginx
    args: [--port, '8080']
    readinessProbe: {periodSeconds: 1, httpGet: {path: /healthz, port: 8080}}
  - name: own
    image: registry.example/sensor:1
    imagePullPolicy: Always
";
const QUIET: &str = "apiVersion: v1
kind: Pod
metadata: {name: quiet}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: own, image: 'registry.example/sensor:1'}
";

/// A device with an image of its own; none where no network can be taken away.
fn device(under: &'static [&'static str]) -> Option<World> {
    let mut world = World::without_agent(&[]);
    world.under = under;
    let [program, args @ ..] = under else { return None };
    if !Command::new(program).args(args).arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: nothing can be cut off its network here, so that nothing is known about a device that is");
        return None;
    }
    std::fs::write(world.path("sensor.wat"), sleeper("sensor")).expect("written");
    let mut import = command();
    import.args(["image", "import", "--name", "registry.example/sensor:1", "--data-dir"]).arg(&world.data);
    let imported = import.arg(world.path("sensor.wat")).output().expect("husk starts");
    assert!(imported.status.success(), "{imported:?}");
    Some(world)
}

/// Those of the test's network, or none: those of another one are seen by who is in it.
fn networks(world: &World) -> String {
    std::fs::read_to_string(format!("/proc/{}/net/dev", world.pid())).expect("it runs")
}

// spec: NODE-05
#[test]
fn what_is_on_a_device_without_a_network_starts_and_goes_on() {
    let Some(mut world) = device(ALONE) else { return };
    write(&world, "web.yaml", WEB);
    world.start();
    let others: Vec<String> = networks(&world).lines().skip(2).map(str::to_owned).collect();
    assert!(others.len() == 1 && others[0].trim().starts_with("lo:"), "{others:?}");
    let before = world.running("web-edge-7");
    world.kill();
    world.start();
    let after = world.running("web-edge-7");
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(before["status"]["podIP"], after["status"]["podIP"]);
    assert_eq!(restarts(&after), restarts(&before) + 1);
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

// spec: NODE-05
#[test]
fn a_device_without_even_a_loopback_runs_what_needs_none() {
    let Some(mut world) = device(CUT_OFF) else { return };
    write(&world, "quiet.yaml", QUIET);
    world.start();
    let before = world.running("quiet-edge-7");
    world.kill();
    world.start();
    let after = world.running("quiet-edge-7");
    let about = |pod: &Value| [pod["metadata"]["uid"].clone(), pod["status"]["podIP"].clone()];
    assert_eq!(about(&before), about(&after));
    assert_eq!(world.end(), Some(0), "{}", world.log());
}
