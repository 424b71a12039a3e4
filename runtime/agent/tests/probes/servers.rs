//! Servers of these tests, on real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::LOCATION;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::HealthReporter;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
    /// TLS, and in it what these names of ALPN say: HTTP/2 if it was agreed on.
    Tls(&'static [&'static str]),
}

/// A request, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    /// As the server is called: Host, or `:authority`.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// Answers with the status that is the path, or redirects: `/to/STATUS/URL-OR-PATH`.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(speaks: Speaks) -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), speaks).await
    }

    pub(crate) async fn start_at(at: SocketAddr, speaks: Speaks) -> Self {
        let listener = TcpListener::bind(at).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let service = {
            let seen = seen.clone();
            service_fn(move |request: Request<Incoming>| {
                let answer = answer(&request);
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(look(&request));
                async move { Ok::<_, std::convert::Infallible>(answer) }
            })
        };
        let task = serve(listener, speaks, service);
        Self { address, seen, _task: task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `httpGet` for it, in flow style.
    pub(crate) fn get(&self, path: &str, more: &str) -> String {
        format!("httpGet: {{host: 127.0.0.1, port: {}, path: '{path}'{more}}}", self.address.port())
    }
}

/// A gRPC server with the health service. It ends when this is dropped.
pub(crate) struct HealthService {
    _task: JoinSet<()>,
}

impl HealthService {
    /// At that address, with its services as the reporter says.
    pub(crate) async fn start(at: SocketAddr, speaks: Speaks) -> (Self, HealthReporter) {
        let (reporter, server) = tonic_health::server::health_reporter();
        let listener = TcpListener::bind(at).await.expect("a free port");
        (Self { _task: health(listener, speaks, server) }, reporter)
    }
}

fn health(listener: TcpListener, speaks: Speaks, server: HealthServer<impl Health>) -> JoinSet<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut server = server.clone();
        tower_service::Service::call(&mut server, request)
    });
    serve(listener, speaks, service)
}

/// Serves every connection in a task of its own; all of them end with what is returned.
fn serve<S, B>(listener: TcpListener, speaks: Speaks, service: S) -> JoinSet<()>
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(connection(stream, speaks, service.clone()));
        }
    });
    tasks
}

async fn connection<S, B>(stream: TcpStream, speaks: Speaks, service: S)
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match speaks {
        Speaks::Http1 => http1(stream, service).await,
        Speaks::Http2 => http2(stream, service).await,
        Speaks::Tls(protocols) => {
            let Ok(stream) = acceptor(protocols).accept(stream).await else { return };
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => http2(stream, service).await,
                _ => http1(stream, service).await,
            }
        }
    }
}

async fn http1<S, B>(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: S)
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn http2<S, B>(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: S)
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Has a certificate that nobody signed, for a name that nobody asks for.
fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let own = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let mut config = config.with_single_cert(vec![own.cert.der().clone()], key).expect("they belong together");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

fn answer(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().trim_start_matches('/');
    let mut parts = path.splitn(3, '/');
    let (status, location) = match parts.next() {
        Some("to") => (parts.next().unwrap_or_default(), parts.next()),
        _ => (path, None),
    };
    let mut answer = Response::new(Full::from("said"));
    *answer.status_mut() = status.parse().unwrap_or(StatusCode::NOT_FOUND);
    answer.headers_mut().extend(location.map(|to| (LOCATION, to.parse().expect("a header"))));
    answer
}

fn look(request: &Request<Incoming>) -> Seen {
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let authority = request.uri().authority().map(ToString::to_string);
    Seen {
        version: request.version(),
        host: authority.or_else(|| request.headers().get("host").map(text)).unwrap_or_default(),
        path: request.uri().path().to_owned(),
        headers: request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
    }
}
