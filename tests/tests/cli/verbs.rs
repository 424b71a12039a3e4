//! The verbs against a real agent.

use std::process::Stdio;

use crate::device::{Device, line_with};
use crate::husk::BAD_INPUT;

/// Two containers that stay, after one that ends.
pub(crate) const WEB: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, tier: front}
  annotations: {note: hello}
spec:
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: prepare
    image: busybox
    command: [sh, -c, echo prepared]
  containers:
  - name: app
    image: busybox
    command: [sh, -c, "echo first; echo second; while true; do sleep 1; done"]
    ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]
    env:
    - {name: PLAIN, value: "one\ntwo"}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  - name: helper
    image: busybox
    command: [sh, -c, "echo help; while true; do sleep 1; done"]
  volumes: [{name: data, emptyDir: {}}]
"#;

pub(crate) const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: '1'\n";

#[test]
fn a_pod_is_applied_looked_at_and_deleted() {
    let device = Device::start();
    let said = device.with_input(&["apply", "-f", "-"], WEB);
    assert_eq!(said.ok(), "pod/web created\n");
    device.ready("web");
    assert_eq!(device.with_input(&["apply", "-f", "-"], WEB).ok(), "pod/web unchanged\n");
    let changed = WEB.replace("note: hello", "note: goodbye");
    assert_eq!(device.with_input(&["apply", "-f", "-"], &changed).ok(), "pod/web configured\n");
    let table = device.husk(&["get", "po", "web", "-o", "wide", "--show-labels"]).ok();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let [header, row] = lines.as_slice() else { panic!("{table}") };
    assert_eq!(header[..5], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(row[..4], ["web", "2/2", "Running", "0"]);
    assert_eq!(row.last(), Some(&"app=web,tier=front"));
    assert_eq!(device.husk(&["get", "pods", "-l", "app=web", "-o", "name"]).ok(), "pod/web\n");
    assert_eq!(device.husk(&["get", "pods", "-l", "app=db", "-o", "name"]).ok(), "");
    assert_eq!(device.husk(&["get", "pod", "web", "-o", "jsonpath={.metadata.annotations.note}"]).ok(), "goodbye");
    let columns = ["get", "pods", "-o", "custom-columns=POD:.metadata.name,ON:.spec.nodeName", "--no-headers"];
    assert_eq!(device.husk(&columns).ok(), "web   device\n");
    let yaml = device.husk(&["get", "pod", "web", "-o", "yaml"]).ok();
    assert!(yaml.starts_with("apiVersion: v1\nkind: Pod\nmetadata:\n") && !yaml.contains("managedFields"), "{yaml}");
    assert_eq!(device.json(&["get", "pods", "-A"])["items"][0]["metadata"]["name"], "web");
    let described = device.husk(&["describe", "pod", "web"]).ok();
    for part in ["device/127.", "Started", "Restart Count:  0", "QoS Class:", "Successfully assigned"] {
        assert!(described.contains(part), "{part}: {described}");
    }
    assert_eq!(device.husk(&["delete", "pod", "web"]).ok(), "pod \"web\" deleted\n");
    let err = device.husk(&["get", "pod", "web"]).failed();
    assert_eq!(err, "Error from server (NotFound): pods \"web\" not found\n");
}

#[test]
fn logs_are_those_of_the_container_that_was_meant() {
    let device = Device::start();
    device.apply(WEB);
    device.ready("web");
    let said = device.husk(&["logs", "web"]);
    assert_eq!(said.err, "Defaulted container \"app\" out of: app, helper, prepare (init)\n");
    assert_eq!(said.ok(), "first\nsecond\n");
    assert_eq!(device.husk(&["logs", "pod/web", "-c", "app", "--tail", "1"]).ok(), "second\n");
    assert_eq!(device.husk(&["logs", "web", "prepare"]).ok(), "prepared\n");
    let all = device.husk(&["logs", "-l", "app=web", "--all-containers", "--prefix"]).ok();
    let wanted = "[pod/web/prepare] prepared\n[pod/web/app] first\n[pod/web/app] second\n[pod/web/helper] help\n";
    assert_eq!(all, wanted);
    let with_times = device.husk(&["logs", "web", "-c", "app", "--timestamps"]).ok();
    assert!(with_times.lines().all(|line| line.split_once(' ').is_some_and(|(time, _)| time.ends_with('Z'))));
    assert!(
        device.husk(&["logs", "web", "-c", "nobody"]).failed().contains("container nobody is not valid for pod web")
    );
    let err = device.husk(&["logs", "web", "-c", "app", "--previous"]).failed();
    assert!(err.contains("previous terminated container \"app\" in pod \"web\" not found"), "{err}");
    // What is written later comes later.
    let mut following = device.command(&["logs", "-f", "web", "-c", "helper"]);
    let mut following = following.stdout(Stdio::piped()).spawn().expect("husk starts");
    line_with(&mut following, &["help"]);
    device.husk(&["delete", "pod", "web"]).ok();
    assert!(following.wait().expect("it ends with the log").success());
}

#[test]
fn programs_run_in_containers() {
    let device = Device::start();
    device.apply(WEB);
    device.ready("web");
    let said = device.husk(&["exec", "web", "-c", "app", "--", "sh", "-c", "echo out; echo bad >&2; exit 5"]);
    let wanted = (5, "out\n", "bad\ncommand terminated with exit code 5\n");
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), wanted);
    let echoed = device.with_input(&["exec", "-i", "web", "-c", "helper", "--", "cat"], "hello\nworld\n");
    assert_eq!(echoed.ok(), "hello\nworld\n");
    let err = device.husk(&["exec", "web", "-c", "nobody", "--", "true"]).failed();
    assert_eq!(err, "Error from server (BadRequest): container nobody is not valid for pod web\n");
}

