//! A data folder that can't be written: from the start on, and for a while.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::world::{World, shell};

/// Permissions count for root as for anybody else.
const NOBODY_SPECIAL: &[&str] = &["setpriv", "--bounding-set=-dac_override"];

fn allow(folder: &Path, mode: u32) {
    fs::set_permissions(folder, Permissions::from_mode(mode)).expect("it is the test's own");
}

fn world() -> World {
    let mut world = World::without_agent(&[]);
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if is_root {
        world.under = NOBODY_SPECIAL;
    }
    world
}

#[test]
fn a_folder_that_cannot_be_written_is_told_at_the_start() {
    let mut world = world();
    fs::create_dir(&world.data).expect("a folder");
    allow(&world.data, 0o500);
    let code = world.ends();
    allow(&world.data, 0o700);
    let log = world.log();
    assert_eq!(code, Some(2), "{log}");
    for said in [&*world.data.display().to_string(), "give the agent's user write access", "--data-dir"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    // It is as it was: with the permission it begins.
    world.start();
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

#[test]
fn a_folder_that_cannot_be_written_for_a_while_ends_no_pod() {
    let mut world = world();
    world.start();
    world.create("web", &shell("sleep 100000"));
    let before = world.running("web");
    let pods = world.data.join("pods");
    allow(&pods, 0o500);
    world.create("late", &shell("sleep 100000"));
    world.event("late", "FailedCreatePodSandBox", "Permission denied");
    let same = world.running("web");
    assert_eq!(before["status"]["containerStatuses"], same["status"]["containerStatuses"]);
    allow(&pods, 0o700);
    world.running("late");
    assert_eq!(world.end(), Some(0), "{}", world.log());
}
