//! A plain HTTP client.

use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpStream, UnixStream};

use crate::until::within;

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

pub(crate) enum Client {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap<HeaderValue>,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("JSON, not {:?}", self.bytes))
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    /// The object, which it must be.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.code < 300, "{} {:?}", self.code, self.bytes);
        self.json()
    }

    /// The error, which it must be: code, reason and message.
    #[track_caller]
    pub(crate) fn error(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], self.code, "{status}");
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        (self.code, text("reason"), text("message"))
    }
}

impl Client {
    pub(crate) fn tcp(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }

    /// Sends a request and gives the answer as it begins.
    pub(crate) async fn open(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        async fn over<S>(stream: S, request: Request<Full<Bytes>>) -> Response<Incoming>
        where
            S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        {
            let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
            tokio::spawn(connection.with_upgrades());
            sender.send_request(request).await.expect("an answer")
        }
        match self {
            Self::Tcp(address) => over(TcpStream::connect(address).await.expect("a connection"), request).await,
            Self::Unix(path) => over(UnixStream::connect(path).await.expect("a connection"), request).await,
        }
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let answered = async {
            let (head, body) = self.open(request).await.into_parts();
            let bytes = body.collect().await.expect("a body").to_bytes();
            Answer { code: head.status.as_u16(), headers: head.headers, bytes }
        };
        within("an answer", answered).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> Answer {
        self.send("PATCH", path, &[("content-type", kind)], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }

    /// Follows a watch or a log.
    pub(crate) async fn follow(&self, path: &str, accept: &str) -> Lines {
        let request = Request::builder().uri(path).header("host", "localhost").header("accept", accept);
        let response = self.open(request.body(Full::default()).expect("a request")).await;
        assert_eq!(response.status(), 200);
        Lines { body: response.into_body(), buffer: Vec::new() }
    }
}

/// Lines as they come.
pub(crate) struct Lines {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let frame = within("more comes", self.body.frame()).await?.expect("a frame");
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// The next event of a watch: its type and its object.
    pub(crate) async fn event(&mut self) -> (String, Value) {
        let line = self.next().await.expect("an event");
        let mut event: Value = serde_json::from_str(&line).expect("JSON");
        (event["type"].as_str().unwrap_or_default().to_owned(), event["object"].take())
    }
}
