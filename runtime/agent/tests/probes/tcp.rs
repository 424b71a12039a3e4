//! TCP probes.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::node::Node;

/// Where nobody listens.
pub(crate) async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    listener.local_addr().expect("bound")
}

// spec: PROBE-12
#[tokio::test(flavor = "multi_thread")]
async fn an_open_port_is_enough() {
    let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let (port, closed) = (open.local_addr().expect("bound").port(), closed_port().await);
    // It closes every connection at once.
    tokio::spawn(async move { while open.accept().await.is_ok() {} });
    let mut node = Node::start();
    let probe =
        |port: u16| format!("readinessProbe: {{periodSeconds: 1, tcpSocket: {{host: 127.0.0.1, port: {port}}}}}");
    let pod = node.apply("tcp", &[("open", probe(port)), ("closed", probe(closed.port()))]);
    node.ready(&pod, "open").await;
    let message = node.event(&pod, "closed", "Unhealthy").await;
    assert_eq!(message, format!("Readiness probe failed: dial tcp {closed}: connect: connection refused"));
    assert!(!node.had_event(&pod, "open", "Unhealthy") && !node.was_ready(&pod, "closed"));
    node.shutdown().await;
}
