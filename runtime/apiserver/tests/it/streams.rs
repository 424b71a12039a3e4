//! Logs, and processes in containers.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::Client;
use crate::server::{Server, shell_pod};
use crate::until::{until, within};

const PODS: &str = "/api/v1/namespaces/default/pods";
const WEB: &str = "/api/v1/namespaces/default/pods/web";

async fn phase(client: &Client, path: &str, phase: &str) {
    until(&format!("{path} is {phase}"), async || {
        (client.get(path).await.ok()["status"]["phase"] == phase).then_some(())
    })
    .await;
}

/// A file that a script waits for, so that a test says how far the script is.
struct Gate(PathBuf);

impl Gate {
    fn new(server: &Server) -> Self {
        Self(server.folder.path().join("go"))
    }

    fn wait(&self) -> String {
        format!("until [ -e {} ]; do sleep 0.02; done", self.0.display())
    }

    fn open(&self) {
        std::fs::write(&self.0, "").expect("a file");
    }
}

/// A connection to a process.
struct Session(TokioIo<Upgraded>);

impl Session {
    async fn open(client: &Client, path: &str, protocol: &str) -> Result<Self, (u16, Value)> {
        let request = Request::builder()
            .uri(path)
            .header("host", "localhost")
            .header("connection", "keep-alive, Upgrade")
            .header("upgrade", "WebSocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("sec-websocket-protocol", protocol);
        let mut response = client.open(request.body(Full::default()).expect("a request")).await;
        if response.status() != 101 {
            let code = response.status().as_u16();
            let bytes = response.into_body().collect().await.expect("a body").to_bytes();
            return Err((code, serde_json::from_slice(&bytes).expect("a status")));
        }
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()["sec-websocket-protocol"], protocol);
        Ok(Self(TokioIo::new(hyper::upgrade::on(&mut response).await.expect("a connection"))))
    }

    async fn send(&mut self, opcode: u8, data: &[u8]) {
        let mut frame = vec![0x80 | opcode, 0x80 | 126];
        frame.extend_from_slice(&(data.len() as u16).to_be_bytes());
        if data.len() < 126 {
            frame.truncate(1);
            frame.push(0x80 | data.len() as u8);
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(data);
        self.0.write_all(&frame).await.expect("a connection");
    }

    /// The next frame: its opcode and its data.
    async fn next(&mut self) -> (u8, Bytes) {
        within("a frame comes", self.frame()).await
    }

    async fn frame(&mut self) -> (u8, Bytes) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).await.expect("a frame");
        assert_eq!(head[1] & 0x80, 0, "servers don't mask");
        let length = match head[1] {
            126 => self.0.read_u16().await.expect("a length").into(),
            127 => self.0.read_u64().await.expect("a length"),
            short => short.into(),
        };
        let mut data = vec![0; length as usize];
        self.0.read_exact(&mut data).await.expect("data");
        (head[0] & 0x0f, data.into())
    }

    /// Everything up to the end: what came on each of the first three channels, and the status.
    async fn end(&mut self) -> (String, String, Value) {
        let (mut stdout, mut stderr, mut status) = (Vec::new(), Vec::new(), Value::Null);
        loop {
            let (opcode, data) = self.next().await;
            match (opcode, data.first()) {
                (8, _) => {
                    assert_eq!(data, 1000_u16.to_be_bytes()[..]);
                    let text = |bytes| String::from_utf8(bytes).expect("text");
                    return (text(stdout), text(stderr), status);
                }
                (2, Some(1)) => stdout.extend_from_slice(&data[1..]),
                (2, Some(2)) => stderr.extend_from_slice(&data[1..]),
                (2, Some(3)) => status = serde_json::from_slice(&data[1..]).expect("a status"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn logs_are_cut_and_followed() {
    let server = Server::start().await;
    let client = server.client();
    let (code, _, message) = {
        let mut gated = shell_pod("gated", "true");
        gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
        client.post(PODS, &gated).await.ok();
        client.get(&format!("{PODS}/gated/log")).await.error()
    };
    assert_eq!(
        (code, message.as_str()),
        (400, "container \"main\" in pod \"gated\" is waiting to start: ContainerCreating")
    );
    let gate = Gate::new(&server);
    client.post(PODS, &shell_pod("web", &format!("echo one; echo two; {}; echo three", gate.wait()))).await.ok();
    phase(&client, WEB, "Running").await;
    let mut lines = client.follow(&format!("{WEB}/log?follow=true"), "").await;
    let mut told = vec![lines.next().await.expect("one"), lines.next().await.expect("two")];
    gate.open();
    while let Some(line) = lines.next().await {
        told.push(line);
    }
    assert_eq!(told, ["one", "two", "three"]);
    phase(&client, WEB, "Succeeded").await;
    let text = async |query: &str| {
        let answer = client.get(&format!("{WEB}/log?{query}")).await;
        (answer.code, String::from_utf8_lossy(&answer.bytes).into_owned())
    };
    assert_eq!(text("container=main&tailLines=1").await, (200, "three\n".into()));
    assert_eq!(text("limitBytes=5").await, (200, "one\nt".into()));
    assert_eq!(text("sinceSeconds=3600&tailLines=2").await, (200, "two\nthree\n".into()));
    let (_, stamped) = text("timestamps=true&tailLines=1").await;
    assert!(stamped.ends_with("Z three\n") && stamped.starts_with("20"), "{stamped}");
    assert_eq!(text("previous=true").await.0, 400);
    assert_eq!(text("container=other").await.0, 400);
    assert_eq!(text("tailLines=x").await.0, 400);
    server.end().await;
}

#[tokio::test]
async fn a_process_has_its_streams_and_its_exit_code() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &shell_pod("web", "while :; do sleep 0.05; done")).await.ok();
    phase(&client, WEB, "Running").await;
    let command = "command=sh&command=-c&command=cat%3B+echo+bad+%3E%262%3B+exit+3";
    let path = format!("{WEB}/exec?{command}&stdin=true&stdout=true&stderr=true");
    let mut session = Session::open(&client, &path, "v5.channel.k8s.io").await.expect("a session");
    session.send(2, b"\x00hello").await;
    let (opcode, data) = session.next().await;
    assert_eq!((opcode, &data[..]), (2, &b"\x01hello"[..]));
    session.send(9, b"ping").await;
    assert_eq!(session.next().await, (10, "ping".into()));
    // The end of input.
    session.send(2, &[255, 0]).await;
    let (stdout, stderr, status) = session.end().await;
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", "bad\n"));
    assert_eq!((&status["status"], &status["reason"]), (&json!("Failure"), &json!("NonZeroExitCode")));
    assert_eq!(status["details"]["causes"][0], json!({"reason": "ExitCode", "message": "3"}));
    let path = format!("{WEB}/exec?command=echo&command=hi&stdout=1&container=main");
    let mut session = Session::open(&client, &path, "v4.channel.k8s.io").await.expect("a session");
    let (stdout, _, status) = session.end().await;
    assert_eq!((stdout.as_str(), &status["status"]), ("hi\n", &json!("Success")));
    let path = format!("{WEB}/exec?command=no-such-program&stdout=1");
    let mut session = Session::open(&client, &path, "v5.channel.k8s.io").await.expect("a session");
    assert_eq!(session.end().await.2["reason"], "InternalError");
    server.end().await;
}

#[tokio::test]
async fn much_goes_through_and_a_client_may_leave() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &shell_pod("web", "while :; do sleep 0.05; done")).await.ok();
    phase(&client, WEB, "Running").await;
    let path = format!("{WEB}/exec?command=head&command=-c&command=1000000&command=/dev/zero&stdout=1");
    let mut session = Session::open(&client, &path, "v5.channel.k8s.io").await.expect("a session");
    assert_eq!(session.end().await.0.len(), 1_000_000);
    let marker = server.folder.path().join("alive");
    let script = format!("trap : TERM; echo $$ > {}; while :; do sleep 0.02; done", marker.display());
    let script: String = script.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let path = format!("{WEB}/exec?command=sh&command=-c&command={script}&stdout=1");
    let session = Session::open(&client, &path, "v5.channel.k8s.io").await.expect("a session");
    let pid = until("the process begins", async || {
        let said = std::fs::read_to_string(&marker).ok()?;
        said.strip_suffix('\n').map(str::to_owned)
    })
    .await;
    let process = Path::new("/proc").join(pid);
    assert!(process.exists(), "{process:?} runs while its client is there");
    drop(session);
    until("the process goes with its client", async || (!process.exists()).then_some(())).await;
    server.end().await;
}

