//! Compiled code on the disk: it is made once, has its limit, and is made again if it is damaged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};

use crate::world::{World, shell, sleeper};

/// Files with compiled code: what they contain, and which file it is. What is compiled again is another file.
fn kept(world: &World) -> BTreeMap<String, (Vec<u8>, u64)> {
    let files = fs::read_dir(world.data.join("modules")).expect("a folder").map(|entry| entry.expect("readable"));
    let file = |entry: fs::DirEntry| {
        let inode = entry.metadata().expect("it stays").ino();
        (entry.file_name().to_string_lossy().into_owned(), (fs::read(entry.path()).expect("it stays"), inode))
    };
    files.map(file).collect()
}

/// A pod with a module of its own.
fn pod(world: &World, name: &str) -> Value {
    let path = world.path(&format!("{name}.wat"));
    fs::write(&path, sleeper(name)).expect("written");
    json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "app", "image": path}]})
}

#[test]
fn nothing_is_compiled_twice() {
    let mut world = World::new(&[]);
    world.create("web", &shell("sleep 100000"));
    world.running("web");
    let first = kept(&world);
    assert_eq!(first.len(), 1, "{:?}", first.keys());
    for planned in [false, true] {
        match planned {
            true => drop(world.end()),
            false => world.kill(),
        }
        world.start();
        world.running("web");
        assert!(kept(&world) == first, "it is the same file with the same code");
    }
}

#[test]
fn damaged_code_is_told_and_compiled_again() {
    let mut world = World::new(&[]);
    world.create("web", &shell("sleep 100000"));
    world.running("web");
    let whole = kept(&world);
    let (name, (code, _)) = whole.first_key_value().expect("a file");
    let path = world.data.join("modules").join(name);
    let mut flipped = code.clone();
    flipped[code.len() / 2] ^= 1;
    for damaged in [&flipped[..], &code[..code.len() / 3], &[]] {
        world.kill();
        fs::write(&path, damaged).expect("written");
        let before = world.log().len();
        world.start();
        world.running("web");
        let log = world.log().split_off(before);
        assert!(log.contains(name.as_str()) && log.contains("it is built again"), "{log}");
        // The same module is the same code.
        assert_eq!(fs::read(&path).expect("it is there again").len(), code.len());
        assert!(fs::read(&path).expect("it is there again") == *code);
    }
}

#[test]
fn code_is_kept_up_to_the_limit_and_the_longest_unused_goes_first() {
    let mut world = World::new(&[]);
    world.create("first", &pod(&world, "first"));
    world.running("first");
    let before = kept(&world);
    let (oldest, (code, _)) = before.first_key_value().expect("a file");
    // Room for two.
    world.kill();
    let limit = code.len() * 5 / 2;
    world.configure(&format!("husk: {{compiledCodeLimit: {limit}}}\n"));
    world.start();
    world.running("first");
    for name in ["second", "third"] {
        world.create(name, &pod(&world, name));
        world.running(name);
    }
    let now = kept(&world);
    assert_eq!(now.len(), 2, "{:?}", now.keys());
    assert!(!now.contains_key(oldest) && now.values().map(|(code, _)| code.len()).sum::<usize>() <= limit);
    // What runs doesn't need its file, and what starts again makes a new one.
    world.running("first");
    world.kill();
    world.start();
    for name in ["first", "second", "third"] {
        world.running(name);
    }
    assert_eq!(kept(&world).len(), 2);
}
