//! HTTP probes and hooks: versions, TLS, redirects, names.

use hyper::Version;

use crate::node::Node;
use crate::servers::{Server, Speaks};

/// A readiness probe that is repeated every second.
fn probe(action: &str) -> String {
    format!("readinessProbe: {{periodSeconds: 1, {action}}}")
}

const HTTP2: &str = ", protocol: HTTP2";
const HTTPS: &str = ", scheme: HTTPS";

// spec: PROBE-11
#[tokio::test(flavor = "multi_thread")]
async fn http2_is_spoken_in_the_clear_where_it_is_asked_for() {
    let (new, old) = (Server::start(Speaks::Http2).await, Server::start(Speaks::Http1).await);
    let own = ", protocol: HTTP2, httpHeaders: [{name: Host, value: me}, {name: X-A, value: '1'}, \
               {name: X-A, value: '2'}, {name: Accept, value: ''}, {name: Connection, value: close}]";
    let mut node = Node::start();
    let containers = [
        ("well", probe(&new.get("/204", HTTP2))),
        ("ill", probe(&new.get("/503", HTTP2))),
        ("own", probe(&new.get("/299", own))),
        ("hop", probe(&new.get("/to/302//201", HTTP2))),
        ("old", probe(&old.get("/200", HTTP2))),
        ("not-asked-for", probe(&new.get("/200", ""))),
    ];
    let pod = node.apply("http2", &containers);
    for well in ["well", "own", "hop"] {
        node.ready(&pod, well).await;
        assert!(!node.had_event(&pod, well, "Unhealthy") && !node.had_event(&pod, well, "ProbeWarning"));
    }
    let ill = node.event(&pod, "ill", "Unhealthy").await;
    assert_eq!(ill, "Readiness probe failed: HTTP probe failed with statuscode: 503");
    for unwell in ["old", "not-asked-for"] {
        let message = node.event(&pod, unwell, "Unhealthy").await;
        assert!(message.starts_with("Readiness probe failed: Get \"http://127.0.0.1:"), "{message}");
    }
    let seen = new.seen();
    assert!(seen.iter().all(|request| request.version == Version::HTTP_2), "{seen:?}");
    let of = |path: &str| seen.iter().find(|request| request.path == path).expect("asked for").clone();
    let plain = of("/204");
    assert_eq!(plain.host, new.address.to_string());
    let has = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert!(plain.headers.contains(&has("accept", "*/*")));
    assert!(plain.headers.iter().any(|(name, value)| name == "user-agent" && value.starts_with("kube-probe/")));
    let own = of("/299");
    assert_eq!(own.host, "me");
    assert!(own.headers.contains(&has("x-a", "1")) && own.headers.contains(&has("x-a", "2")));
    assert!(own.headers.iter().all(|(name, _)| name != "accept" && name != "host" && name != "connection"));
    node.shutdown().await;
}

// spec: PROBE-09
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tls_chooses_the_version() {
    let both = Server::start(Speaks::Tls(&["http/1.1", "h2"])).await;
    let old = Server::start(Speaks::Tls(&["http/1.1"])).await;
    let silent = Server::start(Speaks::Tls(&[])).await;
    let mut node = Node::start();
    let hook = format!("lifecycle: {{postStart: {{{}}}}}", both.get("/500", HTTPS));
    let containers = [
        ("both", format!("{}, {hook}", probe(&both.get("/200", HTTPS)))),
        ("old", probe(&old.get("/200", HTTPS))),
        ("silent", probe(&silent.get("/200", HTTPS))),
    ];
    let pod = node.apply("tls", &containers);
    for (name, _) in &containers {
        node.ready(&pod, name).await;
    }
    // Which of the server's the client likes best is up to the server; rustls takes the first of its own.
    for (server, version) in [(&both, Version::HTTP_11), (&old, Version::HTTP_11), (&silent, Version::HTTP_11)] {
        assert!(server.seen().iter().all(|request| request.version == version), "{:?}", server.seen());
    }
    let new = Server::start(Speaks::Tls(&["h2", "http/1.1"])).await;
    let hook = format!("lifecycle: {{postStart: {{{}}}}}", new.get("/500", HTTPS));
    let pod = node.apply("tls-http2", &[("new", format!("{}, {hook}", probe(&new.get("/200", HTTPS))))]);
    node.ready(&pod, "new").await;
    assert!(new.seen().iter().all(|request| request.version == Version::HTTP_2), "{:?}", new.seen());
    node.shutdown().await;
}

