//! The store of images by itself: imports, names, damage, power cuts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use husk_agent::{ImageStore, ImagesConfig};
use serde_json::json;
use tar::EntryType;
use tempfile::TempDir;

use crate::layout::{Layer, Layout, tar_with_link};
use crate::support::{exits, module};

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn store(&self) -> ImageStore {
        ImageStore::at(self.path("images"))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, bytes).expect("written");
        path
    }

    fn names(&self) -> Vec<String> {
        self.store().list().expect("a list").into_iter().flat_map(|image| image.names).collect()
    }

    fn blobs(&self) -> usize {
        count(&self.path("images/blobs/sha256"))
    }
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn names_are_completed_and_blobs_are_shared() {
    let place = Place::new();
    let file = place.file("App.wasm", &exits(1));
    let store = place.store();
    let first = store.import(&file, None).expect("imported");
    assert_eq!(first[0].names, ["docker.io/library/app:latest"]);
    let again = store.import(&file, Some("Example.com/app:1.0")).expect("imported");
    assert_eq!(again[0].digest, first[0].digest);
    assert_eq!(store.list().expect("a list").len(), 1);
    // Manifest, configuration, module.
    assert_eq!(place.blobs(), 3);

    assert_eq!(store.remove("app").expect("removed"), ["docker.io/library/app:latest"]);
    assert_eq!(place.blobs(), 3);
    store.remove(&first[0].digest.hex()[..12]).expect("removed");
    assert_eq!((place.names().len(), place.blobs()), (0, 0));
    assert!(store.remove("app").is_err_and(|error| error.to_string().contains("no image `app`")));
}

#[test]
fn a_folder_is_the_same_image_wherever_it_is_imported() {
    let place = Place::new();
    for copy in ["a/tools", "b/tools"] {
        place.file(&format!("{copy}/bin/one.wasm"), &exits(1));
        place.file(&format!("{copy}/bin/two.wasm"), &exits(2));
        place.file(&format!("{copy}/entrypoint"), b"bin/two.wasm --flag\n");
        std::os::unix::fs::symlink("one.wasm", place.path(copy).join("bin/uno.wasm")).expect("linked");
    }
    let import = |copy| place.store().import(&place.path(copy), None).expect("imported").remove(0);
    assert_eq!(import("a/tools"), import("b/tools"));
    assert_eq!(place.names(), ["docker.io/library/tools:latest"]);
    let root = place.path("images/roots").read_dir().expect("roots").next().expect("one").expect("an entry").path();
    assert!(root.join("bin/uno.wasm").is_symlink());
}

#[test]
fn a_layout_is_the_same_as_a_directory_and_as_a_tar() {
    let place = Place::new();
    let layout = Layout::new(&place.path("stick"));
    let digest = layout.add("registry.example.com/app:1", &[Layer::Module("app.wasm", &exits(1))], "{}");
    layout.add("2", &[Layer::Module("app.wasm", &exits(2))], "{}");
    layout.as_tar(&place.path("stick.tar"));
    for path in ["stick", "stick.tar"] {
        let imported = place.store().import(&place.path(path), None).expect("imported");
        assert_eq!(imported.len(), 2);
        assert_eq!(imported[0].digest, digest);
        assert_eq!(place.names(), ["docker.io/library/stick:2", "registry.example.com/app:1"]);
        place.store().prune().expect("emptied");
        let one = place.store().import(&place.path(path), Some("stick:2")).expect("imported");
        assert_eq!(one[0].names, ["docker.io/library/stick:2"]);
        place.store().prune().expect("emptied");
        let error = place.store().import(&place.path(path), Some("other:1")).expect_err("refused").to_string();
        assert!(error.contains("registry.example.com/app:1"), "{error}");
    }
}

