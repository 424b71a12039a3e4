//! Images through the agent's front: what pods name, where it is found, and what is said when it isn't.

use std::fs;
use std::path::Path;
use std::time::Duration;

use husk_agent::{ImageStore, ImagesConfig, Notice};

use crate::layout::{Layer, Layout};
use crate::support::{self, Device, Seen, exits, module};

fn import(device: &Device, name: &str, code: u32) {
    let file = device.path("app.wasm");
    fs::write(&file, exits(code)).expect("written");
    device.store().import(&file, Some(name)).expect("imported");
    fs::remove_file(file).expect("removed");
}

// spec: STATE-02
// spec: STATE-05
#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_the_store_runs_under_its_name_and_shows_its_digest() {
    let device = Device::new();
    import(&device, "registry.example.com/team/app:1.0", 7);
    let digest = device.store().list().expect("a list")[0].digest;
    let seen = device.run("registry.example.com/team/app:1.0", "IfNotPresent").await;
    assert_eq!(seen.exit_code(), Some(7));
    assert_eq!(seen.image_id(), format!("registry.example.com/team/app@{digest}"));
    let present = "Container image \"registry.example.com/team/app:1.0\" already present on machine and can be accessed by the pod";
    assert_eq!(seen.events("Pulled"), [present]);
    assert_eq!(seen.events("Pulling"), [""; 0]);
}

// spec: STATE-02
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_pulled_from_a_source() {
    let device = Device::new();
    let layout = Layout::new(&device.path("stick/app"));
    layout.add("1.0", &[Layer::Module("app.wasm", &exits(5))], "{}");
    let seen = device.run_with(|config| config.with_source(device.path("stick")), "app:1.0", "IfNotPresent").await;
    assert_eq!(seen.exit_code(), Some(5), "{seen:?}");
    assert_eq!(seen.events("Pulling"), ["Pulling image \"app:1.0\""]);
    let pulled = seen.events("Pulled");
    let bytes = device.store().list().expect("a list")[0].bytes;
    let (begin, end) =
        ("Successfully pulled image \"app:1.0\" in ", format!(" including waiting). Image size: {bytes} bytes."));
    assert!(pulled[0].starts_with(begin) && pulled[0].ends_with(&end), "{pulled:?}");
    assert_eq!(device.store().list().expect("a list")[0].names, ["docker.io/library/app:1.0"]);
}

// spec: STATE-02
#[tokio::test(flavor = "multi_thread")]
async fn always_takes_the_newest_and_does_with_what_is_there_when_the_source_is_away() {
    let device = Device::new();
    import(&device, "app:latest", 1);
    let layout = Layout::new(&device.path("stick/app"));
    layout.add("latest", &[Layer::Module("app.wasm", &exits(2))], "{}");
    let stick = |config: ImagesConfig| config.with_source(device.path("stick"));
    let code = async |policy: &str| device.run_with(stick, "app", policy).await.exit_code();
    assert_eq!(code("IfNotPresent").await, Some(1));
    assert_eq!(code("Never").await, Some(1));
    assert_eq!(code("Always").await, Some(2));
    fs::remove_dir_all(device.path("stick")).expect("pulled out");
    assert_eq!(code("Always").await, Some(2));
    // A file on the stick that is broken is nobody's trouble but its own.
    fs::create_dir(device.path("stick")).expect("made");
    fs::write(device.path("stick/other.tar"), [0; 257].iter().chain(b"ustar half").copied().collect::<Vec<_>>())
        .expect("written");
    assert_eq!(code("Always").await, Some(2));
    let seen =
        device.watch(stick(ImagesConfig::default()), "other", "", |seen| seen.waiting().0 == "ErrImagePull").await;
    assert!(seen.waiting().1.contains("other.tar"), "{seen:?}");
    // Without a policy it is the tag that decides.
    layout_with(&device.path("stick/app"), "latest", 3);
    assert_eq!(device.run_with(stick, "app", "").await.exit_code(), Some(3));
}

fn layout_with(path: &Path, tag: &str, code: u32) {
    Layout::new(path).add(tag, &[Layer::Module("app.wasm", &exits(code))], "{}");
}

// spec: STATE-02
#[tokio::test(flavor = "multi_thread")]
async fn each_failure_has_upstreams_reason_and_words() {
    let device = Device::new();
    let seen = device.fails("Team/App", "IfNotPresent").await;
    let parse = "couldn't parse image name \"Team/App\": invalid reference format: repository name must be lowercase";
    let words = format!("Failed to apply default image tag \"Team/App\": {parse}");
    assert_eq!(seen.waiting(), ("InvalidImageName".into(), words.clone()));
    assert_eq!(seen.events("InspectFailed"), [words]);
    assert_eq!(seen.events("Failed"), ["Error: InvalidImageName"]);

    let seen = device.fails("no-such:1", "Never").await;
    let words = "Container image \"no-such:1\" is not present with pull policy of Never";
    assert_eq!(seen.waiting(), ("ErrImageNeverPull".into(), words.into()));
    assert_eq!(seen.events("ErrImageNeverPull"), [words]);

    let seen = device.fails("no-such:1", "IfNotPresent").await;
    let (reason, message) = seen.waiting();
    assert_eq!(reason, "ErrImagePull");
    assert!(message.contains("no-such:1") && message.contains("husk image import"), "{message}");
    assert_eq!(seen.events("Failed")[0], format!("Failed to pull image \"no-such:1\": {message}"));
}

