//! exec: more instances in a container's context.

use std::fs;

use husk_core::io::{Outcome, Trap};
use husk_engine::{Container, ContainerConfig, Image};

use crate::support::{engine, module, start};

/// Writes its arguments to stdout, each with a zero byte after it, and exits with their number.
const ARGUMENTS: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func (export "_start")
        (drop (call $sizes (i32.const 0) (i32.const 4)))
        (drop (call $args (i32.const 1024) (i32.const 4096)))
        (i32.store (i32.const 512) (i32.const 4096))
        (i32.store (i32.const 516) (i32.load (i32.const 4)))
        (drop (call $fd_write (i32.const 1) (i32.const 512) (i32.const 1) (i32.const 520)))
        (call $exit (i32.load (i32.const 0)))))"#;

/// An image whose entry sleeps, with more modules round it.
async fn pod() -> (Container, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("directory");
    let root = directory.path();
    fs::create_dir(root.join("bin")).expect("bin");
    fs::write(root.join("entrypoint"), "main.wat --forever\n").expect("entrypoint");
    fs::write(root.join("main.wat"), module("(call $sleep (i64.const 31536000))")).expect("main");
    fs::write(root.join("bin/arguments.wat"), ARGUMENTS).expect("arguments");
    fs::write(root.join("bin/trap.wat"), module("unreachable")).expect("trap");
    fs::write(
        root.join("bin/flood.wat"),
        module("(call $write (i32.const 1) (i32.const 0) (i32.const 60000)) (call $write (i32.const 2) (i32.const 0) (i32.const 60000))"),
    )
    .expect("flood");
    // The .wat ending is part of the name here; links give the names that commands use.
    for name in ["arguments", "trap", "flood"] {
        std::os::unix::fs::symlink(format!("{name}.wat"), root.join("bin").join(name)).expect("link");
    }
    let image = Image::open(root).expect("image");
    engine().prepare(&image).await.expect("valid modules");
    (start(ContainerConfig::new(image)).await.0, directory)
}

fn words(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).split_terminator('\0').map(String::from).collect()
}

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_module_is_found_along_path_and_has_its_own_output_and_code() {
    let (container, _directory) = pod().await;
    for name in ["arguments", "/bin/arguments", "bin/arguments.wat"] {
        let argv = command(&[name, "a b", ""]);
        let output = container.exec(&argv).await.expect("exec").wait().await;
        assert_eq!(output.outcome, Outcome::Code(3));
        assert_eq!(words(&output.output), argv);
    }
    let output = container.exec(&command(&["trap"])).await.expect("exec").wait().await;
    assert_eq!(output.outcome, Outcome::Trap(Trap::Unreachable));
    assert_eq!(container.outcome(), None, "the container goes on");
}

#[tokio::test]
async fn output_is_bounded() {
    let (container, _directory) = pod().await;
    let output = container.exec(&command(&["flood"])).await.expect("exec").wait().await;
    assert_eq!(output.outcome, Outcome::Code(0));
    assert!(output.truncated);
    assert_eq!(output.output.len(), 64 * 1024);
}

#[tokio::test]
async fn an_exec_can_be_ended() {
    let (container, _directory) = pod().await;
    let mut exec = container.exec(&command(&["main.wat"])).await.expect("exec");
    exec.kill();
    assert_eq!(exec.wait().await.outcome, Outcome::Signal(9));
    assert_eq!(container.outcome(), None, "the container goes on");
}

#[tokio::test]
async fn an_exec_ends_with_its_container() {
    let (container, _directory) = pod().await;
    // No module has this name: it is the entry module again, which sleeps.
    let mut exec = container.exec(&command(&["sh", "-c", "sleep 1"])).await.expect("exec");
    container.kill();
    assert_eq!(exec.wait().await.outcome, Outcome::Signal(9));
    assert_eq!(container.wait().await, Outcome::Signal(9));
}

#[tokio::test]
async fn an_empty_command_is_an_error() {
    let (container, _directory) = pod().await;
    assert!(container.exec(&[]).await.is_err());
}

#[tokio::test]
async fn command_and_args_become_argv() {
    let file = crate::support::file("multi.wat", ARGUMENTS);
    let image = Image::open(&file.path).expect("image");
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&[], &[], &["multi"]),
        (&[], &["a", "b"], &["multi", "a", "b"]),
        (&["sh", "-c"], &["echo hi"], &["sh", "-c", "echo hi"]),
    ];
    for (command_words, args, argv) in cases {
        let mut config = ContainerConfig::new(image.clone());
        config.command = command(command_words);
        config.args = command(args);
        let (container, log) = start(config).await;
        assert_eq!(container.wait().await, Outcome::Code(argv.len() as i32));
        assert_eq!(words(log.lines()[0].text.as_bytes()), *argv);
    }
}

#[tokio::test]
async fn the_environment_has_what_every_container_has() {
    let environment = ARGUMENTS.replace("args_", "environ_");
    let file = crate::support::file("env.wat", environment);
    let mut config = ContainerConfig::new(Image::open(&file.path).expect("image"));
    config.env = vec![("PATH".into(), "/opt".into()), ("EMPTY".into(), String::new())];
    config.hostname = "web-0".into();
    config.working_dir = Some("/data".into());
    let (container, log) = start(config).await;
    container.wait().await;
    assert_eq!(words(log.lines()[0].text.as_bytes()), ["PATH=/opt", "EMPTY=", "HOSTNAME=web-0", "PWD=/data"]);
}
