//! Pods' addresses, with the example guests on them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use husk_core::io::Outcome;
use husk_engine::{Container, ContainerConfig, Delivery, ExecOutput, Image};

use crate::support::{guest, next_line, start, text};

/// A web server on port 8080 of a pod.
async fn web(image: &Image, ip: Ipv4Addr) -> (Container, husk_engine::Log) {
    let mut config = ContainerConfig::new(image.clone());
    config.args = vec!["--port=8080".into()];
    config.ip = ip;
    let (container, log) = start(config).await;
    assert!(next_line(&log).await.contains("8080"), "{:?}", text(&log));
    while container.ready() != Some(true) {
        tokio::task::yield_now().await;
    }
    (container, log)
}

/// A container that sleeps, and the commands that run in it.
async fn shell(ip: Ipv4Addr) -> Container {
    let mut config = ContainerConfig::new(guest("toolbox"));
    config.command = vec!["sleep".into(), "86400".into()];
    config.ip = ip;
    config.hostname = "client".into();
    config.hosts = vec![("server".into(), Ipv4Addr::new(127, 78, 1, 1))];
    start(config).await.0
}

async fn sh(container: &Container, line: &str) -> ExecOutput {
    let command = ["sh".to_string(), "-c".into(), line.into()];
    container.exec(&command).await.expect("exec").wait().await
}

/// What the node gets of a pod, as a probe does.
async fn get(ip: Ipv4Addr, path: &'static str) -> std::io::Result<String> {
    let get = move || {
        let mut stream = TcpStream::connect((ip, 8080))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    tokio::task::spawn_blocking(get).await.expect("task")
}

// spec: NET-01
#[tokio::test]
async fn two_pods_use_port_8080_and_are_reached_at_their_addresses() {
    let image = guest("web");
    let (one, other) = (Ipv4Addr::new(127, 78, 1, 1), Ipv4Addr::new(127, 78, 1, 2));
    let (first, first_log) = web(&image, one).await;
    let (_second, second_log) = web(&image, other).await;

    assert!(get(one, "/healthz").await.expect("answers").starts_with("HTTP/1.1 200"));
    assert!(text(&first_log).iter().any(|line| line.contains("/healthz")));
    assert!(!text(&second_log).iter().any(|line| line.contains("/healthz")));

    // Another container of the first pod: localhost is its neighbour. A third pod: localhost is nobody, names are known.
    let (neighbour, stranger) = (shell(one).await, shell(Ipv4Addr::new(127, 78, 1, 3)).await);
    for (container, host, reached) in [
        (&neighbour, "localhost", true),
        (&neighbour, "127.0.0.1", true),
        (&stranger, "localhost", false),
        (&stranger, "127.78.1.2", true),
        (&stranger, "server", true),
        (&stranger, "nobody.example", false),
    ] {
        let output = sh(container, &format!("wget -q -O - http://{host}:8080/healthz")).await;
        let said = String::from_utf8_lossy(&output.output);
        assert_eq!(output.outcome == Outcome::Code(0) && said == "ok\n", reached, "{host}: {output:?} {said}");
    }

    // With its container a pod's port is free again.
    first.kill();
    first.wait().await;
    assert!(get(one, "/healthz").await.is_err());
    web(&image, one).await;
}

// spec: NET-01
#[tokio::test]
async fn services_of_the_host_are_not_reachable() {
    let stranger = shell(Ipv4Addr::new(127, 78, 2, 1)).await;
    for everywhere in ["127.0.0.1:0", "0.0.0.0:0"] {
        let host = TcpListener::bind(everywhere).expect("host's service");
        let port = host.local_addr().expect("bound").port();
        for name in ["localhost", "127.0.0.1", "127.78.2.1"] {
            let output = sh(&stranger, &format!("wget -q -O - http://{name}:{port}/")).await;
            assert!(matches!(output.outcome, Outcome::Code(code) if code != 0), "{name}: {output:?}");
        }
        host.set_nonblocking(true).expect("set");
        assert!(host.accept().is_err(), "nobody called");
    }
}

#[tokio::test]
async fn a_server_that_waits_for_connections_can_be_killed_and_stopped() {
    let image = guest("web");
    let ip = Ipv4Addr::new(127, 78, 3, 1);
    let (server, _) = web(&image, ip).await;
    server.kill();
    assert_eq!(server.wait().await, Outcome::Signal(9));

    let (server, _) = web(&image, ip).await;
    assert_eq!(server.signal("SIGTERM"), Ok(Delivery::Queued));
    assert_eq!(server.wait().await, Outcome::Code(0));
}
