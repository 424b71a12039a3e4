//! Connections: a Unix socket for this user, and loopback for tools that only know TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HOST, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::body::Body;
use crate::respond::{self, Payload};
use crate::status::ApiError;
use crate::storage::StorageError;
use crate::{budgets, namespaces};

/// More connections wait until others end.
const CONNECTIONS: usize = 1024;
/// A connection that says nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(120);
/// Longer heads of requests are refused.
const MAX_HEAD: usize = 64 << 10;
/// How long requests may go on when the server ends.
const FAREWELL: Duration = Duration::from_secs(5);
/// After a failure that might repeat itself.
const PAUSE: Duration = Duration::from_millis(500);

/// Where a server listens.
#[derive(Debug)]
pub enum Listener {
    /// A Unix socket.
    Unix(UnixListener),
    /// TCP, on a loopback address.
    Tcp(TcpListener),
}

impl Listener {
    /// A Unix socket that only this user can connect to. One that a server left behind is replaced, one that is served is not.
    pub fn unix(path: &Path) -> io::Result<Self> {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            let message = format!("{} is served by another process", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        // Under another name until nobody else can connect to it.
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&new)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&new, path)?;
        Ok(Self::Unix(listener))
    }

    /// A loopback address. There is no authentication, so that no other is taken.
    pub async fn tcp(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let message = format!("{address} is not a loopback address, and the API has no authentication there");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        TcpListener::bind(address).await.map(Self::Tcp)
    }

    /// The address, if it is TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(listener) => listener.local_addr().ok(),
        }
    }
}

/// Serves an API until [`Api::end`] is called, and looks after what has to be looked after meanwhile.
///
/// # Errors
/// If the objects that must be there can't be written.
pub async fn serve(api: Api, listeners: Vec<Listener>) -> Result<(), StorageError> {
    namespaces::create_default(&api).await?;
    let mut tasks = JoinSet::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    for listener in listeners {
        tasks.spawn(accept(api.clone(), listener, permits.clone()));
    }
    let keeper = api.clone();
    tasks.spawn(async move {
        loop {
            let result = tokio::select! {
                result = namespaces::look_after(&keeper) => result,
                result = budgets::look_after(keeper.objects()) => result,
                () = keeper.ended() => return,
            };
            // Both begin again with what is there, so that nothing is missed.
            if let Err(error) = result {
                tracing::warn!(%error, "looking after namespaces and budgets begins again");
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn accept(api: Api, listener: Listener, permits: Arc<Semaphore>) {
    let mut connections = JoinSet::new();
    loop {
        let accepting = async {
            // The semaphore is never closed.
            let permit = permits.clone().acquire_owned().await;
            (permit, next(&listener).await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepting => accepted,
            () = api.ended() => break,
        };
        while connections.try_join_next().is_some() {}
        let api = api.clone();
        match accepted {
            Ok(stream) => {
                connections.spawn(async move {
                    match stream {
                        Stream::Unix(stream) => connection(api, stream, false).await,
                        Stream::Tcp(stream) => connection(api, stream, true).await,
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely.
                tracing::warn!(%error, "a connection can't be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, all_ended).await.is_err() {
        connections.abort_all();
    }
}

enum Stream {
    Unix(UnixStream),
    Tcp(tokio::net::TcpStream),
}

async fn next(listener: &Listener) -> io::Result<Stream> {
    match listener {
        Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        }
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(api: Api, stream: S, is_tcp: bool) {
    let service = service_fn(|mut request: Request<Incoming>| {
        let api = api.clone();
        async move {
            let refused = if is_tcp { from_elsewhere(&request) } else { None };
            let response: Response<Payload> = match refused {
                Some(error) => respond::error(&error),
                None => api.handle(&mut request).await,
            };
            Body::finish(request.body_mut()).await;
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut served = pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = api.ended() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// A page in a browser on this machine could ask a loopback address too: under a name of its own, or from its own origin.
fn from_elsewhere(request: &Request<Incoming>) -> Option<ApiError> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = header(HOST).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_here = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_own = header(ORIGIN).is_none_or(|origin| origin.split_once("://").is_some_and(|(_, rest)| rest == host));
    let message = "requests must be for a loopback address, and not from pages of other origins";
    (!is_here || !is_own).then(|| ApiError::new(403, "Forbidden", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Device;
    use crate::backend::tests::Empty;
    use crate::memory::Memory;
    use crate::objects::Objects;

    #[tokio::test]
    async fn a_server_with_all_the_connections_that_it_takes_can_end() {
        let api = Api::new(Objects::new(Arc::new(Memory::default())), Arc::new(Empty), Device::default());
        let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
        let accepting = tokio::spawn(accept(api.clone(), listener, Arc::new(Semaphore::new(0))));
        tokio::task::yield_now().await;
        api.end();
        tokio::time::timeout(Duration::from_secs(60), accepting).await.expect("it ends").expect("without a panic");
    }
}