#[test]
fn a_watch_shows_what_becomes_of_a_pod() {
    let device = Device::start();
    let mut watching = device.command(&["get", "pods", "-w", "--output-watch-events"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().expect("husk starts");
    let mut events = device.command(&["events", "--for", "pod/web", "-w"]);
    let mut events = events.stdout(Stdio::piped()).spawn().expect("husk starts");
    device.apply(WEB);
    device.ready("web");
    device.husk(&["delete", "pod", "web"]).ok();
    let seen = line_with(&mut watching, &["Running", "Terminating", "DELETED"]);
    assert!(seen[0].starts_with("EVENT") && seen[1].starts_with("ADDED"), "{seen:#?}");
    line_with(&mut events, &["Scheduled", "Started", "Killing"]);
    for mut child in [watching, events] {
        child.kill().expect("it runs");
        child.wait().expect("killed");
    }
}

#[test]
fn waits_end_when_it_is_so_or_time_is_up() {
    let device = Device::start();
    let never = WEB.replace("[\"true\"]", "[\"false\"]");
    device.apply(&never);
    let phase = ["wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=60s"];
    assert_eq!(device.husk(&phase).ok(), "pod/web condition met\n");
    let err = device.husk(&["wait", "--for=condition=Ready", "pods", "--all", "--timeout=100ms"]).failed();
    assert_eq!(err, "error: timed out waiting for the condition on pods/web\n");
    let not_ready = ["wait", "--for=condition=ready=false", "pod", "-l", "app=web"];
    assert_eq!(device.husk(&not_ready).ok(), "pod/web condition met\n");
    let mut gone = device.command(&["wait", "--for=delete", "pod/web", "--timeout=60s"]);
    let gone = gone.stdout(Stdio::piped()).spawn().expect("husk starts");
    assert_eq!(device.husk(&["delete", "pods", "--all", "--wait=false"]).ok(), "pod \"web\" deleted\n");
    let gone = gone.wait_with_output().expect("it ends");
    // It may have come too late to see it go.
    assert!(
        gone.status.success() && ["", "pod/web condition met\n"].contains(&&*String::from_utf8_lossy(&gone.stdout))
    );
    let err = device.husk(&["wait", "--for=condition=Ready", "pod/web"]).failed();
    assert_eq!(err, "Error from server (NotFound): pods \"web\" not found\n");
}

#[test]
fn deletions_say_how_and_take_only_what_was_named() {
    let device = Device::start();
    device.apply(SETTINGS);
    device.apply(&SETTINGS.replace("settings", "others"));
    assert_eq!(
        device.husk(&["delete", "cm"]).failed(),
        "error: resource(s) were provided, but no name was specified\n"
    );
    let dry = device.husk(&["delete", "cm/others", "--dry-run=server"]).ok();
    assert_eq!(dry, "configmap \"others\" deleted (server dry run)\n");
    let said = device.with_input(&["delete", "-f", "-"], SETTINGS);
    assert_eq!(said.ok(), "configmap \"settings\" deleted\n");
    assert_eq!(device.husk(&["get", "cm", "-o", "name"]).ok(), "configmap/others\n");
    let both = device.husk(&["delete", "cm", "settings", "others"]);
    assert_eq!((both.code, both.out.as_str()), (1, "configmap \"others\" deleted\n"));
    assert_eq!(both.err, "Error from server (NotFound): configmaps \"settings\" not found\n");
    device.husk(&["delete", "cm", "settings", "--ignore-not-found"]).ok();
    let none = device.husk(&["get", "cm"]);
    assert_eq!((none.code, none.err.as_str()), (0, "No resources found in default namespace.\n"));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let device = Device::start();
    let unknown = device.with_input(&["apply", "-f", "-"], &WEB.replace("readinessProbe", "readynessProbe")).failed();
    assert!(unknown.contains("-:23: error: spec.containers[0].readynessProbe: unknown field"), "{unknown}");
    // The server finds it, and it still has a line.
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: b\nspec:\n  minAvailable: 1\n  maxUnavailable: 1\n";
    let both = device.with_input(&["create", "-f", "-"], budget).failed();
    assert!(both.starts_with("-:5: error: spec: Invalid value"), "{both}");
    let twice = device.with_input(&["apply", "-f", "-"], &format!("{SETTINGS}  a: '2'\n")).failed();
    assert!(twice.contains("-:7: error: data[a]: the key is repeated"), "{twice}");
    let field = device.with_input(&["apply", "-f", "-"], &SETTINGS.replace("\ndata", "\ndate")).failed();
    assert!(field.contains("-:5: error: date: unknown field"), "{field}");
    let kind = SETTINGS.replace("ConfigMap", "Gadget");
    assert!(device.with_input(&["apply", "-f", "-"], &kind).failed().contains("no matches for kind \"Gadget\""));
    assert!(device.husk(&["get", "gadgets"]).failed().contains("doesn't have a resource type \"gadgets\""));
    assert_eq!(device.husk(&["get", "pods", "-o", "bogus"]).code, BAD_INPUT);
    device.apply(SETTINGS);
    let err = device.with_input(&["create", "-f", "-"], SETTINGS).failed();
    assert!(err.contains("(AlreadyExists)") && err.contains("configmaps \"settings\" already exists"), "{err}");
    let other = ["apply", "-f", "-", "--field-manager", "somebody"];
    let err = device.with_input(&other, &SETTINGS.replace("'1'", "'2'")).failed();
    assert!(err.contains("conflict with \"husk\"") && err.contains("--force-conflicts"), "{err}");
    let forced = [&other[..], &["--force-conflicts"]].concat();
    device.with_input(&forced, &SETTINGS.replace("'1'", "'2'")).ok();
    let away = device.husk(&["get", "pods", "--socket", "/nowhere/husk.sock"]).failed();
    assert!(away.contains("no agent answers at /nowhere/husk.sock") && away.contains("husk agent"), "{away}");
}

#[test]
fn folders_are_applied_whole() {
    let device = Device::start();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("a.yaml", SETTINGS);
    write(
        "b.json",
        r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"v"}}]}"#,
    );
    write("notes.txt", "not a manifest");
    let path = folder.path().to_str().expect("text");
    assert_eq!(device.husk(&["apply", "-f", path]).ok(), "configmap/settings created\nsecret/s created\n");
    assert_eq!(device.husk(&["get", "-f", path, "-o", "name"]).ok(), "configmap/settings\nsecret/s\n");
    assert!(device.husk(&["describe", "secret", "s"]).ok().contains("k:  1 bytes"));
    assert_eq!(device.husk(&["delete", "-f", path]).ok().lines().count(), 2);
}

#[test]
fn help_teaches_by_examples() {
    for verb in
        ["get", "apply", "create", "describe", "logs", "exec", "attach", "delete", "events", "top", "debug", "wait"]
    {
        let output = crate::husk::output(&[verb, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            help.contains(&format!("Examples:\n  husk {verb} ")) || help.contains(&format!("  husk {verb} ")),
            "{verb}: {help}"
        );
    }
}
