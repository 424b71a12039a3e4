//! Pods from files, as the API shows them (META-12).

use serde_json::json;

use crate::world::{World, shell};

pub(crate) const MANIFEST: &str = "apiVersion: v1
kind: Pod
metadata: {name: beacon}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: busybox, command: [sh, -c, sleep 1000]}
";

pub(crate) fn write(world: &World, name: &str, text: &str) {
    let hidden = world.path("manifests").join(format!(".{name}"));
    std::fs::write(&hidden, text).expect("written");
    std::fs::rename(hidden, world.path("manifests").join(name)).expect("renamed");
}

// spec: META-12
#[test]
fn a_file_is_a_pod_with_a_mirror_that_comes_again() {
    let mut world = World::new(&[]);
    write(&world, "beacon.yaml", MANIFEST);
    let first = world.running("beacon-edge-7");
    assert_eq!(first["metadata"]["annotations"]["kubernetes.io/config.source"], "file");
    world.delete("beacon-edge-7");
    let again = world.running("beacon-edge-7");
    let started = |pod: &serde_json::Value| pod["status"]["containerStatuses"][0]["containerID"].clone();
    assert_eq!(started(&first), started(&again), "the pod itself was left alone");
    std::fs::remove_file(world.path("manifests").join("beacon.yaml")).expect("removed");
    world.gone("beacon-edge-7");
}

// spec: META-12, NODE-05
#[test]
fn pods_from_files_go_on_after_a_crash_and_end_if_their_file_went_meanwhile() {
    let mut world = World::new(&[]);
    write(&world, "stays.yaml", &MANIFEST.replace("beacon", "stays"));
    write(&world, "goes.yaml", &MANIFEST.replace("beacon", "goes"));
    let before = world.running("stays-edge-7");
    world.running("goes-edge-7");
    // Its mirror is on the disk once it was answered.
    world.kill();
    std::fs::remove_file(world.path("manifests").join("goes.yaml")).expect("removed");
    world.start();
    let after = world.running("stays-edge-7");
    for field in ["uid", "creationTimestamp"] {
        assert_eq!(before["metadata"][field], after["metadata"][field]);
    }
    world.gone("goes-edge-7");
}

// spec: META-12, NODE-05
#[test]
fn images_beside_a_manifest_are_found_after_a_crash_as_well() {
    let mut world = World::new(&[]);
    let folder = world.path("manifests");
    let guest = r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#;
    std::fs::write(folder.join("app.wat"), guest).expect("written");
    std::fs::create_dir(folder.join("site")).expect("a folder");
    std::fs::write(folder.join("site/page"), "beside\n").expect("written");
    let containers = "  - {name: app, image: ./app.wat}
  - name: reader
    image: busybox
    command: [sh, -c, cat /site/page && sleep 1000]
    volumeMounts: [{name: site, mountPath: /site}]
  volumes:
  - {name: site, image: {reference: ./site}}
";
    let (head, _) = MANIFEST.split_once("  - {name: app").expect("a container");
    write(&world, "beacon.yaml", &format!("{head}{containers}"));
    let before = world.running("beacon-edge-7");
    world.kill();
    world.start();
    let after = world.running("beacon-edge-7");
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    for status in after["status"]["containerStatuses"].as_array().expect("containers") {
        assert_eq!(status["restartCount"], 1, "{after}");
    }
}

// spec: META-12
#[test]
fn a_file_that_is_edited_into_something_invalid_is_told_on_its_pod_which_goes_on() {
    let mut world = World::new(&[]);
    write(&world, "beacon.yaml", MANIFEST);
    let first = world.running("beacon-edge-7");
    write(&world, "beacon.yaml", &MANIFEST.replace("image:", "imago:"));
    let told = world.event("beacon-edge-7", "FailedValidation", "Error validating pod beacon-edge-7 from file");
    assert!(told.contains("beacon.yaml") && told.contains("imago"), "{told}");
    let mut describe = crate::husk::command();
    describe.args(["describe", "pod", "beacon-edge-7"]).env("HUSK_SOCKET", world.path("husk.sock"));
    let described = describe.output().expect("husk starts");
    let described = String::from_utf8_lossy(&described.stdout).into_owned();
    assert!(described.contains("FailedValidation") && described.contains("imago"), "{described}");
    // What is no pod's file is the node's business, all of it at once.
    for n in 0..50 {
        write(&world, &format!("junk-{n:02}.yaml"), "this is no manifest\n");
    }
    world.event("edge-7", "FailedValidation", "Errors in 50 files of static pods, ignoring; the first: ");
    let events = world.get("/api/v1/namespaces/default/events").expect("an answer").ok();
    let is_it = |event: &&serde_json::Value| event["reason"] == "FailedValidation";
    let events = events["items"].as_array().expect("a list").iter().filter(is_it).count();
    assert!(events < 12, "{events} events");
    let runs = world.running("beacon-edge-7");
    assert_eq!(first["status"]["containerStatuses"], runs["status"]["containerStatuses"]);
    // Mended, it is another pod.
    write(&world, "beacon.yaml", &MANIFEST.replace("1000", "2000"));
    let uid = first["metadata"]["uid"].clone();
    world.pod_until("beacon-edge-7", |pod| pod["status"]["phase"] == "Running" && pod["metadata"]["uid"] != uid);
}