#[test]
fn of_an_image_for_several_platforms_the_one_for_wasm_is_taken() {
    let place = Place::new();
    let layout = Layout::new(&place.path("app"));
    let for_platform = |code: u32, os: &str, architecture: &str| {
        let mut manifest = layout.manifest(&[Layer::Module("app.wasm", &exits(code))], "{}");
        manifest["platform"] = json!({ "os": os, "architecture": architecture });
        manifest
    };
    let kinds = [(1, "linux", "amd64"), (2, "wasip1", "wasm"), (3, "unknown", "unknown")];
    let manifests: Vec<_> = kinds.map(|(code, os, architecture)| for_platform(code, os, architecture)).into();
    let index = |manifests: &[serde_json::Value]| {
        let index = json!({ "schemaVersion": 2, "manifests": manifests }).to_string();
        layout.blob("application/vnd.oci.image.index.v1+json", index.as_bytes())
    };
    layout.point("1", index(&manifests));
    let imported = place.store().import(&place.path("app"), None).expect("imported");
    assert_eq!(manifests[1]["digest"], imported[0].digest.to_string());

    let arm = for_platform(4, "linux", "arm64");
    layout.point("1", index(&[manifests[0].clone(), arm]));
    let error = place.store().import(&place.path("app"), None).expect_err("refused").to_string();
    assert!(error.contains("linux/amd64, linux/arm64") && error.contains("wasm"), "{error}");
}

/// What is refused, and leaves nothing behind.
#[test]
fn what_is_no_image_is_refused_with_its_name_and_the_reason() {
    let place = Place::new();
    let refused = |path: &Path, words: &[&str]| {
        let error = place.store().import(path, Some("app:1")).expect_err("refused").to_string();
        let file = path.file_name().expect("a name").to_string_lossy();
        for word in words.iter().copied().chain([&*file]) {
            assert!(error.contains(word), "`{word}` is not in: {error}");
        }
        assert!(!error.contains("staging"), "{error}");
        assert_eq!((place.names().len(), place.blobs()), (0, 0), "{error}");
        assert_eq!(count(&place.path("images/staging")), 0, "{error}");
    };
    refused(&place.file("script.wasm", b"#!/bin/sh\n"), &["not a Wasm file", "script"]);
    refused(&place.file("cut.wasm", b"\0asm\x01\0\0\0\x01\x40\x01\x60"), &["truncated"]);
    refused(&place.file("nothing.tar", &[0; 10240]), &["not a Wasm file"]);
    let big = place.path("big.wasm");
    fs::File::create(&big).and_then(|file| file.set_len(1 << 30)).expect("made");
    refused(&big, &["bigger than"]);
    refused(Path::new("/dev/zero"), &["not a regular file"]);
    place.file("empty/readme.txt", b"");
    refused(&place.path("empty"), &["no Wasm module"]);

    let layer = |name: &str, layers: &[Layer<'_>]| {
        Layout::new(&place.path(name)).add("1", layers, "{}");
        place.path(name)
    };
    let wrong = |name: &str, change: &dyn Fn(&[u8]) -> Vec<u8>| {
        let layout = Layout::new(&place.path(name));
        let module = layout.blob("application/wasm", &exits(1));
        layout.add("1", &[Layer::Module("app.wasm", &exits(1))], "{}");
        let path = layout.blob_path(&module);
        fs::write(&path, change(&fs::read(&path).expect("read"))).expect("changed");
        place.path(name)
    };
    refused(&wrong("changed", &|_| exits(2)), &["has the digest", "copy the image again"]);
    refused(&wrong("shortened", &|bytes| bytes[..bytes.len() / 2].to_vec()), &["cut off"]);
    refused(&wrong("lengthened", &|bytes| [bytes, b"more"].concat()), &["has the digest"]);
    refused(&layer("zstd", &[Layer::Raw("application/vnd.oci.image.layer.v1.tar+zstd", b"x")]), &["tar+zstd", "gzip"]);
    refused(
        &layer("garbage", &[Layer::Raw("application/vnd.oci.image.layer.v1.tar+gzip", b"no gzip")]),
        &["layer sha256:"],
    );
    refused(&layer("linux", &[Layer::Tar(&[("bin/sh", b"\x7fELF")])]), &["no Wasm module"]);
    refused(&layer("void", &[Layer::Raw("application/wasm", b"")]), &["it is empty"]);

    let gone = Layout::new(&place.path("gone"));
    let module = gone.blob("application/wasm", &exits(1));
    gone.add("1", &[Layer::Module("app.wasm", &exits(1))], "{}");
    fs::remove_file(gone.blob_path(&module)).expect("removed");
    refused(&place.path("gone"), &["is missing"]);
    gone.as_tar(&place.path("gone.tar"));
    refused(&place.path("gone.tar"), &["is missing"]);
    let whole = fs::read(place.path("gone.tar")).expect("read");
    refused(&place.file("half.tar", &whole[..whole.len() / 2]), &["half.tar"]);
}

