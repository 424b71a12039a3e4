//! The way to the agent: HTTP over its Unix socket, a connection for each request.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, WARNING};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use super::failure::{Failure, Status};
use super::query::Query;
use crate::out::{err, printable};

const JSON: &str = "application/json";

/// Where the agent is.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// The agent's Unix socket, if it isn't where `husk agent` has it by default
    #[arg(long, env = "HUSK_SOCKET", value_name = "PATH", help_heading = "Connection")]
    socket: Option<PathBuf>,
}

impl Connection {
    /// The agent that was named, or the one at the usual place.
    pub(crate) fn agent(&self) -> Agent {
        Agent { socket: self.socket.clone().unwrap_or_else(husk_agent::default_socket), known_warnings: Arc::default() }
    }
}

/// The agent's API.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    socket: PathBuf,
    /// What needs not be told again.
    known_warnings: Arc<[String]>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) accept: &'a str,
    /// What is sent, and its type.
    pub(crate) body: Option<(&'a str, Bytes)>,
}

impl<'a> Ask<'a> {
    /// For a JSON answer.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), query: Query::default(), accept: JSON, body: None }
    }

    /// With an object.
    pub(crate) fn with(method: &'a str, path: impl Into<String>, body: &Value) -> Self {
        Self { method, body: Some((JSON, body.to_string().into())), ..Self::get(path) }
    }

    pub(crate) fn query(mut self, query: Query) -> Self {
        self.query = query;
        self
    }

    pub(crate) fn accept(mut self, accept: &'a str) -> Self {
        self.accept = accept;
        self
    }
}

impl Agent {
    /// Some of its warnings were told before anything was sent.
    pub(crate) fn knowing(self, known_warnings: Vec<String>) -> Self {
        Self { known_warnings: known_warnings.into(), ..self }
    }

    /// Sends a request and gives the answer as it begins, if it isn't an error.
    pub(crate) async fn open(&self, ask: Ask<'_>) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(ask.method).uri(format!("{}{}", ask.path, ask.query));
        request = request.header(ACCEPT, ask.accept);
        let body = match ask.body {
            Some((kind, bytes)) => {
                request = request.header(CONTENT_TYPE, kind);
                bytes
            }
            None => Bytes::new(),
        };
        let request = request.header(HOST, "localhost").body(Full::new(body)).map_err(Failure::other)?;
        let response = self.send(request).await?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
    }

    /// Sends a request and gives what comes back, whatever it is.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|error| Failure::NoAgent { socket: self.socket.clone(), error })?;
        let lost = |error| Failure::Other(format!("the agent ended the connection: {error}"));
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(lost)?;
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request).await.map_err(lost)?;
        for warning in response.headers().get_all(WARNING) {
            // `299 - "text"`
            let text = String::from_utf8_lossy(warning.as_bytes());
            let text = text.split_once('"').map_or(&*text, |(_, rest)| rest.trim_end_matches('"'));
            let text = text.replace("\\\"", "\"");
            if !self.known_warnings.contains(&text) {
                err(format_args!("Warning: {}", printable(&text)));
            }
        }
        Ok(response)
    }

    /// An answer as JSON, with its HTTP status.
    pub(crate) async fn answer(&self, ask: Ask<'_>) -> Result<(u16, Value), Failure> {
        let response = self.open(ask).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.map_err(Failure::other)?.to_bytes();
        Ok((code, serde_json::from_slice(&bytes).map_err(Failure::other)?))
    }

    /// An answer as JSON.
    pub(crate) async fn json(&self, ask: Ask<'_>) -> Result<Value, Failure> {
        self.answer(ask).await.map(|(_, value)| value)
    }

    /// An answer as JSON; none if there is no such thing.
    pub(crate) async fn find(&self, ask: Ask<'_>) -> Result<Option<Value>, Failure> {
        match self.json(ask).await {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Server(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What the server says about why it doesn't do it.
pub(crate) async fn refusal(response: Response<Incoming>) -> Failure {
    let code = response.status();
    let bytes = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let status = serde_json::from_slice::<Value>(&bytes).ok().filter(|status| status["kind"] == "Status");
    Failure::Server(Box::new(status.map_or_else(
        || Status::unexplained(code.as_u16(), &String::from_utf8_lossy(&bytes)),
        |status| Status::of(&status),
    )))
}
