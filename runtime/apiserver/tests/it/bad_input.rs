//! What clients get wrong: an answer that says so, never a lost connection.

use std::io::{Read, Write};

use serde_json::json;

use crate::client::{APPLY, JSON_PATCH, STRATEGIC};
use crate::server::{Server, pod};
use crate::until::within;

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn fields_that_are_unknown_or_repeated() {
    let server = Server::start().await;
    let client = server.client();
    let mut bogus = pod("web");
    bogus["spec"]["bogus"] = 1.into();
    bogus["spec"]["containers"][0]["livenesProbe"] = json!({});
    let (code, reason, message) = client.post(&format!("{PODS}?fieldValidation=Strict"), &bogus).await.error();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    let told = message.strip_prefix("Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: ");
    let mut told: Vec<&str> = told.unwrap_or(&message).split(", ").collect();
    told.sort_unstable();
    assert_eq!(told, ["unknown field \"spec.bogus\"", "unknown field \"spec.containers[0].livenesProbe\""]);
    let warned = client.post(&format!("{PODS}?fieldValidation=Warn&dryRun=All"), &bogus).await;
    assert_eq!(warned.code, 201);
    assert!(
        warned.warnings().contains(&"299 - \"unknown field \\\"spec.bogus\\\"\"".to_owned()),
        "{:?}",
        warned.warnings()
    );
    assert!(warned.json()["spec"]["bogus"].is_null());
    let ignored = client.post(&format!("{PODS}?fieldValidation=Ignore&dryRun=All"), &bogus).await;
    assert_eq!((ignored.code, ignored.warnings()), (201, vec![]));
    assert_eq!(client.post(&format!("{PODS}?fieldValidation=Maybe"), &pod("web")).await.error().0, 400);
    let twice = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "a": "2"}}"#;
    let path = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict";
    let (code, _, message) = client.send("POST", path, &[], twice).await.error();
    assert_eq!(code, 400);
    assert!(message.ends_with("strict decoding error: duplicate field \"data.a\""), "{message}");
    server.end().await;
}

#[tokio::test]
async fn fields_that_this_device_cannot_honour() {
    let server = Server::start().await;
    let client = server.client();
    let mut vain = pod("web");
    vain["spec"]["serviceAccountName"] = "robot".into();
    let taken = client.post(&format!("{PODS}?dryRun=All"), &vain).await;
    assert_eq!(taken.code, 201);
    assert!(
        taken.warnings().iter().any(|warning| warning.contains("spec.serviceAccountName")),
        "{:?}",
        taken.warnings()
    );
    let mut impossible = pod("web");
    impossible["spec"]["containers"][0]["volumeDevices"] = json!([{"name": "d", "devicePath": "/dev/x"}]);
    let (code, _, message) = client.post(PODS, &impossible).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("spec.containers[0].volumeDevices: Forbidden"), "{message}");
    server.end().await;
}

#[tokio::test]
async fn every_broken_rule_is_a_cause() {
    let server = Server::start().await;
    let client = server.client();
    let mut broken = pod("Web_");
    broken["metadata"]["labels"] = json!({});
    broken["spec"]["containers"] = json!([{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]);
    broken["spec"]["restartPolicy"] = "Sometimes".into();
    let answer = client.post(PODS, &broken).await;
    let (code, reason, message) = answer.error();
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert!(message.starts_with("Pod \"Web_\" is invalid: [metadata.name: Invalid value: "), "{message}");
    let details = answer.json()["details"].clone();
    assert_eq!((&details["kind"], &details["name"]), (&json!("Pod"), &json!("Web_")));
    let causes = details["causes"].as_array().expect("causes").clone();
    let told: Vec<(&str, &str)> = causes
        .iter()
        .map(|cause| (cause["field"].as_str().unwrap_or(""), cause["reason"].as_str().unwrap_or("")))
        .collect();
    let expected = [
        ("metadata.name", "FieldValueInvalid"),
        ("spec.containers[1].name", "FieldValueDuplicate"),
        ("spec.restartPolicy", "FieldValueNotSupported"),
    ];
    assert_eq!(told, expected);
    server.end().await;
}

#[tokio::test]
async fn bodies_that_are_nothing() {
    let server = Server::start().await;
    let client = server.client();
    for (body, kind, code) in [
        ("", "application/json", 400),
        ("{", "application/json", 400),
        ("[]", "application/json", 400),
        ("null", "application/json", 400),
        ("{}", "application/json", 400),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Node\"}", "application/json", 400),
        ("{\"apiVersion\": \"v2\", \"kind\": \"Pod\"}", "application/json", 400),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": 5}", "application/json", 400),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": []}", "application/json", 400),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"spec\": []}", "application/json", 400),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"spec\": {\"containers\": {}}}", "application/json", 400),
        ("{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}", "application/json", 422),
        ("apiVersion: v1\nkind: Pod\n", "application/yaml", 422),
        ("a: [", "application/yaml", 400),
        ("\u{1}", "application/vnd.kubernetes.protobuf", 400),
        ("k8s\0", "application/vnd.kubernetes.protobuf", 415),
        ("<pod/>", "application/xml", 415),
    ] {
        let answer = client.send("POST", PODS, &[("content-type", kind)], body).await;
        assert_eq!(answer.error().0, code, "{body}: {:?}", answer.bytes);
    }
    let deep = "[".repeat(200_000);
    assert_eq!(client.send("POST", PODS, &[], deep).await.error().0, 400);
    let big = format!("{{\"x\": \"{}\"}}", "y".repeat(4 << 20));
    assert_eq!(client.send("POST", PODS, &[], big).await.error().0, 413);
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    map["data"]["a"] = "x".repeat(2 << 20).into();
    let (code, _, message) = client.post("/api/v1/namespaces/default/configmaps", &map).await.error();
    assert_eq!(code, 422);
    assert!(message.contains("Too long"), "{message}");
    server.end().await;
}