#[test]
fn no_layer_reaches_beyond_the_image() {
    let place = Place::new();
    let victim = place.file("victim", b"untouched");
    let good = ("app.wasm", &exits(1)[..]);
    let outside = victim.to_string_lossy().into_owned();
    let folder = place.0.path().to_string_lossy().into_owned();
    let up = format!("{}victim", "../".repeat(12));
    let layers: [(&str, Vec<u8>); 6] = [
        ("parent", crate::layout::tar_of(&[good, (&up, b"bad")])),
        ("whiteout", crate::layout::tar_of(&[good, ("a/.wh...", b"")])),
        ("folder-link", tar_with_link(EntryType::Symlink, "d", &folder, &[good, ("d/victim", b"bad")])),
        ("whiteout-link", tar_with_link(EntryType::Symlink, "d", &folder, &[good, ("d/.wh.victim", b"")])),
        ("hard-link", tar_with_link(EntryType::Link, "l", &outside, &[good])),
        ("hard-link-up", tar_with_link(EntryType::Link, "l", &up, &[good])),
    ];
    for (name, layer) in layers {
        let tar = "application/vnd.oci.image.layer.v1.tar";
        Layout::new(&place.path(name)).add("1", &[Layer::Raw(tar, &layer)], "{}");
        let error = place.store().import(&place.path(name), None).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("layer sha256:"), "{error}");
        assert_eq!(fs::read(&victim).expect("there"), b"untouched", "{name}");
    }
    // Absolute paths mean the image's root; a link that is replaced is not written through.
    let link = tar_with_link(EntryType::Symlink, "data", &outside, &[("/app.wasm", &exits(1)), ("data", b"own")]);
    Layout::new(&place.path("fine")).add("1", &[Layer::Raw("application/vnd.oci.image.layer.v1.tar", &link)], "{}");
    place.store().import(&place.path("fine"), None).expect("imported");
    assert_eq!(fs::read(&victim).expect("there"), b"untouched");
}

