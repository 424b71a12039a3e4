//! Requests of clients that are mistaken or mean no good.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use crate::husk::{BAD_INPUT, FAILED, command};
use crate::world::{PODS, World, shell};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GIGABYTE: u64 = 1 << 30;

/// Sends a ConfigMap as long as that, in one piece or in chunks. The first line of the answer, if one can be had.
fn send_long(world: &World, chunked: bool) -> String {
    let mut stream = UnixStream::connect(world.path("husk.sock")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let length = if chunked { "Transfer-Encoding: chunked".into() } else { format!("Content-Length: {GIGABYTE}") };
    let head =
        format!("POST {CONFIG_MAPS} HTTP/1.1\r\nHost: husk\r\nContent-Type: application/json\r\n{length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the head is taken");
    let mut piece = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"long"},"data":{"a":""#.to_vec();
    let mut sent = 0;
    while sent < GIGABYTE {
        piece.resize(1 << 16, b'x');
        let framed = match chunked {
            true => [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat(),
            false => piece.clone(),
        };
        // Whoever has said no needs not listen.
        if stream.write_all(&framed).is_err() {
            break;
        }
        sent += piece.len() as u64;
        piece.clear();
    }
    assert!(sent < GIGABYTE / 4, "it listened to {sent} bytes");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_config_map_of_a_gigabyte_is_refused_and_costs_nothing() {
    let mut world = World::new(&[]);
    world.create("web", &shell("sleep 100000"));
    world.running("web");
    let before = world.peak_memory();
    for chunked in [false, true] {
        let answer = send_long(&world, chunked);
        assert!(answer.contains(" 413 "), "{answer:?}");
    }
    let long = world.path("manifests/long.yaml");
    let file = std::fs::File::create(&long).expect("a file");
    file.set_len(GIGABYTE).expect("a hole");
    world.until("the file is told", |world| world.log().contains("long.yaml").then_some(()));
    let mut apply = command();
    apply.args(["apply", "-f"]).arg(&long).arg("--socket").arg(world.path("husk.sock"));
    let applied = apply.output().expect("husk starts");
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(matches!(applied.status.code(), Some(BAD_INPUT | FAILED)), "{said}");
    assert!(said.contains("long.yaml") && said.contains("longer than"), "{said}");
    let more = world.peak_memory() - before;
    assert!(more < 64 << 20, "{more} bytes more");
    world.running("web");
}

#[test]
fn names_lead_nowhere_else() {
    let mut world = World::new(&[]);
    let long = "x".repeat(70_000);
    let names = ["../x", "..", ".", "a/../../x", "/etc/x", "a\0b", "-", "A", "a b", "ä", &long[..300], &long[..60_000]];
    for name in names {
        for (path, object) in [
            (PODS, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": shell("true")})),
            (CONFIG_MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})),
            (
                CONFIG_MAPS,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {name: "x"}}),
            ),
            ("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})),
        ] {
            // Keys of a ConfigMap may be more than names may.
            let is_key = !object["data"].is_null() && ["-", "A"].contains(&name);
            let answer = world.send("POST", path, &object);
            let expected: &[u16] = if is_key { &[201, 409] } else { &[400, 422] };
            assert!(expected.contains(&answer.code), "{path} {name:?}: {answer:?}");
        }
        let mut spec = shell("true");
        spec["volumes"] = json!([{"name": name, "emptyDir": {}}]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "volumes"}, "spec": spec});
        if name != "-" {
            assert_eq!(world.send("POST", PODS, &pod).code, 422, "{name:?}");
        }
    }
    for path in ["..%2f..%2fetc", "%2e%2e", "%2e%2e%2fx", "a%00b", "%00", "%ff", "%", "%2", "..", &long[..60_000]] {
        for (method, body) in [("GET", None), ("DELETE", None), ("PUT", Some(())), ("PATCH", Some(()))] {
            let body = body.map(|()| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}));
            let path = format!("{CONFIG_MAPS}/{path}");
            let answer = crate::client::ask(&world.path("husk.sock"), method, &path, body.as_ref()).expect("an answer");
            assert!((400..500).contains(&answer.code), "{method} {path}: {answer:?}");
        }
    }
    let log = world.get(&format!("{PODS}/..%2f..%2fstate/log?container=..%2fx")).expect("an answer");
    assert_eq!(log.code, 404);
    // A client has no say in what names folders.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": shell("sleep 100000"),
        "metadata": {"name": "web", "uid": "../../../escaped"},
    });
    world.send("POST", PODS, &pod).ok();
    let pod = world.running("web");
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    assert!(!uid.contains('/'), "{uid}");
    assert!(!world.path("escaped").exists() && world.data.join("pods").join(uid).is_dir());
}
