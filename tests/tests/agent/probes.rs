//! Probes of all protocols, against servers that are in another process than the agent: in this one.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use hyper::Version;
use serde_json::{Value, json};
use tonic_health::ServingStatus;

use crate::husk::container;
use crate::servers::{HealthService, Server, Speaks};
use crate::world::World;

/// Where nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn get(server: SocketAddr, path: &str, more: &[(&str, &str)]) -> Value {
    let mut get = json!({"host": "127.0.0.1", "port": server.port(), "path": path});
    more.iter().for_each(|(name, value)| get[name] = (*value).into());
    json!({"httpGet": get})
}

fn tcp(port: u16) -> Value {
    json!({"tcpSocket": {"host": "127.0.0.1", "port": port}})
}

/// A pod that is ready when this says so. Each has its own: what a pod may say is bounded (NODE-02), and probes of a second say much.
fn create(world: &World, name: &str, mut action: Value) {
    action["periodSeconds"] = 1.into();
    let container = json!({
        "name": "app", "image": "busybox", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "1h"], "readinessProbe": action,
    });
    world.create(name, &json!({"terminationGracePeriodSeconds": 1, "containers": [container]}));
}

fn ready(world: &mut World, name: &str, is_ready: bool) {
    world.pod_until(name, |pod| container(&pod["status"], "app")["ready"] == is_ready);
}

const HTTPS: (&str, &str) = ("scheme", "HTTPS");
const HTTP2: (&str, &str) = ("protocol", "HTTP2");

// spec: PROBE-09, PROBE-10, PROBE-11, PROBE-12
#[tokio::test(flavor = "multi_thread")]
async fn http_in_all_its_versions_and_tcp() {
    let (old, new) = (Server::start(Speaks::Http1).await, Server::start(Speaks::Http2).await);
    let old_tls = Server::start(Speaks::Tls(&["http/1.1"])).await;
    let new_tls = Server::start(Speaks::Tls(&["h2"])).await;
    let closed = closed_port();
    let hop = format!("/to/307/https://{}/202", new_tls.address);
    let mut world = World::new(&[]);
    let well = [
        ("http1", get(old.address, "/200", &[])),
        ("http2", get(new.address, "/204", &[HTTP2])),
        ("https1", get(old_tls.address, "/399", &[HTTPS])),
        ("https2", get(new_tls.address, "/201", &[HTTPS])),
        ("redirected", get(old.address, &hop, &[])),
        ("away", get(old.address, "/to/302/http://elsewhere.example/500", &[])),
        ("tcp", tcp(old.address.port())),
    ];
    let ill = [
        ("http1-ill", get(old.address, "/503", &[]), "HTTP probe failed with statuscode: 503"),
        ("http2-ill", get(new.address, "/400", &[HTTP2]), "HTTP probe failed with statuscode: 400"),
        ("https-ill", get(new_tls.address, "/500", &[HTTPS]), "HTTP probe failed with statuscode: 500"),
        ("no-tls", get(old.address, "/200", &[HTTPS]), "server gave HTTP response to HTTPS client"),
        ("no-http2", get(old.address, "/200", &[HTTP2]), "Readiness probe failed: Get "),
        ("nobody", tcp(closed), "connect: connection refused"),
    ];
    for (name, action) in
        well.iter().map(|(name, action)| (name, action)).chain(ill.iter().map(|(name, action, _)| (name, action)))
    {
        create(&world, name, action.clone());
    }
    for (name, _) in &well {
        ready(&mut world, name, true);
    }
    for (name, _, says) in &ill {
        world.event(name, "Unhealthy", says);
        ready(&mut world, name, false);
    }
    world.event("away", "ProbeWarning", "Readiness probe warning: Probe terminated redirects");
    for (server, version) in
        [(&old, Version::HTTP_11), (&new, Version::HTTP_2), (&old_tls, Version::HTTP_11), (&new_tls, Version::HTTP_2)]
    {
        let seen = server.seen();
        assert!(seen.iter().all(|request| request.version == version), "{seen:?}");
    }
    // A server that goes is missed, and one that comes back isn't any more.
    let address = new.address;
    drop(new);
    world.event("http2", "Unhealthy", "connect: connection refused");
    ready(&mut world, "http2", false);
    let _again = Server::start_at(address, Speaks::Http2).await;
    ready(&mut world, "http2", true);
}

// spec: PROBE-12
#[tokio::test(flavor = "multi_thread")]
async fn grpc_with_and_without_tls() {
    const PLAIN: u16 = 50_071;
    const TLS: u16 = 50_072;
    let mut world = World::new(&[]);
    let grpc = |port: u16, more: &[(&str, &str)]| {
        let mut grpc = json!({"port": port});
        more.iter().for_each(|(name, value)| grpc[name] = (*value).into());
        json!({"grpc": grpc})
    };
    let mut servers = Vec::new();
    for (name, action, port, speaks) in [
        ("whole", grpc(PLAIN, &[]), PLAIN, Speaks::Http2),
        ("part", grpc(PLAIN, &[("service", "part")]), PLAIN, Speaks::Http2),
        ("ill", grpc(PLAIN, &[("service", "ill")]), PLAIN, Speaks::Http2),
        ("tls", grpc(TLS, &[("mode", "TLS")]), TLS, Speaks::Tls(&["h2"])),
        ("needs-tls", grpc(TLS, &[]), TLS, Speaks::Tls(&["h2"])),
    ] {
        create(&world, name, action);
        // It asks the address of the pod, so that is where the server is.
        let pod = world.pod_until(name, |pod| pod["status"]["podIP"].is_string());
        let ip: Ipv4Addr = pod["status"]["podIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an address");
        let (server, reporter) = HealthService::start((ip, port).into(), speaks).await;
        reporter.set_service_status("part", ServingStatus::Serving).await;
        reporter.set_service_status("ill", ServingStatus::NotServing).await;
        servers.push((server, reporter));
    }
    for well in ["whole", "part", "tls"] {
        ready(&mut world, well, true);
    }
    world.event("ill", "Unhealthy", "service unhealthy (responded with \"NOT_SERVING\")");
    world.event("needs-tls", "Unhealthy", "timeout: failed to connect service");
    for ill in ["ill", "needs-tls"] {
        ready(&mut world, ill, false);
    }
    for (_, reporter) in &servers {
        reporter.set_service_status("part", ServingStatus::NotServing).await;
        reporter.set_service_status("ill", ServingStatus::Serving).await;
    }
    ready(&mut world, "part", false);
    ready(&mut world, "ill", true);
}