// spec: HOOK-03
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_delivered_whatever_is_answered() {
    let server = Server::start(Speaks::Http2).await;
    let mut node = Node::start();
    let hook = |path: &str| format!("lifecycle: {{postStart: {{{}}}}}", server.get(path, HTTP2));
    let paths = ["/404", "/500", "/to/302/http://elsewhere.example/"];
    let names = ["missing", "broken", "away"];
    let containers: Vec<_> = names.into_iter().zip(paths.map(hook)).collect();
    let pod = node.apply("hooks", &containers);
    for name in names {
        node.ready(&pod, name).await;
        assert!(!node.had_event(&pod, name, "FailedPostStartHook"));
    }
    let mut asked: Vec<_> = server.seen().into_iter().map(|request| request.path).collect();
    asked.sort();
    assert_eq!(asked, ["/404", "/500", "/to/302/http://elsewhere.example/"]);
    let agent = |(name, value): &(String, String)| name == "user-agent" && value.starts_with("kube-lifecycle/");
    assert!(server.seen().iter().all(|request| request.headers.iter().any(agent)));
    node.shutdown().await;
}

// spec: PROBE-10
#[tokio::test(flavor = "multi_thread")]
async fn redirects_lead_to_other_ports_and_schemes_but_to_no_other_host() {
    let (plain, secure) = (Server::start(Speaks::Http1).await, Server::start(Speaks::Tls(&["h2"])).await);
    let mut node = Node::start();
    let there = format!("/to/307/https://{}/200", secure.address);
    let ill = format!("/to/308/https://{}/500", secure.address);
    let by_name = format!("/to/301/http://localhost:{}/200", plain.address.port());
    let nowhere = format!("/to/301/http://{}/200", crate::tcp::closed_port().await);
    let containers = [
        ("there", probe(&plain.get(&there, ""))),
        ("ill", probe(&plain.get(&ill, ""))),
        ("by-name", probe(&plain.get(&by_name, ""))),
        ("nowhere", probe(&plain.get(&nowhere, ""))),
        ("no-location", probe(&plain.get("/302", ""))),
    ];
    let pod = node.apply("redirects", &containers);
    node.ready(&pod, "there").await;
    assert!(!node.had_event(&pod, "there", "ProbeWarning"));
    assert!(node.event(&pod, "ill", "Unhealthy").await.ends_with("statuscode: 500"));
    assert!(node.event(&pod, "nowhere", "Unhealthy").await.ends_with("connect: connection refused"));
    // The same machine, but that is not for a probe to know.
    for warned in ["by-name", "no-location"] {
        let message = node.event(&pod, warned, "ProbeWarning").await;
        assert_eq!(message, "Readiness probe warning: Probe terminated redirects, Response body: said");
        node.ready(&pod, warned).await;
    }
    node.shutdown().await;
}

// spec: PROBE-09
#[tokio::test(flavor = "multi_thread")]
async fn a_host_and_a_port_may_be_named() {
    let server = Server::start(Speaks::Http1).await;
    let port = server.address.port();
    let ports = format!("ports: [{{name: web, containerPort: {port}}}]");
    let mut node = Node::start();
    let get = |host: &str, port: &str| {
        let get = format!("httpGet: {{host: {host}, port: {port}, path: /200}}");
        format!("{ports}, {}", probe(&get))
    };
    let containers = [
        ("named", get("localhost", "web")),
        ("unknown-host", get("nowhere.invalid", "web")),
        ("unknown-port", get("127.0.0.1", "ftp")),
    ];
    let pod = node.apply("names", &containers);
    node.ready(&pod, "named").await;
    assert!(server.seen().iter().all(|request| request.host == format!("localhost:{port}")), "{:?}", server.seen());
    let message = node.event(&pod, "unknown-host", "Unhealthy").await;
    assert!(message.contains(": dial tcp: lookup nowhere.invalid: "), "{message}");
    // What can't be asked says nothing about the container.
    let message = node.event(&pod, "unknown-port", "Unhealthy").await;
    let beginning = "Readiness probe errored and resulted in unknown state: ";
    assert!(message.starts_with(beginning) && message.contains("`ftp`"), "{message}");
    node.shutdown().await;
}
