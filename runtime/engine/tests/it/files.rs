//! Mounts.

use std::fs;
use std::path::Path;

use husk_core::io::Outcome;
use husk_engine::{ContainerConfig, Engine, EngineConfig, Mount};

use crate::support::{engine, image, start};

/// Creates the file `new` in the first directory it was given and exits with the error number of that.
const CREATES: &str = r#"(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "new")
    (func (export "_start")
        (call $exit (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 1)
            (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 64)))))"#;

async fn create(host: &Path, read_only: bool) -> Outcome {
    let mut config = ContainerConfig::new(image(CREATES).await);
    config.mounts = vec![Mount::new(host, "/data", read_only)];
    start(config).await.0.wait().await
}

#[tokio::test]
async fn a_read_only_mount_can_not_be_written() {
    let directory = tempfile::tempdir().expect("directory");
    let outcome = create(directory.path(), true).await;
    assert!(matches!(outcome, Outcome::Code(code) if code != 0), "{outcome:?}");
    assert!(!directory.path().join("new").exists());
    assert_eq!(create(directory.path(), false).await, Outcome::Code(0));
    assert!(directory.path().join("new").exists());
}

#[tokio::test]
async fn a_link_does_not_lead_out_of_a_mount() {
    let directory = tempfile::tempdir().expect("directory");
    let outside = tempfile::tempdir().expect("directory");
    std::os::unix::fs::symlink(outside.path().join("new"), directory.path().join("new")).expect("link");
    let outcome = create(directory.path(), false).await;
    assert!(matches!(outcome, Outcome::Code(code) if code != 0), "{outcome:?}");
    assert_eq!(fs::read_dir(outside.path()).expect("directory").count(), 0);
}

#[tokio::test]
async fn a_mount_that_is_not_there_is_named() {
    let mut config = ContainerConfig::new(image(CREATES).await);
    config.mounts = vec![Mount::new("/nowhere/at/all", "/data", false)];
    let error = engine().start(config, husk_engine::Log::default()).await.expect_err("no such directory");
    assert_eq!(error.reason, "CreateContainerError");
    assert!(error.message.contains("/data") && error.message.contains("/nowhere/at/all"), "{}", error.message);
}

#[tokio::test]
async fn a_container_may_write_to_its_root_until_it_ends() {
    let file = crate::support::file("create.wat", CREATES);
    let opened = husk_engine::Image::open(&file.path).expect("image");
    let scratch = tempfile::tempdir().expect("directory");
    let config = EngineConfig { scratch_dir: Some(scratch.path().into()), workers: 1, ..EngineConfig::default() };
    let engine = Engine::new(config).expect("engine");
    // The root is the only directory: what the guest creates is in it.
    for (read_only_root, created) in [(false, true), (true, false)] {
        let mut config = ContainerConfig::new(opened.clone());
        config.read_only_root = read_only_root;
        let container = engine.start(config, husk_engine::Log::default()).await.expect("started");
        assert_eq!(container.wait().await == Outcome::Code(0), created);
    }
    drop(engine);
    // Of an engine whose process is gone: no process has this number, it is above what Linux hands out.
    fs::create_dir(scratch.path().join("husk-4194999-abc")).expect("directory");
    let config = EngineConfig { scratch_dir: Some(scratch.path().into()), workers: 1, ..EngineConfig::default() };
    drop(Engine::new(config).expect("engine"));
    let left = || fs::read_dir(scratch.path()).expect("directory").count();
    while left() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_working_directory_is_made() {
    let creates = CREATES
        .replace("\"new\"", "\"made/dir/new\"")
        .replace("(i32.const 3) (i32.const 1)", "(i32.const 12) (i32.const 1)");
    let mut config = ContainerConfig::new(image(&creates).await);
    config.working_dir = Some("/made/dir".into());
    assert_eq!(start(config.clone()).await.0.wait().await, Outcome::Code(0), "in the container's own root");

    let directory = tempfile::tempdir().expect("directory");
    config.mounts = vec![Mount::new(directory.path(), "/data", false)];
    config.working_dir = Some("/data/a/b".into());
    start(config.clone()).await;
    assert!(directory.path().join("a/b").is_dir(), "in a volume");

    let outside = tempfile::tempdir().expect("directory");
    std::os::unix::fs::symlink(outside.path(), directory.path().join("out")).expect("link");
    config.working_dir = Some("/data/out/dir".into());
    start(config.clone()).await;
    assert_eq!(fs::read_dir(outside.path()).expect("directory").count(), 0, "not through a link");

    config.mounts[0].read_only = true;
    config.working_dir = Some("/data/a/b".into());
    start(config.clone()).await;
    config.working_dir = Some("/data/c".into());
    let error = engine().start(config, husk_engine::Log::default()).await.expect_err("nothing can be made there");
    assert!(error.message.contains("workingDir /data/c") && error.message.contains("read-only"), "{}", error.message);
}

#[tokio::test]
async fn the_working_directory_of_a_directory_image_is_in_the_image_or_tmp() {
    let directory = tempfile::tempdir().expect("directory");
    fs::write(directory.path().join("main.wat"), crate::support::module("")).expect("written");
    fs::create_dir(directory.path().join("srv")).expect("made");
    let mut config = ContainerConfig::new(husk_engine::Image::open(directory.path()).expect("image"));
    for (path, is_there) in [("/srv", true), ("/tmp/work", true), ("/", true), ("/work", false)] {
        config.working_dir = Some(path.into());
        let started = engine().start(config.clone(), husk_engine::Log::default()).await;
        assert_eq!(started.is_ok(), is_there, "{path}: {started:?}");
    }
    assert!(!directory.path().join("work").exists() && !directory.path().join("tmp").exists());
}