#[tokio::test]
async fn paths_methods_and_forms_that_are_not_there() {
    let server = Server::start().await;
    let client = server.client();
    for (method, path, code) in [
        ("GET", "/", 404),
        ("GET", "/api/v1/bogus", 404),
        ("GET", "/apis/apps/v1/deployments", 404),
        ("GET", "/api/v1/namespaces/default/pods/web/portforward", 404),
        ("GET", "/api/v1/namespaces/default/pods/web/log", 404),
        ("GET", "/api/v1/namespaces/default/pods/%2e%2e%2fetc", 404),
        ("POST", "/api/v1/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/web", 405),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("PATCH", "/api/v1/namespaces/default/pods/web/log", 405),
        ("GET", "/api/v1/namespaces/default/pods/web/eviction", 405),
        ("OPTIONS", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/version", 405),
        ("GET", "/api/v1/namespaces/default/pods?limit=-1", 400),
        ("GET", "/api/v1/namespaces/default/pods?limit=99999999999999999999", 400),
    ] {
        assert_eq!(client.send(method, path, &[], "").await.error().0, code, "{method} {path}");
    }
    assert_eq!(client.get_as(PODS, "text/html").await.error().0, 406);
    assert_eq!(client.get_as(PODS, "application/vnd.kubernetes.protobuf").await.error().0, 406);
    let (code, _, message) = client.post("/api/v1/namespaces/nowhere/pods", &pod("web")).await.error();
    assert_eq!((code, message.as_str()), (404, "namespaces \"nowhere\" not found"));
    let mut elsewhere = pod("web");
    elsewhere["metadata"]["namespace"] = "other".into();
    assert_eq!(client.post(PODS, &elsewhere).await.error().0, 400);
    server.end().await;
}

/// Most clients send all of a request before they read: one whose body nobody wants must be able to.
#[tokio::test]
async fn who_is_refused_before_the_body_was_read_hears_why() {
    let server = Server::start().await;
    for (method, path, host, code) in [
        ("DELETE", "/version", "localhost", "405"),
        ("POST", "/api/v1/bogus", "localhost", "404"),
        ("PUT", "/api/v1/namespaces/default/pods", "localhost", "405"),
        ("POST", PODS, "localhost", "413"),
        ("POST", PODS, "evil.example", "403"),
    ] {
        let address = server.address;
        let asking = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address)?;
            // More than the sockets hold, and than the server reads of a body that it wants.
            let body = vec![b' '; 5 << 20];
            let length = body.len();
            write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n")?;
            stream.write_all(&body)?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer)?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
        });
        let answer = within("an answer", asking).await.expect("no panic");
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert_eq!(answer, format!("HTTP/1.1 {code}"), "{method} {path}");
    }
    server.end().await;
}

#[tokio::test]
async fn patches_that_do_not_apply() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &pod("web")).await.ok();
    let web = format!("{PODS}/web");
    for (kind, patch, code) in [
        (JSON_PATCH, json!({}), 400),
        (JSON_PATCH, json!([{"op": "remove", "path": "/bogus"}]), 422),
        (JSON_PATCH, json!([{"op": "replace", "path": "", "value": 5}]), 400),
        (JSON_PATCH, json!([{"op": "replace", "path": "/metadata", "value": 5}]), 400),
        (JSON_PATCH, json!([{"op": "remove", "path": "/kind"}]), 400),
        (STRATEGIC, json!([]), 400),
        (STRATEGIC, json!({"spec": {"containers": [{"image": "nameless"}]}}), 400),
        (STRATEGIC, json!({"kind": "Node"}), 400),
        (STRATEGIC, json!({"spec": {"containers": [{"name": "main", "image": 5}]}}), 400),
        (STRATEGIC, json!({"metadata": {"name": "other"}}), 400),
        (APPLY, json!(5), 400),
    ] {
        let answer = client.patch(&format!("{web}?fieldManager=m"), kind, &patch).await;
        assert_eq!(answer.error().0, code, "{kind} {patch}: {:?}", answer.bytes);
    }
    let path = format!("{PODS}/none");
    assert_eq!(client.patch(&path, STRATEGIC, &json!({})).await.error().0, 404);
    server.end().await;
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let server = Server::start().await;
    let client = server.client();
    for (host, origin, code) in [
        ("localhost:8080", None, 200),
        ("127.0.0.1", None, 200),
        ("[::1]:80", None, 200),
        ("evil.example", None, 403),
        ("127.0.0.1:80", Some("http://127.0.0.1:80"), 200),
        ("127.0.0.1:80", Some("http://evil.example"), 403),
        ("127.0.0.1:80", Some("null"), 403),
    ] {
        let mut request = hyper::Request::builder().uri(PODS).header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let answer = client.open(request.body(Default::default()).expect("a request")).await;
        assert_eq!(answer.status(), code, "{host} {origin:?}");
    }
    let elsewhere = husk_apiserver::Listener::tcp("0.0.0.0:0".parse().expect("an address")).await;
    assert_eq!(elsewhere.expect_err("no loopback").kind(), std::io::ErrorKind::InvalidInput);
    server.end().await;
}