#[tokio::test]
async fn what_cannot_be_entered_says_so() {
    let server = Server::start().await;
    let client = server.client();
    client.post(PODS, &shell_pod("web", "while :; do sleep 0.05; done")).await.ok();
    client.post(PODS, &shell_pod("done", "true")).await.ok();
    phase(&client, WEB, "Running").await;
    phase(&client, &format!("{PODS}/done"), "Succeeded").await;
    let refused = async |path: &str, protocol: &str| {
        Session::open(&client, &format!("{PODS}/{path}"), protocol).await.err().map(|(code, _)| code)
    };
    assert_eq!(refused("web/exec?stdout=1", "v5.channel.k8s.io").await, Some(400));
    assert_eq!(refused("web/exec?command=ls", "v5.channel.k8s.io").await, Some(400));
    assert_eq!(refused("web/exec?command=ls&stdout=1&container=x", "v5.channel.k8s.io").await, Some(400));
    assert_eq!(refused("done/exec?command=ls&stdout=1", "v5.channel.k8s.io").await, Some(400));
    assert_eq!(refused("none/exec?command=ls&stdout=1", "v5.channel.k8s.io").await, Some(404));
    assert_eq!(refused("web/exec?command=ls&stdout=1", "chat").await, Some(400));
    assert_eq!(client.get(&format!("{WEB}/exec?command=ls&stdout=1")).await.error().0, 400);
    let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let (code, _, message) = client.send("POST", &format!("{WEB}/exec?command=ls&stdout=1"), &spdy, "").await.error();
    assert_eq!(code, 400);
    assert!(message.contains("kubectl 1.30"), "{message}");
    server.end().await;
}

#[tokio::test]
async fn an_attached_client_sees_what_follows() {
    let server = Server::start().await;
    let client = server.client();
    let gate = Gate::new(&server);
    client.post(PODS, &shell_pod("web", &format!("{}; echo 8; echo 9", gate.wait()))).await.ok();
    phase(&client, WEB, "Running").await;
    let path = format!("{WEB}/attach?stdout=1&stderr=1");
    let mut session = Session::open(&client, &path, "v5.channel.k8s.io").await.expect("a session");
    gate.open();
    let (stdout, _, status) = session.end().await;
    assert_eq!(stdout, "8\n9\n");
    assert_eq!(status["status"], "Success");
    server.end().await;
}
