//! HTTP probes, against a server of this test: `host` names it, as it may name any.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use crate::husk::{Ended, Run, start};

/// Answers by path, and remembers what was asked.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let request: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                let path = request.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
                let (status, to) = match path {
                    "/fine" => ("204 No Content", ""),
                    "/last" => ("399 Odd", "/nowhere"),
                    "/hop" => ("302 Found", "/skip"),
                    "/skip" => ("301 Moved", "fine"),
                    "/loop" => ("302 Found", "/loop"),
                    "/away" => ("302 Found", "http://elsewhere.example/"),
                    _ => ("503 Service Unavailable", ""),
                };
                let location = if to.is_empty() { String::new() } else { format!("Location: {to}\r\n") };
                let length = if status.starts_with("204") { "" } else { "Content-Length: 0\r\n" };
                let _ = write!(stream, "HTTP/1.1 {status}\r\n{location}{length}Connection: close\r\n\r\n");
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(request.join("\n"));
            }
        });
        Self { port, requests }
    }

    /// The first request for a path.
    fn request(&self, path: &str) -> String {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = format!("GET {path} ");
        requests.iter().find(|request| request.starts_with(&wanted)).cloned().unwrap_or_default()
    }

    /// Runs a pod with a container for each of `gets`: its name, the path it is ready by, more fields of the action.
    fn probed(&self, gets: &[(&str, &str, &str)]) -> (tempfile::TempDir, Run) {
        let container = |(name, path, more): &(&str, &str, &str)| {
            let get = format!("{{host: 127.0.0.1, port: {}, path: {path}{more}}}", self.port);
            format!(
                "  - name: {name}\n    image: busybox\n    command: [sleep, 1h]\n    \
                 readinessProbe: {{periodSeconds: 1, httpGet: {get}}}\n"
            )
        };
        let containers: String = gets.iter().map(container).collect();
        let pod = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: probed}}\nspec:\n  containers:\n{containers}");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pod.yaml");
        std::fs::write(&path, pod).expect("written");
        let run = start(&path, &[]);
        (folder, run)
    }
}

fn was_ready(ended: &Ended, name: &str) -> bool {
    ended.statuses().any(|status| crate::husk::container(status, name)["ready"] == true)
}

// spec: PROBE-09
#[test]
fn statuses_from_200_to_399_are_well_and_headers_are_as_asked() {
    let server = Server::start();
    let own =
        ", httpHeaders: [{name: User-Agent, value: ''}, {name: Accept, value: text/plain}, {name: Host, value: me}]";
    let (_folder, mut run) = server.probed(&[("well", "fine", ""), ("ill", "/bad", ""), ("own", "/own", own)]);
    run.wait_until(|seen| {
        let said = |name: &str| seen.iter().any(|o| o["container"] == name && o["reason"] == "Unhealthy");
        let ready = seen.iter().any(|o| crate::husk::container(&o["status"], "well")["ready"] == true);
        said("ill") && said("own") && ready
    });
    run.interrupt();
    let ended = run.finish();
    assert!(was_ready(&ended, "well") && !was_ready(&ended, "ill"));
    let message = &ended.seen[ended.event("ill", "Unhealthy")]["message"];
    assert_eq!(message, "Readiness probe failed: HTTP probe failed with statuscode: 503");
    let plain = server.request("/fine");
    assert!(plain.contains("User-Agent: kube-probe/") && plain.contains("Accept: */*"), "{plain}");
    assert!(plain.contains(&format!("Host: 127.0.0.1:{}", server.port)), "{plain}");
    let own = server.request("/own");
    assert!(own.contains("Accept: text/plain") && own.contains("Host: me") && !own.contains("User-Agent"), "{own}");
}

// spec: PROBE-10
#[test]
fn redirects_are_followed_on_the_same_host_only() {
    let server = Server::start();
    let (_folder, mut run) = server.probed(&[("hop", "/hop", ""), ("away", "/away", ""), ("loop", "/loop", "")]);
    run.wait_until(|seen| {
        let warned = |name: &str| seen.iter().any(|o| o["container"] == name && o["reason"] == "ProbeWarning");
        let all = ["hop", "away", "loop"];
        warned("away")
            && warned("loop")
            && all.iter().all(|name| seen.iter().any(|o| crate::husk::container(&o["status"], name)["ready"] == true))
    });
    run.interrupt();
    let ended = run.finish();
    assert!(!ended.reasons("hop").contains(&"ProbeWarning"), "{:?}", ended.reasons("hop"));
    assert!(server.request("/fine").starts_with("GET /fine "), "the redirects weren't followed to their end");
}
