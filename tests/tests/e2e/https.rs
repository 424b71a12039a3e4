//! Hooks and probes over TLS, and hooks' indifference to what is answered: against servers of this test, which `host` names.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::husk::{Ended, container, start};

/// Answers everything with one status, and remembers what was asked.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(tls: bool, status: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, config) = (Arc::clone(&requests), tls.then(tls_config));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = match &config {
                    Some(config) => {
                        let connection = ServerConnection::new(config.clone()).expect("valid");
                        answer(StreamOwned::new(connection, stream), status)
                    }
                    None => answer(stream, status),
                };
                if let Some(request) = request {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                }
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `httpGet` for it.
    fn get(&self, path: &str, scheme: &str) -> String {
        format!(
            "{{httpGet: {{host: 127.0.0.1, port: {}, path: {path}, scheme: {scheme}, \
             httpHeaders: [{{name: Authorization, value: secret}}]}}}}",
            self.port
        )
    }
}

/// A certificate that nobody signed, for a name that nobody asks for.
fn tls_config() -> Arc<ServerConfig> {
    let own = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).expect("they belong together"))
}

/// The head of a request, if it is one.
fn answer(mut stream: impl Read + Write, status: &str) -> Option<String> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while !request.ends_with(b"\r\n\r\n") && (request.is_empty() || request.starts_with(b"GET ")) {
        match stream.read(&mut buffer) {
            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
            _ => break,
        }
    }
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let _ = stream.flush();
    request.starts_with(b"GET ").then(|| String::from_utf8_lossy(&request).into_owned())
}

/// Runs a pod of one container until it is Running, or until `wanted`, and then deletes it.
fn live_and_die(more: &str, wanted: impl Fn(&serde_json::Value) -> bool) -> Ended {
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: secure}}\nspec:\n  terminationGracePeriodSeconds: 20\n  \
         containers:\n  - name: app\n    image: busybox\n    command: [sleep, 1h]\n    {more}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, pod).expect("written");
    let mut run = start(&path, &[]);
    run.wait_for(wanted);
    run.interrupt();
    run.finish()
}

fn is_running(object: &serde_json::Value) -> bool {
    !container(&object["status"], "app")["state"]["running"].is_null()
}

// spec: EDGE-34
// spec: HOOK-03
#[test]
fn edge_34_a_hook_ignores_the_status_and_the_certificate() {
    for tls in [false, true] {
        let server = Server::start(tls, "500 Broken");
        let get = |path| server.get(path, if tls { "HTTPS" } else { "HTTP" });
        let hooks = format!("lifecycle: {{postStart: {}, preStop: {}}}", get("/began"), get("/ends"));
        let ended = live_and_die(&hooks, is_running);
        let reasons = ended.reasons("app");
        assert!(!reasons.iter().any(|reason| reason.contains("Hook") || reason.contains("HTTP")), "{reasons:?}");
        let requests = server.requests();
        let [began, ends] = &requests[..] else { panic!("not one request for each hook: {requests:?}") };
        assert!(began.starts_with("GET /began HTTP/1.1") && ends.starts_with("GET /ends HTTP/1.1"), "{requests:?}");
        assert!(began.contains("User-Agent: kube-lifecycle/") && began.contains("Authorization: secret"), "{began}");
    }
}

// spec: EDGE-34
#[test]
fn edge_34_an_https_hook_is_sent_again_to_a_server_without_tls() {
    let server = Server::start(false, "200 OK");
    let ended = live_and_die(&format!("lifecycle: {{preStop: {}}}", server.get("/ends", "HTTPS")), is_running);
    let event = &ended.seen[ended.event("app", "LifecycleHTTPFallback")];
    let port = server.port;
    let message =
        format!("request to HTTPS lifecycle hook 127.0.0.1:{port} got HTTP response, retry with HTTP succeeded");
    assert_eq!((event["eventType"].as_str(), event["message"].as_str()), (Some("Warning"), Some(&*message)));
    assert!(!ended.reasons("app").contains(&"FailedPreStopHook"));
    let requests = server.requests();
    let [request] = &requests[..] else { panic!("not one request: {requests:?}") };
    assert!(!request.to_lowercase().contains("authorization"), "a secret in the clear: {request}");
}

// spec: EDGE-34
#[test]
fn edge_34_a_hook_that_nobody_answers_has_failed() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("bound").port();
    let server = Server { port: nobody, requests: Arc::default() };
    let ended = live_and_die(&format!("lifecycle: {{preStop: {}}}", server.get("/ends", "HTTPS")), is_running);
    let reasons = ended.reasons("app");
    assert!(reasons.contains(&"FailedPreStopHook") && !reasons.contains(&"LifecycleHTTPFallback"), "{reasons:?}");
}

// spec: PROBE-09
#[test]
fn an_https_probe_looks_at_the_status_and_at_no_certificate() {
    let (well, ill) = (Server::start(true, "200 OK"), Server::start(true, "503 Busy"));
    let probe = |server: &Server| {
        let get = server.get("/healthz", "HTTPS");
        format!("readinessProbe: {{periodSeconds: 1, {}", &get[1..])
    };
    let is_ready = |object: &serde_json::Value| container(&object["status"], "app")["ready"] == true;
    let ended = live_and_die(&probe(&well), is_ready);
    assert!(!ended.reasons("app").contains(&"Unhealthy"));
    let requests = well.requests();
    assert!(
        requests[0].starts_with("GET /healthz ") && requests[0].contains("User-Agent: kube-probe/"),
        "{requests:?}"
    );
    let ended = live_and_die(&probe(&ill), |object| object["reason"] == "Unhealthy");
    let message = &ended.seen[ended.event("app", "Unhealthy")]["message"];
    assert_eq!(message, "Readiness probe failed: HTTP probe failed with statuscode: 503");
    // A probe, unlike a hook, wants TLS where it says so.
    let plain = Server::start(false, "200 OK");
    let ended = live_and_die(&probe(&plain), |object| object["reason"] == "Unhealthy");
    let message = ended.seen[ended.event("app", "Unhealthy")]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.ends_with("http: server gave HTTP response to HTTPS client"), "{message}");
    assert!(plain.requests().is_empty());
}
