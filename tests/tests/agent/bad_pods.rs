//! Pods that can't run, and files that are none: each is told where it belongs, and the others run.

use serde_json::json;

use crate::static_pods::{MANIFEST, write};
use crate::world::{World, shell};

#[test]
fn a_module_that_is_none_is_the_fault_of_its_pod_alone() {
    let mut world = World::without_agent(&[]);
    let junk = world.path("junk.wasm");
    std::fs::write(&junk, b"\x7fELF and so on, which is no Wasm").expect("written");
    // Half of a module: what is left of it after a power cut, or a copy that went wrong.
    let torn = world.path("torn.wasm");
    std::fs::write(&torn, b"\0asm\x01\0\0\0\x01\x7f\x60").expect("written");
    world.start();
    for (name, image) in [("junk", &junk), ("torn", &torn)] {
        let mut spec = shell("true");
        spec["containers"][0]["image"] = image.display().to_string().into();
        world.create(name, &spec);
    }
    world.create("web", &shell("sleep 100000"));
    world.running("web");
    for name in ["junk", "torn"] {
        world.event(name, "Failed", &format!("{name}.wasm"));
        let pod = world.pod_until(name, |pod| !pod["status"]["containerStatuses"][0]["state"]["waiting"].is_null());
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        let reason = waiting["reason"].as_str().unwrap_or_default();
        assert!(["ErrImagePull", "ImagePullBackOff", "CreateContainerError"].contains(&reason), "{waiting}");
        assert_eq!(pod["status"]["phase"], "Pending");
    }
    // Put right where it is, it runs.
    std::fs::write(&torn, r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#)
        .expect("written");
    world.running("torn");
}

#[test]
fn a_host_path_on_a_missing_disk_keeps_its_pod_waiting_until_it_appears() {
    let mut world = World::new(&[]);
    let missing = world.path("usb");
    let mut spec = shell("cat /usb/greeting; sleep 100000");
    spec["volumes"] = json!([{"name": "usb", "hostPath": {"path": missing, "type": "Directory"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "usb", "mountPath": "/usb"}]);
    world.create("reader", &spec);
    world.create("web", &shell("sleep 100000"));
    let told = world.event("reader", "FailedMount", "hostPath type check failed");
    assert!(told.contains(&missing.display().to_string()), "{told}");
    world.running("web");
    std::fs::create_dir(&missing).expect("a folder");
    std::fs::write(missing.join("greeting"), "hello\n").expect("written");
    world.running("reader");
    let log = world.until("a line", |world| {
        Some(world.get("/api/v1/namespaces/default/pods/reader/log")?.body).filter(|log| !log.is_empty())
    });
    assert_eq!(log, "hello\n");
}

// spec: META-12
#[test]
fn ten_thousand_junk_files_keep_no_pod_from_running() {
    let mut world = World::without_agent(&[]);
    let junk: [&[u8]; 8] = [
        b"",
        b"\x00\xff\xfe\x80 binary",
        b"{{{{[[[[",
        b"just a line",
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: Not_Valid}\nspec: {containers: []}\n",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{nam: a, imag: b}], unknown: 1}\n",
        b"- 1\n- 2\n--- \n: :\n",
    ];
    let manifests = world.path("manifests");
    for n in 0..10_000 {
        std::fs::write(manifests.join(format!("junk-{n}.yaml")), junk[n % junk.len()]).expect("written");
    }
    write(&world, "beacon.yaml", MANIFEST);
    write(&world, "zebra.yaml", &MANIFEST.replace("beacon", "zebra"));
    world.start();
    world.running("beacon-edge-7");
    world.running("zebra-edge-7");
    world.create("web", &shell("sleep 100000"));
    world.running("web");
    let lines = world.log().lines().count();
    assert!(lines < 200, "{lines} lines:\n{}", world.log());
    let memory = world.peak_memory();
    assert!(memory < 200 << 20, "{memory} bytes");
    // Changes are still seen, and told.
    std::fs::write(manifests.join("junk-1.yaml"), MANIFEST.replace("beacon", "late")).expect("written");
    world.running("late-edge-7");
    std::fs::remove_file(manifests.join("beacon.yaml")).expect("removed");
    world.gone("beacon-edge-7");
    assert_eq!(world.end(), Some(0), "{}", world.log());
}
