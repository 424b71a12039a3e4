//! A disk without space: what runs goes on, what is asked for is refused, and all is well again once there is space.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::static_pods::{MANIFEST, write};
use crate::world::{PODS, World, is_ready, restarts, shell};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A disk that can be filled up.
enum Disk {
    /// A file system of its own.
    Mounted(PathBuf),
    /// Where nobody may mount one: a process that may write to no file any more is told of it as a full quota tells.
    Limited,
}

/// Keeps a disk full: whatever becomes free is taken at once, as by a log that grows without bounds.
struct Full {
    stop: Arc<AtomicBool>,
    filler: Option<JoinHandle<()>>,
}

impl Disk {
    fn new(place: &Path) -> Self {
        std::fs::create_dir(place).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m,mode=0700", "husk-test"]).arg(place);
        match mount.output() {
            Ok(output) if output.status.success() => Self::Mounted(place.to_owned()),
            _ => Self::Limited,
        }
    }

    fn fill(&self, world: &World) -> Full {
        let stop = Arc::new(AtomicBool::new(false));
        let filler = match self {
            Self::Mounted(place) => {
                let mut file = File::create(place.join("filler")).expect("there is space");
                let piece = [0x55; 4096];
                while file.write_all(&piece).is_ok() {}
                let told = stop.clone();
                Some(std::thread::spawn(move || {
                    while !told.load(Ordering::Relaxed) {
                        if file.write_all(&piece).is_err() {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                }))
            }
            Self::Limited => {
                limit(world, "0");
                None
            }
        };
        Full { stop, filler }
    }

    fn free(&self, world: &World, full: Full) {
        drop(full);
        match self {
            Self::Mounted(place) => std::fs::remove_file(place.join("filler")).expect("removed"),
            Self::Limited => limit(world, "unlimited"),
        }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.filler.take().map(JoinHandle::join);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Self::Mounted(place) = self {
            let _ = Command::new("umount").arg("--lazy").arg(place).status();
        }
    }
}

/// How long files may be that the agent writes.
fn limit(world: &World, bytes: &str) {
    let pid = world.pid().to_string();
    let done = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:")]).status();
    assert!(done.expect("there is a prlimit command").success());
}

fn config_map(name: &str, bytes: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "x".repeat(bytes)}})
}

/// Has the store refuse something. What was taken until then is counted.
fn fill_up(world: &World, taken: &mut Vec<String>) -> Value {
    // In the store's own file there may be space still.
    for _ in 0..200 {
        let name = format!("c{}", taken.len());
        let answer = world.send("POST", CONFIG_MAPS, &config_map(&name, 100_000));
        if answer.code != 201 {
            return serde_json::from_str(&answer.body).expect("JSON");
        }
        taken.push(name);
    }
    panic!("the disk is never full");
}

fn all_there(world: &World, taken: &[String]) {
    let list = world.get(CONFIG_MAPS).expect("an answer").ok();
    let mut names: Vec<_> =
        list["items"].as_array().expect("items").iter().map(|item| &item["metadata"]["name"]).collect();
    let mut wanted: Vec<Value> = taken.iter().map(|name| json!(name)).collect();
    names.sort_by_key(|name| name.to_string());
    wanted.sort_by_key(Value::to_string);
    assert_eq!(names, wanted.iter().collect::<Vec<_>>());
}

