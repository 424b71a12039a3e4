//! Many pods at once: all begin, all end, and nothing of them stays.

use std::collections::BTreeSet;

use husk_store::{Boot, Options, Store};
use serde_json::{Value, json};

use crate::world::{PODS, World, is_ready, shell};

const MANY: usize = 200;

/// What a process holds that only it can let go of.
#[derive(Debug, PartialEq)]
struct Held {
    files: usize,
    folders: BTreeSet<String>,
}

fn held(world: &World) -> Held {
    let count = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", world.pid())).expect("it runs").count();
    let mut folders = BTreeSet::new();
    for folder in ["pods", "containers"] {
        let entries = std::fs::read_dir(world.path("data").join(folder)).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| format!("{folder}/{}", entry.file_name().to_string_lossy())));
    }
    Held { files: count("fd"), folders }
}

fn threads(world: &World) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", world.pid())).expect("it runs").count()
}

fn pods(world: &World) -> Option<Vec<Value>> {
    world.get(PODS)?.ok()["items"].as_array().cloned()
}

/// A pod that uses what pods use: volumes of two kinds and a probe.
fn busy(n: usize) -> Value {
    let mut spec = shell("echo up > /data/up; sleep 100000");
    spec["volumes"] =
        json!([{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}]);
    let app = &mut spec["containers"][0];
    app["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}, {"name": "settings", "mountPath": "/etc/settings"}]);
    if n.is_multiple_of(10) {
        app["readinessProbe"] = json!({"exec": {"command": ["cat", "/data/up"]}, "periodSeconds": 1});
    }
    spec
}

#[test]
fn two_hundred_pods_begin_and_end_and_leave_nothing() {
    let mut world = World::new(&[]);
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"colour": "red"},
    });
    world.send("POST", "/api/v1/namespaces/default/configmaps", &settings).ok();
    // One first: what stays for good after it, as a compiled module does, belongs to no pod.
    world.create("first", &busy(0));
    world.running("first");
    world.delete("first");
    world.gone("first");
    let has_no_pod = |held: &Held| held.folders.iter().all(|folder| !folder.starts_with("pods/"));
    let before = world.until("nothing of it is left", |world| Some(held(world)).filter(has_no_pod));
    let few = threads(&world);
    for n in 0..MANY {
        world.create(&format!("p{n}"), &busy(n));
    }
    let all = world.until("all are ready", |world| pods(world).filter(|pods| pods.iter().all(is_ready)));
    assert_eq!(all.len(), MANY);
    let addresses: BTreeSet<_> = all.iter().filter_map(|pod| pod["status"]["podIP"].as_str()).collect();
    assert_eq!(addresses.len(), MANY, "each has its own address");
    assert_eq!(held(&world).folders.iter().filter(|folder| folder.starts_with("pods/")).count(), MANY);
    // Containers are no threads.
    assert!(threads(&world) < MANY, "{} threads", threads(&world));
    for n in 0..MANY {
        world.delete(&format!("p{n}"));
    }
    world.until("all are gone", |world| pods(world).filter(Vec::is_empty));
    // Threads that wait for work stay for a while.
    let is_back = |now: &Held| now.folders == before.folders && now.files <= before.files;
    world.until("nothing is held any more", |world| Some(held(world)).filter(is_back));
    world.until("threads are few", |world| Some(threads(world)).filter(|now| *now <= few));
    world.kill();
    let boot = Boot { id: "a test".into(), uptime: std::time::Duration::ZERO };
    let opened = Store::open(&world.path("data/state.redb"), Options::new(boot)).expect("nobody has it");
    assert!(opened.set_aside.is_none() && opened.unreadable.is_empty());
    assert_eq!(opened.records.iter().map(|record| record.uid().clone()).collect::<Vec<_>>(), []);
    assert_eq!(opened.store.list(husk_store::Scope { resource: "pods", namespace: None }).objects.len(), 0);
}
