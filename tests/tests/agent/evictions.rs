//! The node is short of memory or disk: somebody has to go (RES-09).

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::husk::command;
use crate::static_pods::{MANIFEST, write};
use crate::world::{World, restarts, shell, sleeper};

/// There is never so much left: whoever looks finds the node short.
const SHORT: &str = "evictionHard: {memory.available: 99.9%}\nevictionPressureTransitionPeriod: 1s\n";
const ENOUGH: &str = "evictionHard: {memory.available: 1Mi}\nevictionPressureTransitionPeriod: 1s\n";
const MIB: u64 = 1 << 20;

fn with_request(amount: &str) -> Value {
    let mut spec = shell("sleep 100000");
    spec["containers"][0]["resources"] = json!({"requests": {"memory": amount}});
    spec
}

/// A pod with a volume, which runs a script.
fn with_volume(script: &str) -> Value {
    let mut spec = shell(script);
    spec["volumes"] = json!([{"name": "cache", "emptyDir": {}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "cache", "mountPath": "/cache"}]);
    spec
}

fn is_evicted(pod: &Value) -> bool {
    pod["status"]["phase"] == "Failed" && pod["status"]["reason"] == "Evicted"
}

fn message(pod: &Value) -> &str {
    pod["status"]["message"].as_str().unwrap_or_default()
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running" && restarts(pod) == 0
}

