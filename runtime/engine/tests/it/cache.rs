//! Compiled code on disk.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use husk_core::io::Outcome;
use husk_engine::{ContainerConfig, Engine, EngineConfig, EngineError, Image, Log};

use crate::support::{file, module};

fn with_cache(directory: &Path) -> Engine {
    Engine::new(EngineConfig { cache_dir: Some(directory.into()), workers: 1, ..EngineConfig::default() })
        .expect("engine")
}

async fn run(engine: &Engine, image: &Image) -> Outcome {
    engine.start(ContainerConfig::new(image.clone()), Log::default()).await.expect("started").wait().await
}

fn kept(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).expect("directory").map(|entry| entry.expect("entry").path()).collect()
}

#[tokio::test]
async fn compiled_code_is_used_again_and_rebuilt_when_it_is_damaged() {
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let file = file("app.wat", module("(call $exit (i32.const 7))"));
    let image = Image::open(&file.path).expect("image");
    assert_eq!(run(&with_cache(&cache), &image).await, Outcome::Code(7));
    let [code] = kept(&cache).try_into().expect("one file");
    assert_eq!(fs::metadata(&code).expect("file").permissions().mode() & 0o077, 0);

    // What isn't compiled isn't read: the module is gone, its code is enough.
    let module = fs::read(&file.path).expect("module");
    fs::remove_file(&file.path).expect("removed");
    assert_eq!(run(&with_cache(&cache), &image).await, Outcome::Code(7));
    fs::write(&file.path, module).expect("back");

    let whole = fs::read(&code).expect("code");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    for damage in [damaged, whole[..middle].to_vec(), Vec::new()] {
        // As another file of that name: the one before is mapped into memory for as long as its code runs.
        let damaged = directory.path().join("damaged");
        fs::write(&damaged, damage).expect("written");
        fs::rename(&damaged, &code).expect("put in place");
        assert_eq!(run(&with_cache(&cache), &image).await, Outcome::Code(7));
        assert!(fs::read(&code).is_ok_and(|now| now == whole), "built again");
    }
}

#[tokio::test]
async fn what_no_engine_will_use_again_and_the_oldest_beyond_the_bound_are_removed() {
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let (one, two) = (file("one.wat", module("")), file("two.wat", module("unreachable")));
    run(&with_cache(&cache), &Image::open(&one.path).expect("image")).await;
    let [code] = kept(&cache).try_into().expect("one file");
    let name = code.file_name().and_then(OsStr::to_str).expect("name");
    let [module, compatibility, digest] = name.split('-').collect::<Vec<_>>().try_into().expect("three parts");

    let other_engine = cache.join([module, &"f".repeat(compatibility.len()), digest].join("-"));
    fs::write(&other_engine, "code").expect("written");
    let long_unused = cache.join([&"0".repeat(module.len()), compatibility, digest].join("-"));
    let file = fs::File::create(&long_unused).expect("made");
    file.set_len(256 << 20).and_then(|()| file.set_modified(SystemTime::UNIX_EPOCH)).expect("set");
    fs::write(cache.join("notes"), "of somebody else").expect("written");

    run(&with_cache(&cache), &Image::open(&two.path).expect("image")).await;
    assert!(!other_engine.exists() && !long_unused.exists(), "{:?}", kept(&cache));
    assert!(code.exists() && cache.join("notes").exists(), "{:?}", kept(&cache));
    assert_eq!(kept(&cache).len(), 3);
}

#[tokio::test]
async fn a_directory_that_others_can_write_is_no_cache() {
    let directory = tempfile::tempdir().expect("directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let config = EngineConfig { cache_dir: Some(directory.path().into()), ..EngineConfig::default() };
    let error = Engine::new(config).expect_err("refused");
    assert!(matches!(error, EngineError::Cache(_)), "those who can do without know it: {error:?}");
    let words = error.to_string();
    assert!(words.contains("0700") && words.contains(&*directory.path().to_string_lossy()), "{words}");
}