#[test]
fn a_damaged_index_is_replaced_by_the_one_before_it() {
    let place = Place::new();
    let file = place.file("app.wasm", &exits(1));
    place.store().import(&file, Some("app:1")).expect("imported");
    place.store().import(&file, Some("app:2")).expect("imported");
    let index = place.path("images/index.json");
    let whole = fs::read(&index).expect("read");
    for damage in [&whole[..whole.len() / 2], b"", b"\0\0\0\0"] {
        fs::write(&index, damage).expect("damaged");
        assert_eq!(place.names(), ["docker.io/library/app:1"]);
    }
    place.store().import(&file, Some("app:3")).expect("imported");
    assert_eq!(place.names(), ["docker.io/library/app:1", "docker.io/library/app:3"]);
    fs::write(&index, br#"{"version": 99, "images": 5}"#).expect("written");
    let error = place.store().list().expect_err("refused").to_string();
    assert!(error.contains("newer husk") && error.contains("index.json"), "{error}");
}

/// A power cut is whatever an import had done until then.
#[test]
fn a_half_import_leaves_nothing() {
    let place = Place::new();
    place.store().import(&place.file("app.wasm", &exits(1)), None).expect("imported");
    let before = place.store().list().expect("a list");
    let stray = "0".repeat(64);
    place.file("images/staging/abandoned/blobs/half", b"bytes");
    place.file("images/staging/abandoned/owner", b"");
    place.file(&format!("images/blobs/sha256/{stray}"), b"no index names it");
    place.file(&format!("images/roots/{stray}/app.wasm"), b"nor this");
    place.file("images/index.json.new", b"{\"half\":");
    assert_eq!(place.store().list().expect("a list").len(), before.len());
    place.store().import(&place.file("other.wasm", &exits(2)), None).expect("imported");
    assert_eq!((place.blobs(), count(&place.path("images/staging")), count(&place.path("images/roots"))), (6, 0, 0));
    assert_eq!(place.names().len(), 2);
}

#[test]
fn the_longest_unused_go_first_and_the_young_stay() {
    let place = Place::new();
    for (n, name) in ["a", "b", "c"].iter().enumerate() {
        let code = u32::try_from(n).expect("small");
        place.store().import(&place.file("app.wasm", &exits(code)), Some(name)).expect("imported");
    }
    let used = |name: &str, ago: u64| {
        let digest = place.store().find(name).expect("there").digest;
        let lease = fs::File::create(place.path("images/leases").join(digest.hex())).expect("made");
        lease.set_modified(SystemTime::now() - Duration::from_secs(ago)).expect("set");
    };
    used("a", 100);
    used("b", 100_000);
    let collect = |config: ImagesConfig, wanted: &[&str]| {
        let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).to_string()).collect();
        place.store().collect(&config, &wanted).expect("collected")
    };
    let plenty = ImagesConfig { high_threshold_percent: 100, low_threshold_percent: 99, ..ImagesConfig::default() };
    assert_eq!(collect(plenty.clone(), &[]).removed, []);
    let full = ImagesConfig { high_threshold_percent: 1, low_threshold_percent: 0, ..ImagesConfig::default() };
    let young = collect(full.clone(), &[]);
    assert!(young.removed.is_empty() && young.missing > 0, "{young:?}");
    let old = ImagesConfig { maximum_age: Duration::from_secs(3600), ..plenty };
    assert_eq!(collect(old.clone(), &["b:latest"]).removed, []);
    assert_eq!(collect(old, &[]).removed.len(), 1);
    assert_eq!(place.names(), ["docker.io/library/a:latest", "docker.io/library/c:latest"]);
    let none_is_young = ImagesConfig { minimum_age: Duration::ZERO, ..full };
    let c = place.store().find("c").expect("there").digest;
    let a = place.store().find("a").expect("there").digest;
    let both = collect(none_is_young, &[]);
    // `c` was never used since it came, which is less long ago.
    assert_eq!(both.removed, [a, c]);
    assert!(both.freed > 0 && both.missing > 0, "{both:?}");
    assert_eq!(place.blobs(), 0);
}

#[test]
fn wrong_thresholds_are_named() {
    let default = ImagesConfig::default;
    assert_eq!(default().problems(), [""; 0]);
    let high = ImagesConfig { high_threshold_percent: 101, ..default() };
    assert!(high.problems()[0].contains("imageGCHighThresholdPercent"));
    let low = ImagesConfig { low_threshold_percent: 85, ..default() };
    assert!(low.problems()[0].contains("imageGCLowThresholdPercent"));
    let age = ImagesConfig { maximum_age: Duration::from_secs(60), ..default() };
    assert!(age.problems()[0].contains("imageMaximumGCAge"));
}

/// As many processes do at once what they like: nothing is lost and nothing stays.
#[test]
fn imports_and_removals_at_once_leave_a_whole_store() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for n in 0..4_u32 {
            let place = &place;
            scope.spawn(move || {
                let file = place.file(&format!("app{n}.wasm"), &module(&format!("(call $exit (i32.const {n}))")));
                for round in 0..5 {
                    place.store().import(&file, Some(&format!("app{n}:{round}"))).expect("imported");
                    place.store().import(&file, Some("shared")).expect("imported");
                    place.store().remove(&format!("app{n}:{round}")).expect("removed");
                    place.store().import(&file, Some(&format!("app{n}:last"))).expect("imported");
                }
            });
        }
    });
    let names = place.names();
    for n in 0..4 {
        assert!(names.contains(&format!("docker.io/library/app{n}:last")), "{names:?}");
    }
    assert_eq!((place.blobs(), count(&place.path("images/staging"))), (12, 0));
}
