//! A connection to a server of a pod: plain or in TLS, for HTTP/1.1 or HTTP/2. It ends when it is dropped.

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::carrier::Carrier;
use super::dial::{ConnectionError, Endpoint, Reach, dial};
use super::tls;

/// A connection that takes requests.
pub(crate) struct Connection {
    sender: Sender,
    _carrier: Carrier,
}

enum Sender {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 at once and in the clear.
    Http2,
    /// TLS, and in it what the server likes best.
    Tls,
}

impl Connection {
    /// Connects and agrees on how to speak.
    pub(crate) async fn open(endpoint: &Endpoint, speech: Speech, reach: &impl Reach) -> Result<Self, ConnectionError> {
        let tcp = dial(endpoint, reach).await?;
        match speech {
            Speech::Http1 => Self::http1(tcp).await,
            Speech::Http2 => Self::http2(tcp).await,
            Speech::Tls => {
                let stream = tls::connect(tcp, &endpoint.host, tls::HTTP).await?;
                if tls::agreed(&stream) == Some(tls::H2) {
                    Self::http2(stream).await
                } else {
                    Self::http1(stream).await
                }
            }
        }
    }

    async fn http1(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, ConnectionError> {
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).title_case_headers(true);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender: Sender::Http1(sender), _carrier: Carrier::of(connection) })
    }

    async fn http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, ConnectionError> {
        let carrier = Carrier::default();
        let (sender, connection) = http2::handshake(carrier.spawner(), TokioIo::new(stream)).await?;
        carrier.carry(connection);
        Ok(Self { sender: Sender::Http2(sender), _carrier: carrier })
    }

    /// Sends a request whose URI is absolute. A Host header replaces the URI's host as what the server is called.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectionError> {
        let name = request.headers_mut().remove(HOST);
        match &mut self.sender {
            Sender::Http1(sender) => {
                let name = name.or_else(|| HeaderValue::from_str(request.uri().authority()?.as_str()).ok());
                request.headers_mut().extend(name.map(|name| (HOST, name)));
                request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
                Ok(sender.send_request(request).await?)
            }
            Sender::Http2(sender) => {
                // One connection is one request here, and HTTP/2 has no header that says so.
                request.headers_mut().remove(CONNECTION);
                if let Some(authority) = name.and_then(|name| name.as_bytes().try_into().ok()) {
                    let mut parts = request.uri().clone().into_parts();
                    parts.authority = Some(authority);
                    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_else(|_| request.uri().clone());
                }
                Ok(sender.send_request(request).await?)
            }
        }
    }
}
