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

/// Right by name and digest, but another program: whoever can put it there must not run it.
#[tokio::test]
async fn code_that_others_could_have_written_is_never_run() {
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let (seven, eight) =
        (file("7.wat", module("(call $exit (i32.const 7))")), file("8.wat", module("(call $exit (i32.const 8))")));
    let (seven, eight) = (Image::open(&seven.path).expect("image"), Image::open(&eight.path).expect("image"));
    run(&with_cache(&cache), &seven).await;
    let [own] = kept(&cache).try_into().expect("one file");
    run(&with_cache(&cache), &eight).await;
    let foreign = kept(&cache).into_iter().find(|path| *path != own).expect("two files");
    let name = |path: &Path| path.file_name().and_then(OsStr::to_str).expect("name").to_string();
    let (own_name, foreign_name) = (name(&own), name(&foreign));
    let (prefix, _) = own_name.rsplit_once('-').expect("three parts");
    let (_, digest) = foreign_name.rsplit_once('-').expect("three parts");
    let disguised = cache.join(format!("{prefix}-{digest}"));
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&foreign, &elsewhere).expect("moved");

    let disguise: [&dyn Fn(); 3] = [
        &|| {
            fs::copy(&elsewhere, &disguised).expect("copied");
            fs::set_permissions(&disguised, fs::Permissions::from_mode(0o644)).expect("mode");
        },
        &|| std::os::unix::fs::symlink(&elsewhere, &disguised).expect("linked"),
        &|| fs::create_dir(&disguised).expect("made"),
    ];
    for disguise in disguise {
        fs::remove_file(&own).expect("removed");
        disguise();
        assert_eq!(run(&with_cache(&cache), &seven).await, Outcome::Code(7));
        assert!(own.is_file(), "{:?}", kept(&cache));
        let _ = fs::remove_dir(&disguised);
        assert!(fs::symlink_metadata(&disguised).is_err(), "{:?}", kept(&cache));
    }
}

#[tokio::test]
async fn a_module_is_compiled_once_however_many_want_it() {
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let text = module("(call $exit (i32.const 7))");
    let (one, two) = (file("one.wat", &text), file("two.wat", &text));
    let images = [&one, &two].map(|file| Image::open(&file.path).expect("image"));
    let engine = with_cache(&cache);
    let all = (0..16).map(|n| {
        let (engine, image) = (engine.clone(), images[n % 2].clone());
        tokio::spawn(async move { engine.prepare(&image).await })
    });
    for prepared in all.collect::<Vec<_>>() {
        prepared.await.expect("joined").expect("prepared");
    }
    assert_eq!(engine.compiled(), 1);
    let again = with_cache(&cache);
    again.prepare(&images[0]).await.expect("prepared");
    assert_eq!(again.compiled(), 0, "its code was kept");
}

#[tokio::test]
async fn no_more_code_is_kept_than_it_may_be() {
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let config = EngineConfig { cache_dir: Some(cache.clone()), cache_bytes: 1, workers: 1, ..EngineConfig::default() };
    let engine = Engine::new(config).expect("engine");
    for code in 0..3 {
        let file = file("app.wat", module(&format!("(call $exit (i32.const {code}))")));
        engine.prepare(&Image::open(&file.path).expect("image")).await.expect("prepared");
        assert_eq!(kept(&cache).len(), 1, "the latest alone");
    }
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

// spec: RES-09
#[tokio::test]
async fn code_that_no_container_uses_is_forgotten_when_it_is_asked_for() {
    let directory = tempfile::tempdir().expect("directory");
    let cache = directory.path().join("cache");
    let engine = with_cache(&cache);
    let (used, unused) =
        (file("used.wat", module("(loop (br 0))")), file("unused.wat", module("(call $exit (i32.const 7))")));
    let images = [&used, &unused].map(|file| Image::open(&file.path).expect("image"));
    let container = engine.start(ContainerConfig::new(images[0].clone()), Log::default()).await.expect("started");
    assert_eq!(run(&engine, &images[1]).await, Outcome::Code(7));
    let sizes = || kept(&cache).iter().map(|code| fs::metadata(code).expect("a file").len()).sum::<u64>();
    let before = sizes();
    let freed = engine.forget_unused_code();
    assert_eq!((kept(&cache).len(), sizes()), (1, before - freed));
    assert!(freed > 0);
    assert_eq!(engine.forget_unused_code(), 0, "that runs");
    container.kill();
    container.wait().await;
    assert_eq!(run(&engine, &images[1]).await, Outcome::Code(7));
    assert_eq!(engine.compiled(), 3, "one of them twice");
}
