//! A server without threads: one loop waits for sockets and for stop signals.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use husk_guest::{Signal, signals};

use crate::http::{Rejected, Request, Response};

/// Sockets can't be waited for together with signals; so signals are looked at this often.
const SIGNAL_PERIOD: Duration = Duration::from_millis(200);

/// A connection without news for so long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// No more are served at once; others wait in the listener's queue.
const MAX_CONNECTIONS: usize = 128;

/// What the handler is told about a request.
#[derive(Debug)]
pub struct Context {
    /// Who asks.
    pub peer: IpAddr,
    /// A stop signal has come: the server takes no new connections.
    pub is_draining: bool,
}

/// Serves until a stop signal comes, then answers the requests that have begun, for `drain` at most, and returns the
/// signal.
pub fn serve(
    listener: TcpListener,
    drain: Duration,
    mut handler: impl FnMut(&Request, &Context) -> Response,
) -> io::Result<Signal> {
    listener.set_nonblocking(true)?;
    let mut listener = Some(listener);
    let mut connections: Vec<Connection> = Vec::new();
    let mut stop: Option<(Signal, Instant)> = None;
    loop {
        if stop.is_none()
            && let Some(signal) = signals::stop_requested()
        {
            stop = Some((signal, Instant::now() + drain));
            // From here on the kernel, or the node, refuses new connections.
            listener = None;
        }
        if let Some(listener) = listener.as_ref().filter(|_| connections.len() < MAX_CONNECTIONS) {
            accept(listener, &mut connections)?;
        }
        let is_draining = stop.is_some();
        let now = Instant::now();
        connections.retain_mut(|connection| connection.advance(now, is_draining, &mut handler));
        if let Some((signal, end)) = stop
            && (connections.is_empty() || end <= now)
        {
            return Ok(signal);
        }
        wait(listener.as_ref().filter(|_| connections.len() < MAX_CONNECTIONS), &connections, now);
    }
}

fn accept(listener: &TcpListener, connections: &mut Vec<Connection>) -> io::Result<()> {
    while connections.len() < MAX_CONNECTIONS {
        match listener.accept() {
            Ok((stream, peer)) => {
                // One that can't be made non-blocking would hold up all others.
                if stream.set_nonblocking(true).is_ok() {
                    connections.push(Connection::new(stream, peer.ip()));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until a socket has news, an answer that is held back is due, or signals are to be looked at.
fn wait(listener: Option<&TcpListener>, connections: &[Connection], now: Instant) {
    let mut polled: Vec<libc::pollfd> = Vec::new();
    let mut add = |fd: RawFd, events| polled.push(libc::pollfd { fd, events, revents: 0 });
    if let Some(listener) = listener {
        add(listener.as_raw_fd(), libc::POLLIN);
    }
    let mut longest = SIGNAL_PERIOD;
    for connection in connections {
        match &connection.state {
            State::Reading => add(connection.stream.as_raw_fd(), libc::POLLIN),
            State::Holding { due, .. } => longest = longest.min(due.saturating_duration_since(now)),
            State::Writing { .. } => add(connection.stream.as_raw_fd(), libc::POLLOUT),
        }
    }
    // Rounded up, so that what is due is due when the wait is over.
    let timeout = i32::try_from(longest.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    if polled.is_empty() {
        std::thread::sleep(Duration::from_millis(u64::from(timeout.unsigned_abs())));
        return;
    }
    // SAFETY: the pointer and the length are those of a vector that outlives the call.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    if ready < 0 {
        // Without poll the loop must not spin.
        std::thread::sleep(Duration::from_millis(10));
    }
}

enum State {
    Reading,
    /// An answer that is held back.
    Holding {
        due: Instant,
        bytes: Vec<u8>,
        keeps_alive: bool,
    },
    Writing {
        bytes: Vec<u8>,
        written: usize,
        keeps_alive: bool,
    },
}

struct Connection {
    stream: TcpStream,
    peer: IpAddr,
    received: Vec<u8>,
    state: State,
    last_news: Instant,
}

impl Connection {
    fn new(stream: TcpStream, peer: IpAddr) -> Connection {
        Connection { stream, peer, received: Vec::new(), state: State::Reading, last_news: Instant::now() }
    }

    /// Does what can be done without waiting. False: the connection is over.
    fn advance(
        &mut self,
        now: Instant,
        is_draining: bool,
        handler: &mut impl FnMut(&Request, &Context) -> Response,
    ) -> bool {
        loop {
            match &mut self.state {
                State::Reading => {
                    let is_open = match self.receive(now) {
                        Ok(is_open) => is_open,
                        Err(_) => return false,
                    };
                    match Request::parse(&self.received) {
                        Ok(Some((request, length))) => {
                            self.received.drain(..length);
                            self.answer(&request, now, is_draining, handler);
                        }
                        Ok(None) => {
                            let is_idle = now.duration_since(self.last_news) > IDLE_TIMEOUT;
                            // Nothing was asked yet, so nothing is cut off.
                            let is_done = is_draining && self.received.is_empty();
                            return is_open && !is_idle && !is_done;
                        }
                        Err(Rejected(status)) => {
                            let bytes = Response::status(status).to_bytes(true, false);
                            self.state = State::Writing { bytes, written: 0, keeps_alive: false };
                        }
                    }
                }
                State::Holding { due, .. } if *due > now => return true,
                State::Holding { bytes, keeps_alive, .. } => {
                    self.state = State::Writing { bytes: std::mem::take(bytes), written: 0, keeps_alive: *keeps_alive };
                }
                State::Writing { bytes, written, keeps_alive } => match self.stream.write(&bytes[*written..]) {
                    Ok(count) if count > 0 => {
                        *written += count;
                        self.last_news = now;
                        if *written == bytes.len() {
                            if !*keeps_alive || is_draining {
                                // The peer sees the end of the data rather than a reset.
                                let _ = self.stream.shutdown(std::net::Shutdown::Write);
                                return false;
                            }
                            self.state = State::Reading;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        return now.duration_since(self.last_news) <= IDLE_TIMEOUT;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(_) | Err(_) => return false,
                },
            }
        }
    }

    /// Takes what has arrived. False: the peer has closed.
    fn receive(&mut self, now: Instant) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        while self.received.len() <= crate::http::MAX_HEAD {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.received.extend(&buffer[..count]);
                    self.last_news = now;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn answer(
        &mut self,
        request: &Request,
        now: Instant,
        is_draining: bool,
        handler: &mut impl FnMut(&Request, &Context) -> Response,
    ) {
        let context = Context { peer: self.peer, is_draining };
        let response = match request.method.as_str() {
            "GET" | "HEAD" => handler(request, &context),
            _ => Response::status(405),
        };
        let keeps_alive = request.keeps_alive() && !is_draining;
        let bytes = response.to_bytes(request.method != "HEAD", keeps_alive);
        self.last_news = now;
        self.state = State::Holding { due: now + response.delay, bytes, keeps_alive };
    }
}
