//! Compiled code on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use husk_core::io::Outcome;
use husk_engine::{ContainerConfig, Engine, EngineConfig, Image, Log};

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
async fn a_directory_that_others_can_write_is_no_cache() {
    let directory = tempfile::tempdir().expect("directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let config = EngineConfig { cache_dir: Some(directory.path().into()), ..EngineConfig::default() };
    let words = Engine::new(config).expect_err("refused").to_string();
    assert!(words.contains("0700") && words.contains(&*directory.path().to_string_lossy()), "{words}");
}
