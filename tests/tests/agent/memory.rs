//! `emptyDir` with `medium: Memory`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{World, shell};

/// Begins a command for which the folder that `HUSK_TEST_RUN` names is `/run`, and for nobody else; it is root there.
const WITH_RUN: &[&str] = &[
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    "mount --bind \"$HUSK_TEST_RUN\" /run && exec \"$0\" \"$@\"",
];

/// What is `/run` for an agent: a folder in memory.
struct Run(TempDir);

impl Run {
    /// None where there is none, or nobody may mount one.
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").expect("Linux");
        let folder = mounts.contains(" /dev/shm tmpfs rw").then(|| tempfile::tempdir_in("/dev/shm").ok()).flatten();
        let run = folder.map(Self).filter(|run| run.command("true").status().is_ok_and(|status| status.success()));
        if run.is_none() {
            eprintln!("SKIPPED: there is no memory for volumes here, so that they are on the disk");
        }
        run
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(WITH_RUN[0]);
        command.args(&WITH_RUN[1..]).arg(program).env("HUSK_TEST_RUN", self.0.path());
        command
    }

    fn world(&self) -> World {
        let mut world = World::without_agent(&[]);
        world.under = WITH_RUN;
        world.environment.push(("HUSK_TEST_RUN", self.0.path().to_owned()));
        world
    }

    /// What an agent has in memory, of which there is one.
    fn agent(&self) -> Option<PathBuf> {
        let mut agents = fs::read_dir(self.0.path().join("husk-memory")).ok()?.map(|agent| agent.expect("read").path());
        let agent = agents.next();
        assert_eq!(agents.next(), None);
        agent
    }

    /// Volumes of a pod.
    fn volumes(&self, pod: &Value) -> PathBuf {
        self.agent().expect("an agent's folder").join(uid(pod))
    }
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().expect("a uid")
}

fn on_disk(world: &World, pod: &Value) -> PathBuf {
    world.path(&format!("data/pods/{}/volumes/mem", uid(pod)))
}

fn lines(volume: &Path) -> String {
    fs::read_to_string(volume.join("lines")).unwrap_or_default()
}

/// Mounts an `emptyDir` in memory at `/mem`.
fn with_memory(script: &str, limit: &str) -> Value {
    let mut spec = shell(script);
    spec["volumes"] = json!([{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": limit}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "mem", "mountPath": "/mem"}]);
    spec
}

// spec: META-05
#[test]
fn a_volume_in_memory_is_on_no_disk_and_goes_on_with_the_agent() {
    let Some(run) = Run::new() else { return };
    let mut world = run.world();
    world.start();
    let spec = with_memory("echo line >> /mem/lines; sleep 1000", "1Mi");
    world.create("web", &spec);
    let pod = world.running("web");
    let volume = run.volumes(&pod).join("mem");
    world.until("a line in memory", |_| (lines(&volume) == "line\n").then_some(()));
    assert!(!on_disk(&world, &pod).exists());
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
    assert!(run.volumes(&left).exists());
    world.start();
    assert!(!run.volumes(&left).exists());
}

#[test]
fn a_link_that_somebody_laid_before_leads_to_nothing_that_is_removed() {
    let Some(run) = Run::new() else { return };
    let mut world = run.world();
    let home = world.path("home");
    fs::create_dir_all(home.join("somebody")).expect("made");
    symlink(&home, run.0.path().join("husk-memory")).expect("linked");
    world.start();
    world.create("web", &with_memory("echo line >> /mem/lines; sleep 1000", "1Mi"));
    let pod = world.running("web");
    let volume = on_disk(&world, &pod);
    world.until("a line on the disk", |_| (lines(&volume) == "line\n").then_some(()));
    assert!(world.log().contains("medium Memory"), "{}", world.log());
    let left = fs::read_dir(&home).expect("there").map(|entry| entry.expect("read").file_name()).collect::<Vec<_>>();
    assert_eq!(left, ["somebody"]);
}

// What `husk run` leaves when it is killed is found by the next one on the disk; in memory nobody would look for it.
#[test]
fn a_run_leaves_nothing_in_memory() {
    let Some(run) = Run::new() else { return };
    let mut world = run.world();
    let manifest = world.path("pod.json");
    let spec = with_memory("echo line >> /mem/lines; sleep 1000", "1Mi");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
    fs::write(&manifest, pod.to_string()).expect("written");
    let husk = crate::husk::command();
    let mut command = run.command(husk.get_program());
    command.envs(husk.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.arg("run").arg(&manifest).arg("--data-dir").arg(world.path("data"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("husk starts");
    let pods = world.path("data/pods");
    world.until("a line on the disk", |_| {
        let mut pods = fs::read_dir(&pods).ok()?.flatten();
        pods.any(|pod| lines(&pod.path().join("volumes/mem")) == "line\n").then_some(())
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(fs::read_dir(run.0.path()).expect("there").count(), 0);
}

// spec: RES-06
#[test]
fn volumes_in_memory_that_hold_too_much_end_their_pod() {
    let much = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done";
    let fill = |place: &str| format!("{much}; n=0; while true; do {place}; n=$((n+1)); sleep 0.02; done");
    // It is so where they are on the disk as well.
    let run = Run::new();
    let mut world = run.as_ref().map_or_else(|| World::without_agent(&[]), Run::world);
    world.start();
    world.create("one", &with_memory(&fill("echo $x > /mem/$n"), "1Mi"));
    let mut spec = with_memory(&fill("echo $x > /mem/$n; echo $x > /more/$n"), "100Mi");
    let mount = &spec["containers"][0]["volumeMounts"][0];
    spec["containers"][0]["volumeMounts"] = json!([mount, {"name": "more", "mountPath": "/more"}]);
    spec["volumes"] = json!([spec["volumes"][0], {"name": "more", "emptyDir": {"medium": "Memory"}}]);
    spec["containers"][0]["resources"] = json!({"limits": {"memory": "16Mi"}});
    world.create("together", &spec);
    for (name, message) in [
        ("one", "Usage of EmptyDir volume \"mem\" exceeds the limit \"1Mi\". "),
        ("together", "Usage of EmptyDir volumes in memory exceeds the pod's limit \"16Mi\". "),
    ] {
        let pod = world.pod_until(name, |pod| pod["status"]["phase"] == "Failed");
        assert_eq!(pod["status"]["reason"], "Evicted", "{pod}");
        assert_eq!(pod["status"]["message"], message);
    }
}
