//! What probes leave behind: nothing (PROBE-14).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::node::Node;
use crate::servers::{HealthService, Server, Speaks};

/// What of a process grows if something is forgotten.
#[derive(Clone, Copy, Debug)]
struct Size {
    files: usize,
    tasks: usize,
    threads: usize,
}

impl Size {
    fn now() -> Self {
        let count = |folder: &str| std::fs::read_dir(folder).expect("readable").count();
        let tasks = Handle::current().metrics().num_alive_tasks();
        Self { files: count("/proc/self/fd"), tasks, threads: count("/proc/self/task") }
    }

    fn fits_in(self, before: Self) -> bool {
        self.files <= before.files && self.tasks <= before.tasks && self.threads <= before.threads
    }
}

// spec: PROBE-14
#[test]
fn nothing_is_left_of_hundreds_of_probes() {
    // Other tests of this process would count: this one is on its own.
    let this = "connections::nothing_is_left_of_hundreds_of_probes";
    if std::env::var_os("ALONE").is_none() {
        let alone = std::process::Command::new(std::env::current_exe().expect("tests have a path"))
            .args([this, "--exact"])
            .env("ALONE", "1")
            .output()
            .expect("it starts");
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(probe_and_count());
}

async fn probe_and_count() {
    let (plain, new) = (Server::start(Speaks::Http1).await, Server::start(Speaks::Http2).await);
    let secure = Server::start(Speaks::Tls(&["h2"])).await;
    let mut node = Node::start();
    let actions = [
        plain.get("/200", ""),
        plain.get("/500", ""),
        plain.get("/to/302//200", ""),
        new.get("/200", ", protocol: HTTP2"),
        secure.get("/200", ", scheme: HTTPS"),
        plain.get("/200", ", scheme: HTTPS"),
        format!("tcpSocket: {{host: 127.0.0.1, port: {}}}", plain.address.port()),
        format!("tcpSocket: {{host: 127.0.0.1, port: {}}}", crate::tcp::closed_port().await.port()),
        "httpGet: {host: localhost, port: 1}".into(),
        "grpc: {port: 50061}".into(),
        "grpc: {port: 50061, service: missing}".into(),
        "grpc: {port: 50062}".into(),
        "exec: {command: [sleeper]}".into(),
        "exec: {command: [sleeper, again]}".into(),
    ];
    let names: Vec<_> = (0..actions.len()).map(|number| format!("c{number}")).collect();
    let probed = |action: &String| {
        let probe = format!("{{periodSeconds: 1, failureThreshold: 100000, {action}}}");
        format!("readinessProbe: {probe}, livenessProbe: {probe}")
    };
    let containers: Vec<_> = names.iter().map(|name| &**name).zip(actions.iter().map(probed)).collect();
    let pod = node.apply("probed", &containers);
    let (_server, _) = HealthService::start(SocketAddr::from((node.address(&pod).await, 50_061)), Speaks::Http2).await;
    rounds(&mut node, &plain, 3).await;
    // What is there in the midst of it, at most.
    let mut before = Size::now();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = Size::now();
        before = Size {
            files: before.files.max(now.files),
            tasks: before.tasks.max(now.tasks),
            threads: before.threads.max(now.threads),
        };
    }
    rounds(&mut node, &plain, 10).await;
    // A leak would never go away again.
    let quiet = async {
        while !Size::now().fits_in(before) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let quiet = tokio::time::timeout(Duration::from_secs(60), quiet).await;
    assert!(quiet.is_ok(), "{before:?} grew to {:?}", Size::now());
    node.shutdown().await;
}

/// Waits until so many more rounds of probes were made.
async fn rounds(node: &mut Node, server: &Server, more: usize) {
    let asked = |server: &Server| server.seen().iter().filter(|request| request.path == "/500").count();
    let wanted = asked(server) + 2 * more;
    while asked(server) < wanted {
        tokio::time::sleep(Duration::from_millis(50)).await;
        node.drain();
    }
}
