//! Probes that nobody answers hold up no others, and end with their containers (PROBE-14).

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::node::Node;

/// More than have their turn at once.
const MANY: usize = 100;

// spec: PROBE-14
#[tokio::test(flavor = "multi_thread")]
async fn probes_that_hang_starve_no_others_and_end_with_their_containers() {
    let (hole, well) = (listener().await, listener().await);
    let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
    let hangs =
        format!("readinessProbe: {{timeoutSeconds: 3600, httpGet: {{host: 127.0.0.1, port: {}}}}}", port(&hole));
    let mut node = Node::start();
    let names: Vec<_> = (0..MANY).map(|number| format!("c{number}")).collect();
    let containers: Vec<_> = names.iter().map(|name| (&**name, hangs.clone())).collect();
    let hanging = node.apply("hanging", &containers);
    // All of them are asked at once and wait for their answer.
    let mut asked = Vec::new();
    while asked.len() < MANY {
        asked.push(hole.accept().await.expect("a probe").0);
    }
    let probe = format!("{{periodSeconds: 1, tcpSocket: {{host: 127.0.0.1, port: {}}}}}", port(&well));
    let served = node.apply("served", &[("app", format!("readinessProbe: {probe}, livenessProbe: {probe}"))]);
    tokio::spawn(async move { while well.accept().await.is_ok() {} });
    node.ready(&served, "app").await;
    assert!(!node.had_event(&hanging, "c0", "Unhealthy"));
    node.delete(&hanging).await;
    for probe in &mut asked {
        ended(probe).await;
    }
    assert!(!node.had_event(&served, "app", "Unhealthy"));
    node.shutdown().await;
}

// spec: PROBE-14
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_whose_time_is_over_leaves_no_connection() {
    let hole = listener().await;
    let at = format!("host: 127.0.0.1, port: {}", hole.local_addr().expect("bound").port());
    let mut node = Node::start();
    let probe = |action: &str| format!("readinessProbe: {{periodSeconds: 1, httpGet: {{{at}{action}}}}}");
    let containers = [("http1", probe("")), ("http2", probe(", protocol: HTTP2")), ("tls", probe(", scheme: HTTPS"))];
    let pod = node.apply("late", &containers);
    for (name, _) in &containers {
        let message = node.event(&pod, name, "Unhealthy").await;
        assert!(message.ends_with("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"));
    }
    for _ in 0..3 * containers.len() {
        ended(&mut hole.accept().await.expect("a probe").0).await;
    }
    node.shutdown().await;
}

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port")
}

/// Reads until the other side is gone.
async fn ended(stream: &mut TcpStream) {
    let read = async { while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(Duration::from_secs(120), read).await.expect("the probe ends");
}
