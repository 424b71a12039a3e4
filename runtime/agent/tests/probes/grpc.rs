//! gRPC probes, which ask the pod's own address: so the servers of this test are there.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tonic_health::ServingStatus;

use crate::node::Node;
use crate::servers::{HealthService, Speaks};

const WELL: u16 = 50_051;
const TLS: u16 = 50_052;
const OLD: u16 = 50_053;
const SILENT: u16 = 50_054;
const SLOW: u16 = 50_055;
const NOBODY: u16 = 50_056;
const UNDECIDED: u16 = 50_057;
const LATE: u16 = 50_058;

fn probe(action: &str) -> String {
    format!("readinessProbe: {{periodSeconds: 1, grpc: {{{action}}}}}")
}

// spec: PROBE-12
#[tokio::test(flavor = "multi_thread")]
async fn a_health_service_is_asked_for_one_of_its_services_or_all() {
    let mut node = Node::start();
    let containers = [
        ("whole", probe(&format!("port: {WELL}"))),
        ("plain", probe(&format!("port: {WELL}, mode: Plaintext"))),
        ("part", probe(&format!("port: {WELL}, service: part"))),
        ("ill", probe(&format!("port: {WELL}, service: ill"))),
        ("missing", probe(&format!("port: {WELL}, service: missing"))),
        ("nobody", probe(&format!("port: {NOBODY}"))),
        ("tls", probe(&format!("port: {TLS}, mode: TLS"))),
        ("needs-tls", probe(&format!("port: {TLS}"))),
        ("has-no-tls", probe(&format!("port: {WELL}, mode: TLS"))),
        ("says-no-http2", probe(&format!("port: {UNDECIDED}, mode: TLS"))),
    ];
    let pod = node.apply("grpc", &containers);
    let ip = node.address(&pod).await;
    let at = |port: u16| SocketAddr::from((ip, port));
    let (_well, reporter) = HealthService::start(at(WELL), Speaks::Http2).await;
    reporter.set_service_status("part", ServingStatus::Serving).await;
    reporter.set_service_status("ill", ServingStatus::NotServing).await;
    let (_tls, _) = HealthService::start(at(TLS), Speaks::Tls(&["h2"])).await;
    let (_undecided, _) = HealthService::start(at(UNDECIDED), Speaks::Tls(&[])).await;
    for well in ["whole", "plain", "part", "tls"] {
        node.ready(&pod, well).await;
    }
    // The first probes may have come before the servers.
    let cant_connect = |port: u16| {
        format!(
            "Readiness probe failed: timeout: failed to connect service \"{}\" within 1s: context deadline exceeded",
            at(port)
        )
    };
    for (name, port) in [("nobody", NOBODY), ("needs-tls", TLS), ("has-no-tls", WELL), ("says-no-http2", UNDECIDED)] {
        assert_eq!(node.event(&pod, name, "Unhealthy").await, cant_connect(port), "{name}");
    }
    let ill = "Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")";
    node.event_that_says(&pod, "ill", ill).await;
    let missing = "Readiness probe failed: error: health rpc probe failed: rpc error: code = NotFound desc = ";
    node.event_that_says(&pod, "missing", missing).await;
    for unwell in ["ill", "missing", "nobody", "needs-tls", "has-no-tls", "says-no-http2"] {
        assert!(!node.was_ready(&pod, unwell), "{unwell}");
    }
    // What it says is what counts.
    reporter.set_service_status("ill", ServingStatus::Serving).await;
    node.ready(&pod, "ill").await;
    node.shutdown().await;
}

// spec: PROBE-12
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_no_health_service_is_a_failure() {
    let mut node = Node::start();
    let containers = [
        ("old", probe(&format!("port: {OLD}"))),
        ("silent", probe(&format!("port: {SILENT}"))),
        ("slow", probe(&format!("port: {SLOW}"))),
        ("other", probe(&format!("port: {WELL}"))),
    ];
    let pod = node.apply("no-grpc", &containers);
    let ip = node.address(&pod).await;
    let answers = |port: u16, greeting: &'static [u8]| says(ip, port, greeting);
    answers(OLD, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await;
    answers(SILENT, b"").await;
    // An empty frame of settings, and nothing more.
    answers(SLOW, &[0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    let other = crate::servers::Server::start_at((ip, WELL).into(), Speaks::Http2).await;
    let cant_connect = |port: u16| {
        let at = SocketAddr::from((ip, port));
        format!(
            "Readiness probe failed: timeout: failed to connect service \"{at}\" within 1s: context deadline exceeded"
        )
    };
    node.event_that_says(&pod, "old", &cant_connect(OLD)).await;
    node.event_that_says(&pod, "silent", &cant_connect(SILENT)).await;
    let slow = "Readiness probe failed: timeout: health rpc did not complete within 1s";
    node.event_that_says(&pod, "slow", slow).await;
    let other_says = "Readiness probe failed: error: this server does not implement the grpc health protocol \
                      (grpc.health.v1.Health): unexpected HTTP status code received from server: 404 (Not Found); \
                      malformed header: missing HTTP content-type";
    node.event_that_says(&pod, "other", other_says).await;
    let seen = other.seen();
    assert!(seen.iter().all(|request| request.path == "/grpc.health.v1.Health/Check"), "{seen:?}");
    assert!(seen.iter().all(|request| request.host == format!("{ip}:{WELL}")), "{seen:?}");
    let header = |name: &str, beginning: &str| {
        let is_it = |(n, value): &(String, String)| n == name && value.starts_with(beginning);
        seen.iter().all(|request| request.headers.iter().any(is_it))
    };
    assert!(header("user-agent", "kube-probe/") && header("te", "trailers"), "{seen:?}");
    assert!(header("content-type", "application/grpc") && header("grpc-timeout", "1"), "{seen:?}");
    node.shutdown().await;
}

// spec: PROBE-12
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_late_is_tried_again_within_the_timeout() {
    let mut node = Node::start();
    // There is only one probe.
    let once = format!("readinessProbe: {{periodSeconds: 1000, timeoutSeconds: 100, grpc: {{port: {LATE}}}}}");
    let pod = node.apply("late", &[("app", once)]);
    let at = SocketAddr::from((node.address(&pod).await, LATE));
    let listener = TcpListener::bind(at).await.expect("a free port");
    // Maybe it isn't even the first attempt.
    drop(listener.accept().await.expect("an attempt"));
    drop(listener);
    let (_server, _) = HealthService::start(at, Speaks::Http2).await;
    node.ready(&pod, "app").await;
    assert!(!node.had_event(&pod, "app", "Unhealthy"));
    node.shutdown().await;
}

/// A server that says this to everybody, and nothing more.
async fn says(ip: Ipv4Addr, port: u16, greeting: &'static [u8]) {
    let listener = TcpListener::bind((ip, port)).await.expect("a free port");
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(greeting).await;
            kept.push(stream);
        }
    });
}
