//! An engine, images from text, and the few imports that the guests of these tests need.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use husk_core::io::Outcome;
use husk_engine::{Container, ContainerConfig, Engine, EngineConfig, Image, Log};
use tempfile::TempDir;

/// One engine for all tests, as on a node.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let scratch_dir = Some(env!("CARGO_TARGET_TMPDIR").into());
        Engine::new(EngineConfig { scratch_dir, ..EngineConfig::default() }).expect("engine")
    })
}

/// A directory with one file.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    _directory: TempDir,
}

pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> File {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("file written");
    File { path, _directory: directory }
}

/// The image of a text module. It is read again whenever it is compiled, so the file is there for as long as the tests.
pub(crate) async fn image(text: &str) -> Image {
    static FILES: OnceLock<TempDir> = OnceLock::new();
    let folder = FILES.get_or_init(|| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary directory"));
    let mut file = tempfile::Builder::new().suffix(".wat").tempfile_in(folder).expect("a file");
    file.write_all(text.as_bytes()).expect("file written");
    let (_, path) = file.keep().expect("kept");
    let image = Image::open(&path).expect("image");
    engine().prepare(&image).await.expect("valid module");
    image
}

/// A core module with a body for `_start`.
pub(crate) fn module(body: &str) -> String {
    format!(
        r#"(module
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (table 1 funcref)
            (func $recurse (param i64) (result i64)
                (i64.add (local.get 0) (call $recurse (i64.add (local.get 0) (i64.const 1)))))
            ;; Calls itself twice, each time.
            (func $twice (param i32)
                (if (local.get 0) (then
                    (call $twice (i32.sub (local.get 0) (i32.const 1)))
                    (call $twice (i32.sub (local.get 0) (i32.const 1))))))
            ;; Sleeps for so many seconds: a subscription to the monotonic clock at 1024.
            (func $sleep (param $seconds i64)
                (i64.store (i32.const 1024) (i64.const 0))
                (i32.store8 (i32.const 1032) (i32.const 0))
                (i32.store (i32.const 1040) (i32.const 1))
                (i64.store (i32.const 1048) (i64.mul (local.get $seconds) (i64.const 1000000000)))
                (i64.store (i32.const 1056) (i64.const 0))
                (i32.store16 (i32.const 1064) (i32.const 0))
                (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096))))
            ;; Writes bytes of the memory to a descriptor.
            (func $write (param $fd i32) (param $at i32) (param $length i32)
                (i32.store (i32.const 512) (local.get $at))
                (i32.store (i32.const 516) (local.get $length))
                (drop (call $fd_write (local.get $fd) (i32.const 512) (i32.const 1) (i32.const 520))))
            (func (export "_start") {body}))"#
    )
}

pub(crate) async fn start(config: ContainerConfig) -> (Container, Log) {
    let log = Log::default();
    let container = engine().start(config, log.clone()).await.expect("started");
    (container, log)
}

/// Runs a body to its end.
pub(crate) async fn run(body: &str) -> Outcome {
    run_text(&module(body)).await
}

/// Runs a module or component to its end.
pub(crate) async fn run_text(text: &str) -> Outcome {
    start(ContainerConfig::new(image(text).await)).await.0.wait().await
}

/// What a container has written, line by line.
pub(crate) fn text(log: &Log) -> Vec<String> {
    log.lines().iter().map(|line| line.text.to_string()).collect()
}

/// Waits for the next line: the guest is where it says that it is.
pub(crate) async fn next_line(log: &Log) -> String {
    log.follow().next().await.expect("a line").text.to_string()
}

/// One of the example guests, which `cargo xtask guests` compiles next to this test's own target directory.
pub(crate) fn guest(name: &str) -> Image {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests").join(format!("{name}.wasm"));
    assert!(file.exists(), "{} is missing: run `cargo xtask guests` first", file.display());
    Image::open(&file).expect("image")
}
