//! A data folder on a file system that is read-only: from the start on, and since an error of the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::static_pods::{MANIFEST, write};
use crate::world::{PODS, World, restarts, shell};

/// More than two looks at the disks of volumes.
const VOLUMES_LOOKED_AT: Duration = Duration::from_secs(12);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Begins a command for which the folder that `HUSK_TEST_PLACE` names is read-only, and for nobody else.
const READ_ONLY: &[&str] = &[
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    "mount --bind \"$HUSK_TEST_PLACE\" \"$HUSK_TEST_PLACE\" && mount -o remount,bind,ro \"$HUSK_TEST_PLACE\" && exec \"$0\" \"$@\"",
];

/// A disk in a file, with a file system that becomes read-only when something is wrong with it.
struct Disk {
    image: PathBuf,
    place: PathBuf,
}

impl Disk {
    /// None where nobody may mount one.
    fn new(world: &World) -> Option<Self> {
        let disk = Self { image: world.path("disk.img"), place: world.data.clone() };
        fs::File::create(&disk.image).and_then(|file| file.set_len(32 << 20)).expect("a file");
        fs::create_dir(&disk.place).expect("a folder");
        let is_made = done(Command::new("mkfs.ext4").arg("-q").arg(&disk.image)) && disk.mount();
        if !is_made {
            eprintln!(
                "SKIPPED: no disk can be mounted here, so that nothing is known about one that becomes read-only"
            );
        }
        is_made.then_some(disk)
    }

    fn mount(&self) -> bool {
        done(Command::new("mount").args(["-o", "loop"]).args([&self.image, &self.place]))
    }

    /// As the kernel does when it finds an error on it.
    fn fail(&self) {
        assert!(done(Command::new("mount").args(["-o", "remount,abort"]).arg(&self.place)));
        let error = fs::write(self.place.join("try"), "").expect_err("it is read-only");
        assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }

    fn mount_again(&self) {
        assert!(done(Command::new("umount").arg(&self.place)) && self.mount());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whatever still uses it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.place).output();
    }
}

fn done(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn can_be_read_only(place: &Path) -> bool {
    let [program, args @ ..] = READ_ONLY else { return false };
    let can = done(Command::new(program).args(args).arg("true").env("HUSK_TEST_PLACE", place));
    if !can {
        eprintln!("SKIPPED: no folder can be made read-only here, so that nothing is known about one that is");
    }
    can
}

#[test]
fn a_read_only_folder_is_told_at_the_start_and_left_as_it_is() {
    let mut world = World::without_agent(&[]);
    fs::create_dir(&world.data).expect("a folder");
    if !can_be_read_only(&world.data) {
        return;
    }
    world.environment = vec![("HUSK_TEST_PLACE", world.data.clone())];
    let read_only = |world: &mut World| {
        world.under = READ_ONLY;
        let code = world.ends();
        let log = world.log();
        assert_eq!(code, Some(2), "{log}");
        for said in [&*world.data.display().to_string(), "Read-only file system", "--data-dir"] {
            assert!(log.contains(said), "{said}: {log}");
        }
        world.under = &[];
        fs::remove_file(world.path("log")).expect("read");
    };
    read_only(&mut world);
    assert_eq!(fs::read_dir(&world.data).expect("a folder").count(), 0);
    // The same for one that was in use.
    world.start();
    world.create("web", &shell("sleep 100000"));
    let before = world.running("web");
    world.kill();
    read_only(&mut world);
    world.start();
    let after = world.running("web");
    assert_eq!((&after["metadata"]["uid"], restarts(&after)), (&before["metadata"]["uid"], 1));
}

#[test]
fn a_disk_that_becomes_read_only_ends_no_pod_and_loses_nothing() {
    let mut world = World::without_agent(&[]);
    let Some(disk) = Disk::new(&world) else { return };
    world.start();
    write(&world, "beacon.yaml", MANIFEST);
    let mut spec = shell("echo line >> /data/lines; while true; do echo tick; sleep 0.2; done");
    spec["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}, {"name": "host", "mountPath": "/host"}]);
    spec["volumes"] = json!([
        {"name": "data", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": world.data.join("host"), "type": "DirectoryOrCreate"}},
    ]);
    world.create("web", &spec);
    let (web, beacon) = (world.running("web"), world.running("beacon-edge-7"));
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}});
    world.send("POST", CONFIG_MAPS, &config).ok();
    // What a guest writes is its own to sync: here it was written long ago.
    assert!(done(Command::new("sync").arg("-f").arg(&world.data)));
    disk.fail();
    // What is asked for is refused with the reason, and nobody is told that all is well.
    let mut late = config.clone();
    late["metadata"]["name"] = "late".into();
    let refused = world.until("it is refused", |world| {
        Some(world.send("POST", CONFIG_MAPS, &late)).filter(|answer| answer.code >= 500)
    });
    assert!(refused.body.contains("Read-only file system"), "{refused:?}");
    let answer = world.until("it is not ready", |world| world.get("/readyz").filter(|answer| answer.code == 500));
    assert!(answer.body.contains("[-]store failed") && answer.body.contains("Read-only file system"), "{answer:?}");
    assert_eq!(world.get("/livez").expect("an answer").code, 200);
    assert_eq!(world.get(&format!("{CONFIG_MAPS}/late")).expect("an answer").code, 404);
    // Without anybody who writes as well.
    world.event("edge-7", "StateNotWritten", "Read-only file system");
    // So long at most until a disk of a volume counts as failed.
    std::thread::sleep(VOLUMES_LOOKED_AT);
    let ticks = |world: &World| world.written_by("web", "app").map_or(0, |log| log.lines().count());
    let before = ticks(&world);
    world.until("it still runs", |world| (ticks(world) > before + 5).then_some(()));
    for (name, before) in [("web", &web), ("beacon-edge-7", &beacon)] {
        assert_eq!(world.running(name)["status"]["containerStatuses"], before["status"]["containerStatuses"]);
    }
    // The device is started again with a disk that was put right.
    world.kill();
    disk.mount_again();
    world.start();
    for (name, before) in [("web", &web), ("beacon-edge-7", &beacon)] {
        let after = world.running(name);
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["status"]["podIP"], before["status"]["podIP"]);
    }
    let uid = web["metadata"]["uid"].as_str().expect("a uid");
    let lines = fs::read_to_string(world.data.join(format!("pods/{uid}/volumes/data/lines"))).expect("its volume");
    assert_eq!(lines.lines().count(), 2, "one of each life");
    let kept = world.get(&format!("{CONFIG_MAPS}/kept")).expect("an answer").ok();
    assert_eq!(kept["data"]["a"], "1");
    world.send("POST", CONFIG_MAPS, &late).ok();
    world.delete("web");
    world.gone("web");
    assert!(world.get(PODS).is_some());
    assert_eq!(world.end(), Some(0), "{}", world.log());
}