// spec: META-12
#[test]
fn a_file_that_can_not_be_read_when_the_agent_begins_again_ends_no_pod() {
    let mut world = World::new(&[]);
    for name in ["broken", "gone"] {
        write(&world, &format!("{name}.yaml"), &MANIFEST.replace("beacon", name));
    }
    let uid = |pod: &serde_json::Value| pod["metadata"]["uid"].clone();
    let [broken, gone] = ["broken-edge-7", "gone-edge-7"].map(|name| uid(&world.running(name)));
    world.kill();
    // As when the disk of the manifests comes late.
    let (folder, away) = (world.path("manifests"), world.path("away"));
    std::fs::rename(&folder, &away).expect("renamed");
    world.start();
    world.event("edge-7", "FailedValidation", "can't list the folder of static pods");
    assert_eq!(uid(&world.running("broken-edge-7")), broken);
    assert_eq!(uid(&world.running("gone-edge-7")), gone);
    world.kill();
    std::fs::rename(&away, &folder).expect("renamed");
    write(&world, "broken.yaml", "kind: Pod\nspec: {");
    std::fs::remove_file(folder.join("gone.yaml")).expect("removed");
    world.start();
    world.gone("gone-edge-7");
    world.event("broken-edge-7", "FailedValidation", "broken.yaml");
    assert_eq!(uid(&world.running("broken-edge-7")), broken);
}

// spec: META-12
#[test]
fn a_file_that_gets_another_name_is_known_by_it() {
    let mut world = World::new(&[]);
    write(&world, "old.yaml", MANIFEST);
    let first = world.running("beacon-edge-7");
    let [old, new] = ["old.yaml", "new.yaml"].map(|name| world.path("manifests").join(name));
    std::fs::rename(old, new).expect("renamed");
    let moved =
        world.pod_until("beacon-edge-7", |pod| pod["metadata"]["annotations"]["husk.dev/config.file"] == "new.yaml");
    for field in ["uid", "creationTimestamp", "generation"] {
        assert_eq!(moved["metadata"][field], first["metadata"][field]);
    }
    assert_eq!(moved["status"]["containerStatuses"], first["status"]["containerStatuses"]);
    // It is there, whatever is in it when the agent begins again.
    write(&world, "new.yaml", "kind: Pod\nspec: {");
    world.kill();
    world.start();
    world.event("beacon-edge-7", "FailedValidation", "new.yaml");
    assert_eq!(world.running("beacon-edge-7")["metadata"]["uid"], first["metadata"]["uid"]);
}

// spec: NODE-04
#[test]
fn a_state_that_is_garbage_is_set_aside_and_pods_from_files_run() {
    let mut world = World::new(&[]);
    write(&world, "beacon.yaml", MANIFEST);
    world.create("web", &shell("sleep 1000"));
    world.running("web");
    world.running("beacon-edge-7");
    world.kill();
    std::fs::write(world.path("data/state.redb"), [0x5a; 70_000]).expect("written");
    world.start();
    world.running("beacon-edge-7");
    assert!(world.pod("web").is_none());
    assert!(world.log().contains("state.redb.corrupt-1"), "{}", world.log());
    assert!(world.path("data/state.redb.corrupt-1").exists());
    assert_eq!(
        world
            .send(
                "POST",
                "/api/v1/namespaces/default/configmaps",
                &json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
            )
            .code,
        201
    );
}

// spec: NODE-04
#[test]
fn a_state_that_is_garbage_costs_no_pod_from_a_file_its_volumes() {
    let mut world = World::new(&[]);
    let script = "for v in disk memory; do echo $v >> /$v/kept; cat /$v/kept; done; sleep 1000";
    let with_volumes =
        MANIFEST.replace("sh, -c, sleep 1000]", &format!("sh, -c, {script:?}]")).replace("busybox,", MOUNTS);
    write(&world, "beacon.yaml", &format!("{with_volumes}{VOLUMES}"));
    world.create("web", &shell("sleep 1000"));
    let (web, beacon) = (world.running("web"), world.running("beacon-edge-7"));
    let says = |world: &mut World, wanted: &str| {
        world.until(wanted, |world| world.written_by("beacon-edge-7", "app").filter(|log| log == wanted));
    };
    says(&mut world, "disk\nmemory\n");
    world.kill();
    // The disk of the manifests comes late as well, and the agent is started again before it does.
    let (folder, away) = (world.path("manifests"), world.path("away"));
    std::fs::rename(&folder, &away).expect("renamed");
    std::fs::write(world.path("data/state.redb"), [0x5a; 70_000]).expect("written");
    for _ in 0..2 {
        world.start();
        world.event("edge-7", "FailedValidation", "can't list the folder of static pods");
        world.kill();
    }
    world.start();
    std::fs::rename(&away, &folder).expect("renamed");
    let after = world.running("beacon-edge-7");
    assert_eq!(beacon["metadata"]["uid"], after["metadata"]["uid"]);
    says(&mut world, "disk\ndisk\nmemory\nmemory\n");
    // Of what nobody names nothing stays.
    let left = world.path("data/pods").join(web["metadata"]["uid"].as_str().expect("a uid"));
    world.until("it is removed", |_| (!left.exists()).then_some(()));
}

const MOUNTS: &str = "busybox, volumeMounts: [{name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}],";
const VOLUMES: &str = "  volumes:
  - {name: disk, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
";
