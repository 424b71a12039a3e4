//! What is no image, and how that is said.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use husk_engine::{Image, ImageError};

use crate::support::{engine, file};

/// The words in which a file is refused; they name the file.
async fn refusal(name: &str, content: impl AsRef<[u8]>) -> String {
    let file = file(name, content);
    let error = match Image::open(&file.path) {
        Ok(image) => engine().prepare(&image).await.expect_err("refused"),
        Err(error) => error,
    };
    let words = error.to_string();
    assert!(words.contains(name), "names the file: {words}");
    words
}

fn has(words: &str, parts: &[&str]) {
    for part in parts {
        assert!(words.contains(part), "`{part}` in: {words}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_there() {
    let error = Image::open("/nowhere/app.wasm").expect_err("refused");
    assert!(matches!(error, ImageError::NotFound { .. }));
    has(&error.to_string(), &["/nowhere/app.wasm", "not found"]);
}

#[tokio::test]
async fn a_file_that_is_no_wasm() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (b"\x7fELF\x02\x01\x01", "ELF"),
        (b"#!/bin/sh\nexit 0\n", "script"),
        (b"apiVersion: v1\n", "61 70 69 56"),
        (b"\0as", "magic number"),
    ];
    for (content, part) in cases {
        has(&refusal("app.wasm", content).await, &["not a Wasm file", part, "wasm32-wasip2"]);
    }
    has(&refusal("app.wat", "(module\n (func (result i33)))").await, &["line 2, column 16: "]);
}

/// A pipe that nobody writes to: who opens it waits.
fn pipe(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
    // SAFETY: the path is a C string that lives as long as the call.
    let made = unsafe { libc::mkfifo(path.as_ptr(), 0o600) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn what_has_no_end_is_not_read() {
    has(&Image::open("/dev/zero").expect_err("refused").to_string(), &["/dev/zero", "a device, not a file"]);

    let directory = tempfile::tempdir().expect("directory");
    let big = directory.path().join("big.wasm");
    fs::File::create(&big).and_then(|file| file.set_len((256 << 20) + 1)).expect("made");
    has(&Image::open(&big).expect_err("refused").to_string(), &["big.wasm", "bigger than"]);
    fs::remove_file(&big).expect("removed");

    pipe(&directory.path().join("app.wasm"));
    has(&Image::open(directory.path().join("app.wasm")).expect_err("refused").to_string(), &["app.wasm", "a pipe"]);
    pipe(&directory.path().join("data"));
    fs::write(directory.path().join("one.wat"), r#"(module (func (export "_start")))"#).expect("written");
    assert_eq!(Image::open(directory.path()).expect("image").entry_name(), "one");
    pipe(&directory.path().join("entrypoint"));
    has(&Image::open(directory.path()).expect_err("refused").to_string(), &["entrypoint", "a pipe"]);
}

#[tokio::test]
async fn a_truncated_module() {
    let whole = wat::parse_str(crate::support::module("(call $exit (i32.const 1))")).expect("valid");
    // Names for debuggers come last, as a section of their own: a module without them is whole.
    let names = whole.windows(5).position(|bytes| bytes == b"\x04name").expect("a section of names");
    let names = whole[..names].iter().rposition(|byte| *byte == 0).expect("kind of the section");
    for length in 5..names {
        let words = refusal("app.wasm", &whole[..length]).await;
        assert!(
            ["truncated", "not valid", "has no entry"].iter().any(|part| words.contains(part)),
            "{length}: {words}"
        );
    }
    has(&refusal("app.wasm", &whole[..whole.len() - 1]).await, &["truncated", "again"]);
}

#[tokio::test]
async fn an_invalid_module() {
    let invalid = wat::parse_str(r#"(module (func (export "_start") (result i32) (i64.const 0)))"#).expect("encodes");
    has(&refusal("app.wasm", invalid).await, &["not valid", "type mismatch"]);
}

#[tokio::test]
async fn an_unknown_import_is_named() {
    let module = r#"(module (import "env" "host_call" (func)) (func (export "_start")))"#;
    has(&refusal("app.wat", module).await, &["`env::host_call`", "does not provide"]);

    let component = r#"(component
        (import "acme:robot/arm@1.2.0" (instance (export "lift" (func))))
        (core module $m (func (export "run") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $run (result (result)) (canon lift (core func $i "run")))
        (instance (export "wasi:cli/run@0.2.0") (export "run" (func $run))))"#;
    has(&refusal("app.wat", component).await, &["`acme:robot/arm@1.2.0`", "does not provide"]);

    let wrong = component.replace("acme:robot/arm@1.2.0", "wasi:cli/exit@0.2.0");
    has(&refusal("app.wat", wrong).await, &["`wasi:cli/exit@0.2.0`", "lift"]);

    let wrong = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i64))) (func (export "_start")))"#;
    has(&refusal("app.wat", wrong).await, &["`wasi_snapshot_preview1::proc_exit`"]);
}

#[tokio::test]
async fn a_module_without_an_entry() {
    has(&refusal("lib.wat", r#"(module (func (export "add")))"#).await, &["no entry", "`_start`", "not as a library"]);
    has(&refusal("lib.wat", r#"(module (func (export "_start") (param i32)))"#).await, &["no entry", "`_start`"]);
    has(&refusal("lib.wat", "(component)").await, &["no entry", "`wasi:cli/run`"]);
}

#[tokio::test]
async fn a_file_that_changes_between_opening_and_compiling() {
    let file = file("app.wat", r#"(module (func (export "_start")) (global i32 (i32.const 77)))"#);
    let image = Image::open(&file.path).expect("image");
    fs::write(&file.path, r#"(module (func (export "_start") unreachable))"#).expect("changed");
    let error = engine().prepare(&image).await.expect_err("refused");
    assert!(matches!(error, ImageError::Changed { .. }), "{error}");
}

#[tokio::test]
async fn directories() {
    let start = r#"(module (func (export "_start")))"#;
    let directory = tempfile::tempdir().expect("directory");
    let root = directory.path();
    let words = |error: ImageError| error.to_string();
    has(&words(Image::open(root).expect_err("empty")), &["no Wasm module"]);

    fs::write(root.join("one.wat"), start).expect("written");
    assert_eq!(Image::open(root).expect("image").entry_name(), "one");

    fs::write(root.join("two.wat"), r#"(module (func (export "_start") unreachable))"#).expect("written");
    has(&words(Image::open(root).expect_err("which one?")), &["2 modules", "entrypoint", "one.wat"]);

    fs::write(root.join("entrypoint"), "three.wat\n").expect("written");
    has(&words(Image::open(root).expect_err("no such module")), &["entrypoint", "`three.wat`"]);

    fs::write(root.join("entrypoint"), "./two.wat --flag\n").expect("written");
    assert_eq!(Image::open(root).expect("image").entry_name(), "two");
}