// spec: STATE-02
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_pull_backs_off() {
    let device = Device::new();
    let seen = device.waits_for("no-such:1", "IfNotPresent", "ImagePullBackOff").await;
    let (_, message) = seen.waiting();
    assert!(message.starts_with("Back-off pulling image \"no-such:1\": ErrImagePull: "), "{message}");
    assert_eq!(seen.events("BackOff"), ["Back-off pulling image \"no-such:1\""]);
}

// spec: STATE-02
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_image_is_never_run_and_mended_from_where_it_came() {
    let device = Device::new();
    layout_with(&device.path("stick/app"), "1", 4);
    let stick = |config: ImagesConfig| config.with_source(device.path("stick"));
    assert_eq!(device.run_with(stick, "app:1", "IfNotPresent").await.exit_code(), Some(4));
    // Another program, whole in itself: only the digest tells.
    let blobs = device.path("data/images/blobs/sha256");
    let is_module = |path: &Path| fs::read(path).expect("a blob").starts_with(b"\0asm");
    let blob =
        fs::read_dir(blobs).expect("blobs").map(|entry| entry.expect("an entry").path()).find(|path| is_module(path));
    let blob = blob.expect("a module");
    fs::write(&blob, exits(0)).expect("damaged");
    let seen = device.fails("app:1", "IfNotPresent").await;
    let (reason, message) = seen.waiting();
    assert_eq!(reason, "ImageInspectError");
    assert!(message.starts_with("Failed to inspect image \"app:1\": blob sha256:"), "{message}");
    assert!(message.contains("damaged") && message.contains("import"), "{message}");
    assert_eq!(device.run_with(stick, "app:1", "IfNotPresent").await.exit_code(), Some(4));
    assert!(fs::read(blob).expect("a blob") != exits(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_become_the_root_and_the_configuration_is_honoured() {
    let device = Device::new();
    // Reads a file of the second layer by its name, and ends with its first byte.
    let layout = Layout::new(&device.path("app"));
    let reader = module(support::EXIT_WITH_FILE);
    let first = [("bin/reader.wasm", &reader[..]), ("data/code", b"\x05"), ("data/gone", b"x")];
    let second = [("data/code", &b"\x09"[..]), ("data/.wh.gone", b"")];
    let config = r#"{"architecture": "wasm", "os": "wasip1", "config": {"Entrypoint": ["/bin/reader.wasm"], "WorkingDir": "/work"}}"#;
    layout.add("1", &[Layer::Tar(&first), Layer::TarGzip(&second)], config);
    device.store().import(&device.path("app"), None).expect("imported");
    assert_eq!(device.run("app:1", "Never").await.exit_code(), Some(9));
    let roots = device.path("data/images/roots");
    let root = fs::read_dir(&roots).expect("roots").next().expect("one").expect("an entry").path();
    assert!(root.join("work").is_dir() && !root.join("data/gone").exists());
    // Nobody in particular can read it as well.
    let anybody = config.replace("\"WorkingDir\"", "\"User\": \"1000:2000\", \"WorkingDir\"");
    layout.add("2", &[Layer::Tar(&first), Layer::TarGzip(&second)], &anybody);
    device.store().import(&device.path("app"), None).expect("imported");
    assert_eq!(device.run("app:2", "Never").await.exit_code(), Some(9));

    // Its files are damaged, its layers are not.
    fs::write(root.join("data/code"), b"\x01").expect("damaged");
    assert_eq!(device.run("app:1", "Never").await.exit_code(), Some(9));
    fs::remove_dir_all(&root).expect("lost");
    assert_eq!(device.run("app:1", "Never").await.exit_code(), Some(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_disk_has_no_room_for_goes_but_nothing_that_a_pod_needs() {
    let device = Device::new();
    fs::create_dir(device.path("stick"))
        .and_then(|()| fs::rename(device.forever(), device.path("stick/forever.wasm")))
        .expect("moved");
    let config = ImagesConfig {
        high_threshold_percent: 1,
        low_threshold_percent: 0,
        minimum_age: Duration::ZERO,
        gc_period: Duration::from_millis(20),
        ..ImagesConfig::default().with_source(device.path("stick"))
    };
    let names = |store: &ImageStore| {
        store.list().expect("a list").into_iter().flat_map(|image| image.names).collect::<Vec<_>>()
    };
    let node = device.node(config);
    // One pod runs, the other one can't yet: its image is missing beside the one that comes now.
    let notices = node.watch();
    let running = device.apply(&node, "forever", "IfNotPresent");
    device.apply_after(&node, "missing:1", "used:1");
    Seen::of(notices, running).until(Seen::is_running).await;
    import(&device, "used:1", 2);
    import(&device, "unused:1", 1);
    support::until(|| !names(&device.store()).contains(&"docker.io/library/unused:1".into())).await;
    assert_eq!(names(&device.store()), ["docker.io/library/forever:latest", "docker.io/library/used:1"]);
    let refused = device.store().remove("forever").expect_err("in use");
    assert!(refused.to_string().contains("in use"), "{refused}");
    node.shutdown().await.expect("in order");
    assert_eq!(device.store().prune().expect("collected").removed.len(), 2);
    assert_eq!(names(&device.store()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_image_is_the_trouble_of_its_own_pod() {
    let device = Device::new();
    import(&device, "good:1", 7);
    fs::write(device.path("script.wasm"), "#!/bin/sh").expect("written");
    fs::write(device.path("cut.wasm"), b"\0asm\x01\0\0\0\x01\x40\x01\x60").expect("written");
    fs::write(device.path("invalid.wasm"), b"\0asm\x01\0\0\0\x01\x01\xff").expect("written");
    fs::File::create(device.path("big.wasm")).and_then(|file| file.set_len(1 << 30)).expect("made");
    rustix::fs::mkfifoat(rustix::fs::CWD, device.path("pipe.wasm"), 0o600.into()).expect("made");
    let layout = Layout::new(&device.path("stick/wrong"));
    layout.add("1", &[Layer::Module("app.wasm", &exits(1))], "{}");
    fs::write(layout.blob_path(&layout.blob("application/wasm", &exits(1))), exits(2)).expect("changed");

    let node = device.node(ImagesConfig::default().with_source(device.path("stick")));
    let bad = [
        ("./script.wasm", "not a Wasm file"),
        ("./cut.wasm", "truncated"),
        ("./invalid.wasm", "invalid.wasm"),
        ("./big.wasm", "bigger than"),
        ("./pipe.wasm", "a pipe, not a file"),
        ("wrong:1", "has the digest"),
        ("./none.wasm", "none.wasm"),
    ];
    let mut waiting = Vec::new();
    for (image, words) in bad {
        let notices = node.watch();
        waiting.push((Seen::of(notices, device.apply(&node, image, "IfNotPresent")), words));
    }
    let notices = node.watch();
    let mut good = Seen::of(notices, device.apply(&node, "good:1", "IfNotPresent"));
    good.until(|seen| seen.exit_code() == Some(7)).await;
    for (mut seen, words) in waiting {
        seen.until(|seen| seen.waiting().0 == "ErrImagePull").await;
        assert!(seen.waiting().1.contains(words), "{words}: {seen:?}");
    }
    node.shutdown().await.expect("in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_pod_that_is_about_to_start_is_not_removed_by_hand_either() {
    let device = Device::new();
    import(&device, "late:1", 1);
    let node = device.node(ImagesConfig::default());
    let pod = device.apply_after(&node, "missing:1", "late:1");
    support::until(|| device.store().list().is_ok_and(|images| images[0].in_use)).await;
    assert!(device.store().remove("late:1").is_err());
    assert_eq!(device.store().prune().expect("collected").removed, []);
    node.delete(&pod.uid, Some(0));
    support::until(|| device.store().list().is_ok_and(|images| !images[0].in_use)).await;
    assert_eq!(device.store().prune().expect("collected").removed.len(), 1);
    node.shutdown().await.expect("in order");
}

/// The first thing that a node with a full disk says of itself: the reason of the event, and its message.
async fn first_remark(device: &Device) -> (&'static str, String) {
    let gc_period = Duration::from_millis(10);
    let full =
        ImagesConfig { gc_period, high_threshold_percent: 0, low_threshold_percent: 0, ..ImagesConfig::default() };
    let node = device.node(full);
    let mut notices = node.watch();
    let said = support::in_time("the node says something", async {
        loop {
            if let Notice::Node { reason, message, .. } = notices.recv().await.expect("the agent lives") {
                return (reason, message);
            }
        }
    });
    let said = said.await;
    node.shutdown().await.expect("in order");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_images_can_not_make_room_on_is_told() {
    let device = Device::new();
    import(&device, "young:1", 0);
    let (reason, message) = first_remark(&device).await;
    assert_eq!(reason, "FreeDiskSpaceFailed");
    let (begin, end) =
        ("Failed to garbage collect required amount of images. Attempted to free ", " bytes eligible to free.");
    assert!(message.starts_with(begin) && message.ends_with(end), "{message}");

    let device = Device::new();
    fs::create_dir(device.path("data")).expect("made");
    fs::write(device.path("data/images"), "no folder").expect("written");
    let (reason, message) = first_remark(&device).await;
    assert_eq!(reason, "ImageGCFailed");
    assert!(message.contains("data/images"), "{message}");
}