// spec: NODE-04
#[test]
fn a_full_disk_ends_no_pod_and_loses_nothing_that_was_taken() {
    let mut world = World::without_agent(&[]);
    let config = world.path("config.yaml");
    std::fs::write(&config, "crashLoopBackOff: {maxContainerRestartPeriod: 1s}\n").expect("written");
    world.more = vec!["--config".into(), config.display().to_string()];
    let disk = Disk::new(&world.path("disk"));
    world.data = world.path("disk/data");
    // The signal that comes with a limit for files ends who doesn't ignore it; a full disk sends none.
    world.under = &["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""];
    world.start();
    world.create("web", &shell("sleep 100000"));
    let mut writer = shell("while true; do date > /data/now 2>/dev/null; sleep 1; done");
    writer["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    writer["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    world.create("writer", &writer);
    world.create("loops", &shell("sleep 1; exit 1"));
    std::fs::create_dir(world.path("shared")).expect("a folder");
    std::fs::write(world.path("shared/ready"), "yes").expect("written");
    let mut flips = shell("sleep 100000");
    flips["volumes"] = json!([{"name": "shared", "hostPath": {"path": world.path("shared")}}]);
    flips["containers"][0]["volumeMounts"] = json!([{"name": "shared", "mountPath": "/shared"}]);
    flips["containers"][0]["readinessProbe"] =
        json!({"exec": {"command": ["cat", "/shared/ready"]}, "periodSeconds": 1, "failureThreshold": 1});
    world.create("flips", &flips);
    world.running("flips");
    write(&world, "beacon.yaml", MANIFEST);
    let web = world.running("web");
    world.running("writer");
    world.running("beacon-edge-7");
    let mut taken = Vec::new();
    let full = disk.fill(&world);
    let refused = fill_up(&world, &mut taken);
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(refused["code"].as_u64().is_some_and(|code| code >= 500), "{refused}");
    assert!(message.contains("free space on this disk"), "{refused}");

    // What runs goes on. What has to start waits for space, and says so.
    world.pod_until("loops", |pod| {
        let waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"].as_str().unwrap_or_default();
        ["No space left on device", "File too large"].iter().any(|said| waiting.contains(said))
    });
    let after = world.pod("loops").expect("it is there");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"}, "spec": shell("sleep 100000")});
    assert!(world.send("POST", PODS, &pod).code >= 500);
    assert!(world.pod("late").is_none());
    let same = world.running("web");
    assert_eq!(web["status"]["containerStatuses"], same["status"]["containerStatuses"]);
    world.running("writer");
    all_there(&world, &taken);
    // One ends and can't be removed: that keeps nobody from seeing what becomes of the others.
    std::fs::remove_file(world.path("manifests/beacon.yaml")).expect("removed");
    world.until("the mirror can't be removed", |world| {
        let mirror = world.pod("beacon-edge-7").expect("it is there");
        (mirror["status"]["containerStatuses"][0]["state"]["terminated"].is_object()).then_some(())
    });
    std::fs::remove_file(world.path("shared/ready")).expect("removed");
    world.pod_until("flips", |pod| !is_ready(pod));
    std::fs::write(world.path("shared/ready"), "yes").expect("written");
    world.running("flips");
    let health = world.get("/healthz").expect("an answer");
    assert_eq!(health.code, 200, "{health:?}");
    assert_eq!(world.get("/livez").expect("an answer").code, 200);
    let ready = world.get("/readyz").expect("an answer");
    assert!(ready.code == 500 && ready.body.contains("\n[-]store failed: "), "{ready:?}");
    assert!(ready.body.contains("free space on this disk") && ready.body.contains("[+]syncloop ok\n"), "{ready:?}");
    assert_eq!(world.get("/readyz?exclude=store").expect("an answer").code, 200);

    // The agent starts without space as well, with all that was taken. (A limit goes with the process.)
    if matches!(disk, Disk::Mounted(_)) {
        world.kill();
        world.start();
        all_there(&world, &taken);
        assert_eq!(world.pod("web").expect("it is there")["metadata"]["uid"], web["metadata"]["uid"]);
    }

    // There is space again.
    disk.free(&world, full);
    world.until("pods are taken", |world| (world.send("POST", PODS, &pod).code == 201).then_some(()));
    world.running("late");
    world.gone("beacon-edge-7");
    world.until("it is ready again", |world| world.get("/readyz").filter(|answer| answer.code == 200));
    all_there(&world, &taken);
    let after = world.pod_until("loops", |pod| restarts(pod) > restarts(&after));
    world.kill();
    world.start();
    all_there(&world, &taken);
    world.running("late");
    assert!(restarts(&world.pod("loops").expect("it is there")) >= restarts(&after));
    let again = world.running("web");
    assert_eq!(web["metadata"]["uid"], again["metadata"]["uid"]);
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

#[test]
fn an_agent_whose_log_has_no_space_goes_on() {
    let mut world = World::without_agent(&[]);
    std::os::unix::fs::symlink("/dev/full", world.path("log")).expect("linked");
    world.start();
    let mut broken = shell("true");
    broken["containers"][0]["image"] = "no/such:image".into();
    world.create("broken", &broken);
    std::fs::write(world.path("manifests/junk.yaml"), "junk").expect("written");
    world.create("web", &shell("sleep 100000"));
    world.running("web");
    assert_eq!(world.end(), Some(0));
}