/// A condition of the node.
fn condition(world: &World, kind: &str) -> Option<Value> {
    let node = world.get("/api/v1/nodes/edge-7")?.ok();
    let mut conditions = node["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == kind).map(|condition| condition["status"].clone())
}

fn is_short(world: &mut World, kind: &str, expected: &str) {
    world.until(&format!("{kind} is {expected}"), |world| condition(world, kind).filter(|status| status == expected));
}

/// How many pods went for a signal.
fn evictions(world: &World, signal: &str) -> Option<u64> {
    let text = world.get("/metrics")?.body;
    let name = format!("kubelet_evictions{{eviction_signal=\"{signal}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
}

fn reload(world: &mut World, text: &str) {
    world.configure(text);
    world.signal("HUP");
}

// spec: RES-09
#[test]
fn pods_go_one_after_the_other_but_not_those_from_files() {
    let mut world = World::configured(ENOUGH);
    write(&world, "stays.yaml", MANIFEST);
    world.create("modest", &with_request("64Mi"));
    world.create("hog", &shell("sleep 100000"));
    for pod in ["modest", "hog"] {
        world.running(pod);
    }
    let stays = world.running("beacon-edge-7");
    assert_eq!(condition(&world, "MemoryPressure"), Some(json!("False")));

    world.kill();
    world.configure(SHORT);
    world.start();
    let hog = world.pod_until("hog", is_evicted);
    let said = message(&hog);
    assert!(said.starts_with("The node was low on resource: memory. Threshold quantity: "), "{said}");
    let request = "request is 0, has larger consumption of memory. ";
    assert!(said.contains("Container app was using ") && said.ends_with(request), "{said}");
    world.event("hog", "Evicted", said);
    let conditions = hog["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let target = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").expect("a condition");
    assert_eq!((&target["status"], &target["reason"]), (&json!("True"), &json!("TerminationByKubelet")));
    // It holds less than it requested, so it is not the first; there is still not enough.
    let modest = world.pod_until("modest", is_evicted);
    let ended = |pod: &Value| {
        let at = &pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"];
        at.as_str().map(str::to_owned).unwrap_or_else(|| panic!("{pod}"))
    };
    assert!(ended(&hog) <= ended(&modest));
    is_short(&mut world, "MemoryPressure", "True");
    assert_eq!(evictions(&world, "memory.available"), Some(2));
    world.event("edge-7", "EvictionThresholdMet", "Attempting to reclaim memory");
    world.event("edge-7", "NodeHasInsufficientMemory", "edge-7");
    let described = world.husk_says(&["describe", "node", "edge-7"]);
    assert!(described.contains("KubeletHasInsufficientMemory"), "{described}");
    // While it is so, nobody comes who asks for nothing.
    world.create("late", &shell("sleep 100000"));
    world.event("late", "FailedScheduling", "node.kubernetes.io/memory-pressure");
    assert_eq!(world.pod("late").expect("there")["status"]["phase"], "Pending");
    assert_eq!(world.running("beacon-edge-7")["metadata"]["uid"], stays["metadata"]["uid"]);

    // A reload is enough to be well again.
    reload(&mut world, ENOUGH);
    world.running("late");
    is_short(&mut world, "MemoryPressure", "False");
    world.event("edge-7", "NodeHasSufficientMemory", "edge-7");
}

// spec: RES-09
#[test]
fn a_soft_threshold_has_its_time_and_a_hard_one_cuts_it() {
    let soft = |period: &str| {
        format!(
            "evictionHard: {{}}\nevictionSoft: {{memory.available: 99.9%}}\n\
             evictionSoftGracePeriod: {{memory.available: {period}}}\nevictionMaxPodGracePeriod: 3600\n"
        )
    };
    let mut world = World::configured(&soft("10h"));
    let mut deaf = with_request("1Mi");
    deaf["terminationGracePeriodSeconds"] = 3600.into();
    deaf["containers"][0]["command"][2] = "trap '' TERM; while true; do sleep 1; done".into();
    world.create("deaf", &deaf);
    world.running("deaf");
    // The node says that it is short, long before anybody has to go for it.
    is_short(&mut world, "MemoryPressure", "True");
    assert!(is_running(&world.pod("deaf").expect("there")));

    reload(&mut world, &soft("0s"));
    world.event("deaf", "Killing", "app");
    assert_eq!(world.pod("deaf").expect("there")["status"]["phase"], "Running", "it has its grace");
    reload(&mut world, SHORT);
    world.pod_until("deaf", is_evicted);
    assert_eq!(evictions(&world, "memory.available"), Some(1));
}

/// A disk for the data folder, of which what is left is known to the byte.
struct Disk(PathBuf);

impl Disk {
    /// None where nobody may mount one.
    fn new(place: &Path) -> Option<Self> {
        std::fs::create_dir(place).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256m,nr_inodes=20k,mode=0700", "husk-test"]).arg(place);
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(Self(place.to_owned()));
        }
        eprintln!("SKIPPED: no disk can be mounted here, so that nothing is known about one that runs short");
        None
    }

    /// Bytes and files that are left.
    fn left(&self) -> (u64, u64) {
        let figure = |format: &str| -> u64 {
            let stat = Command::new("stat").args(["--file-system", "--format", format]).arg(&self.0).output();
            String::from_utf8_lossy(&stat.expect("stat runs").stdout).trim().parse().expect("a number")
        };
        (figure("%a") * figure("%S"), figure("%d"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whatever still uses it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

/// The node runs short as soon as so much less is left as is now.
fn disk_short(signal: &str, least: u64) -> String {
    format!("evictionHard: {{{signal}: '{least}'}}\nevictionPressureTransitionPeriod: 1s\nimageMinimumGCAge: 0s\n")
}

/// What `husk image` says of the store.
fn images(world: &World, args: &[&str]) -> String {
    let output = command().arg("image").args(args).arg("--data-dir").arg(&world.data).output().expect("husk starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn volume(world: &World, pod: &Value) -> PathBuf {
    world.data.join("pods").join(pod["metadata"]["uid"].as_str().expect("a uid")).join("volumes/cache")
}

// spec: RES-09
#[test]
fn of_a_disk_images_go_first_and_then_who_uses_most_of_it_and_no_more_than_that() {
    let mut world = World::without_agent(&[]);
    let Some(disk) = Disk::new(&world.data) else { return };
    world.configure("evictionHard: {}\nimageMinimumGCAge: 0s\n");
    world.start();
    let tools = world.path("tools");
    std::fs::create_dir(&tools).expect("a folder");
    std::fs::write(tools.join("app.wat"), sleeper("app")).expect("written");
    // Bytes that no file system and no archive makes less.
    let bytes: Vec<u8> = (0..24 * MIB)
        .scan(1_u32, |state, _| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes().first().copied()
        })
        .collect();
    std::fs::write(tools.join("big"), &bytes).expect("written");
    let imported = images(&world, &["import", &tools.display().to_string(), "--name", "tools:1"]);
    assert!(images(&world, &["ls"]).contains("tools"), "{imported}");

    // One has something in its volume, one writes to its root directory when there is something to be written.
    world.create("modest", &with_volume("sleep 100000"));
    world.create("hog", &with_volume("while ! [ -e /cache/go ]; do sleep 1; done; cat /cache/go > /big; sleep 100000"));
    let (modest, hog) = (world.running("modest"), world.running("hog"));
    std::fs::write(volume(&world, &modest).join("little"), vec![7; MIB as usize]).expect("written");
    assert_eq!(condition(&world, "DiskPressure"), Some(json!("False")));

    // What nobody uses is enough: nobody goes.
    reload(&mut world, &disk_short("nodefs.available", disk.left().0 + 8 * MIB));
    world.until("the image is gone", |world| (!images(world, &["ls"]).contains("tools")).then_some(()));
    world.event("edge-7", "EvictionThresholdMet", "Attempting to reclaim ephemeral-storage");
    world.event("edge-7", "NodeHasDiskPressure", "edge-7");
    world.event("edge-7", "NodeHasNoDiskPressure", "edge-7");
    is_short(&mut world, "DiskPressure", "False");
    for pod in ["modest", "hog"] {
        assert!(is_running(&world.pod(pod).expect("there")));
    }
    assert_eq!(evictions(&world, "nodefs.available"), None);

    // It isn't any more. What had to be left until now is no matter.
    reload(&mut world, "evictionHard: {}\n");
    std::fs::write(volume(&world, &hog).join("go"), &bytes[..(16 * MIB) as usize]).expect("written");
    let (before, ..) = disk.left();
    world.until("it has written", |_| (disk.left().0 + 15 * MIB < before).then_some(()));
    reload(&mut world, &disk_short("nodefs.available", disk.left().0 + 20 * MIB));
    let hog = world.pod_until("hog", is_evicted);
    let said = message(&hog);
    assert!(said.starts_with("The node was low on resource: ephemeral-storage. Threshold quantity: "), "{said}");
    assert!(said.ends_with("request is 0, has larger consumption of ephemeral-storage. "), "{said}");
    // What it set free is enough, once it is free.
    is_short(&mut world, "DiskPressure", "False");
    assert!(is_running(&world.pod("modest").expect("there")));
    assert_eq!(evictions(&world, "nodefs.available"), Some(1));
}

// spec: RES-09
#[test]
fn of_a_disk_without_room_for_files_who_has_most_files_goes() {
    let mut world = World::without_agent(&[]);
    let Some(disk) = Disk::new(&world.data) else { return };
    world.configure("evictionHard: {}\n");
    world.start();
    for pod in ["heavy", "many"] {
        world.create(pod, &with_volume("sleep 100000"));
    }
    let (heavy, many) = (world.running("heavy"), world.running("many"));
    std::fs::write(volume(&world, &heavy).join("one"), vec![7; 32 * MIB as usize]).expect("written");
    for n in 0..2000 {
        std::fs::write(volume(&world, &many).join(n.to_string()), "").expect("written");
    }
    world.kill();
    // Figures of pods that come back are those of before as well.
    world.configure(&disk_short("nodefs.inodesFree", disk.left().1 + 1000));
    world.start();
    let many = world.pod_until("many", is_evicted);
    assert!(message(&many).starts_with("The node was low on resource: inodes. "), "{}", message(&many));
    is_short(&mut world, "DiskPressure", "False");
    world.running("heavy");
    assert_eq!(evictions(&world, "nodefs.inodesFree"), Some(1));
}
