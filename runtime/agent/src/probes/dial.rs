//! Connecting to a server of a pod, or to whatever a handler's `host` names.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use rustix::io::Errno;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// So many names are looked up at once: each lookup has a thread for as long as the resolver takes.
static LOOKUPS: Semaphore = Semaphore::const_new(8);

/// Says where the node connects to for an address, which may be another one for ports that it can't bind itself.
pub(crate) trait Reach: Fn(SocketAddr) -> SocketAddr + Send + Sync {}

impl<F: Fn(SocketAddr) -> SocketAddr + Send + Sync> Reach for F {}

/// A host, by address or by name, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
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
    /// The name of the host is unknown.
    #[error("dial tcp: lookup {host}: {error}")]
    Lookup {
        /// Which.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// TLS was spoken to a server that speaks something else, most likely HTTP.
    #[error("http: server gave HTTP response to HTTPS client")]
    NotTls,
    /// The server speaks TLS, but not with us.
    #[error("tls: {0}")]
    Tls(String),
    /// A gRPC server was expected.
    #[error("{0}")]
    NotHttp2(String),
    /// It isn't HTTP, or broke off.
    #[error("{}", causes(.0))]
    Http(#[from] hyper::Error),
}

impl ConnectionError {
    /// It is the node that couldn't ask: that says nothing about the server.
    pub(crate) fn is_the_nodes(&self) -> bool {
        const OURS: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
        match self {
            Self::Dial { error, .. } => Errno::from_io_error(error).is_some_and(|error| OURS.contains(&error)),
            Self::Lookup { .. } | Self::NotTls | Self::Tls(_) | Self::NotHttp2(_) | Self::Http(_) => false,
        }
    }
}

/// Connects to the first address that takes it.
pub(crate) async fn dial(endpoint: &Endpoint, reach: &impl Reach) -> Result<TcpStream, ConnectionError> {
    let addresses = lookup(endpoint).await?;
    let mut last = ConnectionError::Lookup { host: endpoint.host.clone(), error: io::Error::other("no such host") };
    for address in addresses {
        let connected = async {
            let stream = TcpStream::connect(reach(address)).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        match connected.await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = ConnectionError::Dial { address, error },
        }
    }
    Err(last)
}

async fn lookup(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, ConnectionError> {
    let Endpoint { host, port } = endpoint.clone();
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    // Never closed.
    let turn = LOOKUPS.acquire().await;
    let found = tokio::task::spawn_blocking(move || {
        let found = (&*host, port).to_socket_addrs().map(Iterator::collect);
        drop(turn);
        found
    });
    let found = found.await.unwrap_or_else(|error| Err(io::Error::other(error)));
    found.map_err(|error| ConnectionError::Lookup { host: endpoint.host.clone(), error })
}

/// As upstream's messages have it: without the number.
pub(super) fn in_words(error: &io::Error) -> String {
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
