//! `emptyDir` with `medium: Memory`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::world::{World, shell};

/// Where volumes of a pod are that are in memory.
fn in_memory(pod: &Value) -> Vec<PathBuf> {
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [Some(PathBuf::from("/dev/shm")), own].into_iter().flatten();
    let agents = places.filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    agents.map(|agent| agent.path().join("pods").join(uid)).filter(|folder| folder.exists()).collect()
}

/// Is there such a place? Where there is none volumes are on the disk.
fn has_memory() -> bool {
    let mounts = fs::read_to_string("/proc/mounts").expect("Linux");
    mounts.lines().any(|line| line.contains(" /dev/shm tmpfs rw"))
}

// spec: META-05
#[test]
fn a_volume_in_memory_is_on_no_disk_and_goes_on_with_the_agent() {
    let mut world = World::new(&[]);
    let mut spec = shell("echo line >> /mem/lines; sleep 1000");
    spec["volumes"] = json!([{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "mem", "mountPath": "/mem"}]);
    world.create("web", &spec);
    let pod = world.running("web");
    let on_disk = world.path(&format!("data/pods/{}/volumes/mem", pod["metadata"]["uid"].as_str().expect("a uid")));
    let lines = |folder: &Path| fs::read_to_string(folder.join("lines")).unwrap_or_default();
    if !has_memory() {
        world.until("a line on the disk", |_| (lines(&on_disk) == "line\n").then_some(()));
        assert!(world.log().contains("medium Memory"), "{}", world.log());
        return;
    }
    let own = in_memory(&pod);
    let volume = own.first().expect("it is there").join("mem");
    world.until("a line in memory", |_| (lines(&volume) == "line\n").then_some(()));
    assert!(own.len() == 1 && !on_disk.exists());
    world.kill();
    world.start();
    world.until("another one", |_| (lines(&volume) == "line\nline\n").then_some(()));
    // Nothing is left, be it that the pod goes, or that it went while nobody was there.
    world.delete("web");
    world.gone("web");
    world.until("its memory is free", |_| (!volume.exists()).then_some(()));
    let left = world.create("again", &spec);
    world.running("again");
    world.kill();
    fs::remove_file(world.path("data/state.redb")).expect("removed");
    assert_eq!(in_memory(&left).len(), 1);
    world.start();
    assert_eq!(in_memory(&left), Vec::<PathBuf>::new());
}

// spec: RES-06
#[test]
fn a_volume_in_memory_that_holds_too_much_ends_its_pod() {
    let mut world = World::new(&[]);
    let much = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done";
    let mut spec = shell(&format!("{much}; n=0; while true; do echo $x > /mem/$n; n=$((n+1)); sleep 0.02; done"));
    spec["volumes"] = json!([{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "mem", "mountPath": "/mem"}]);
    world.create("web", &spec);
    let pod = world.pod_until("web", |pod| pod["status"]["phase"] == "Failed");
    assert_eq!(pod["status"]["reason"], "Evicted", "{pod}");
    assert_eq!(pod["status"]["message"], "Usage of EmptyDir volume \"mem\" exceeds the limit \"1Mi\". ");
}
