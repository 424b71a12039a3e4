//! A plain HTTP client on the Unix socket.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use crate::world::{World, within};

pub(crate) struct Client<'a>(&'a World);

impl World {
    pub(crate) fn client(&self) -> Client<'_> {
        Client(self)
    }
}

impl Client<'_> {
    /// Sends a request and gives the answer as it begins.
    pub(crate) async fn open(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let stream = UnixStream::connect(self.0.socket()).await.expect("a connection");
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.expect("an answer")
    }

    /// Code and text of the answer.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("a request");
        let answered = async {
            let (head, body) = self.open(request).await.into_parts();
            let bytes = body.collect().await.expect("a body").to_bytes();
            (head.status.as_u16(), String::from_utf8_lossy(&bytes).into_owned())
        };
        within("an answer", answered).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        self.send("GET", path, &Value::Null).await
    }
}
