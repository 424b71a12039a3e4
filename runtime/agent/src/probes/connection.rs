//! A connection to a server of a pod, plain or in TLS. It ends when it is dropped.

use std::io;
use std::net::SocketAddr;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::tls::{self, TlsError};

/// A connection that takes requests.
pub(crate) struct Connection {
    sender: http1::SendRequest<Empty<Bytes>>,
    /// What carries it; aborted with it, so that a probe that is given up leaves nothing.
    _carrier: JoinSet<()>,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// HTTP/1.1.
    Plain,
    /// The same in TLS.
    Tls,
}

/// Why there is no connection or no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// Nobody listens, or nobody answers.
    #[error("dial tcp {address}: {}", in_words(.error))]
    Dial {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// TLS was spoken to a server that speaks something else, most likely HTTP.
    #[error("http: server gave HTTP response to HTTPS client")]
    NotTls,
    /// The server speaks TLS, but not with us.
    #[error("tls: {0}")]
    Tls(String),
    /// It isn't HTTP, or broke off.
    #[error("{}", causes(.0))]
    Http(#[from] hyper::Error),
}

impl Connection {
    /// Connects `at` the place where the node reaches `address`.
    pub(crate) async fn open(address: SocketAddr, at: SocketAddr, speech: Speech) -> Result<Self, ConnectionError> {
        let dial = |error| ConnectionError::Dial { address, error };
        let tcp = TcpStream::connect(at).await.map_err(dial)?;
        tcp.set_nodelay(true).map_err(dial)?;
        match speech {
            Speech::Plain => Self::http(tcp).await,
            Speech::Tls => {
                let stream = tls::connect(tcp, address.ip()).await.map_err(|error| match error {
                    TlsError::NotTls => ConnectionError::NotTls,
                    TlsError::Other(message) => ConnectionError::Tls(message),
                });
                Self::http(stream?).await
            }
        }
    }

    async fn http(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, ConnectionError> {
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).title_case_headers(true);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, _carrier: carried(connection) })
    }

    /// Sends a request whose URI is absolute. A Host header replaces the URI's host as what the server is called.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectionError> {
        if !request.headers().contains_key(HOST) {
            let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
            request.headers_mut().extend(host.map(|host| (HOST, host)));
        }
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
        Ok(self.sender.send_request(request).await?)
    }
}

fn carried<T>(connection: impl Future<Output = T> + Send + 'static) -> JoinSet<()> {
    let mut carrier = JoinSet::new();
    carrier.spawn(async move {
        // What goes wrong is told to the one who waits for an answer.
        let _ = connection.await;
    });
    carrier
}

/// As upstream's messages have it: without the number.
pub(crate) fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".into(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".into(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".into(),
        io::ErrorKind::TimedOut => "i/o timeout".into(),
        _ => error.to_string(),
    }
}

fn causes(error: &hyper::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
