//! A process in a container, at the other end of a WebSocket.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::connection::{Agent, refusal};
use super::failure::{Failure, Status};
use super::output;
use super::query::Query;
use super::terminal::{RawMode, size_message, stdin};
use super::websocket::{Message, Reader, Writer, random};
use crate::out::err;

const PROTOCOL: &str = "v5.channel.k8s.io";
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Followed by the number of the channel that is closed.
const CLOSE: u8 = 255;
/// As a shell has it for who ends at TERM.
const TERMINATED: u8 = 128 + 15;
/// So many pings may wait for an answer.
const PINGS: usize = 4;

/// How the user takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Standard input goes to the process.
    pub(crate) stdin: bool,
    /// The process has a terminal.
    pub(crate) tty: bool,
}

/// Says which instance of a container it is whose own process somebody is attached to.
const CONTAINER_ID: &str = "husk-container-id";

/// Connects to a process, carries its streams, and fails with its exit code. If it is a container's own, that one's `containerID`.
pub(crate) async fn converse(
    agent: &Agent,
    path: &str,
    query: Query,
    manner: Manner,
) -> Result<Option<String>, Failure> {
    let query = query
        .flag("stdin", manner.stdin)
        .with("stdout", true)
        // A terminal has one output.
        .flag("stderr", !manner.tty)
        .flag("tty", manner.tty);
    let request = Request::builder()
        .uri(format!("{path}{query}"))
        .header(HOST, "localhost")
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, STANDARD.encode(random()))
        .header(SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        .body(Full::<Bytes>::default())
        .map_err(Failure::other)?;
    let mut response = agent.send(request).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(response).await);
    }
    let container_id = response.headers().get(CONTAINER_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let connection = hyper::upgrade::on(&mut response).await.map_err(Failure::other)?;
    let raw_mode = if manner.tty && manner.stdin { RawMode::enter() } else { None };
    let status = carry(TokioIo::new(connection), manner).await;
    // What follows is written to a terminal that moves to the first column again.
    drop(raw_mode);
    exit(&status?)?;
    Ok(container_id)
}

/// Carries data in both directions until the process has ended: its status.
async fn carry<C: AsyncRead + AsyncWrite>(connection: C, manner: Manner) -> Result<Value, Failure> {
    let (reader, writer) = tokio::io::split(connection);
    let (pings, pongs) = mpsc::channel(PINGS);
    let input = if manner.stdin { Some(stdin()?) } else { None };
    // Who is told to end gives the terminal back first.
    let mut ending = signal(SignalKind::terminate())?;
    tokio::select! {
        status = receive(Reader::new(reader), pings) => status,
        Err(error) = send(Writer(writer), input, pongs, manner.tty) => Err(error.into()),
        Some(()) = ending.recv() => Err(Failure::Exit(TERMINATED)),
    }
}

async fn receive<R: AsyncRead + Unpin>(mut reader: Reader<R>, pings: mpsc::Sender<Bytes>) -> Result<Value, Failure> {
    let mut status = None;
    loop {
        let message = match reader.next().await {
            Ok(message) => message,
            // The status is the last of what matters.
            Err(error) => return status.ok_or(error),
        };
        let data = match message {
            Message::Data(data) => data,
            Message::Ping(data) => {
                // One that isn't answered is followed by another.
                let _ = pings.try_send(data);
                continue;
            }
            Message::Close => {
                return status
                    .ok_or_else(|| Failure::other("the agent ended the connection before the process was over"));
            }
        };
        match data.split_first() {
            Some((&STDOUT, bytes)) => output::bytes(bytes)?,
            Some((&STDERR, bytes)) => {
                let mut stderr = std::io::stderr().lock();
                stderr.write_all(bytes)?;
                stderr.flush()?;
            }
            Some((&ERROR, bytes)) => status = Some(serde_json::from_slice(bytes).map_err(Failure::other)?),
            _ => {}
        }
    }
}

/// Never ends but for errors: the process says when it is over.
async fn send<W: AsyncWrite + Unpin>(
    mut writer: Writer<W>,
    mut input: Option<mpsc::Receiver<Bytes>>,
    mut pongs: mpsc::Receiver<Bytes>,
    tty: bool,
) -> std::io::Result<std::convert::Infallible> {
    let mut resized = if tty { signal(SignalKind::window_change()).ok() } else { None };
    if tty && let Some(size) = size_message() {
        writer.channel(RESIZE, size.as_bytes()).await?;
    }
    loop {
        tokio::select! {
            piece = async { input.as_mut()?.recv().await }, if input.is_some() => match piece {
                Some(bytes) => writer.channel(STDIN, &bytes).await?,
                None => {
                    input = None;
                    writer.channel(CLOSE, &[STDIN]).await?;
                }
            },
            Some(()) = async { resized.as_mut()?.recv().await }, if resized.is_some() => {
                if let Some(size) = size_message() {
                    writer.channel(RESIZE, size.as_bytes()).await?;
                }
            }
            Some(data) = pongs.recv() => writer.pong(&data).await?,
            else => std::future::pending::<()>().await,
        }
    }
}

/// How the process ended.
fn exit(status: &Value) -> Result<(), Failure> {
    if status["status"] == "Success" {
        return Ok(());
    }
    let status = Status::of(status);
    let code =
        status.causes.iter().find(|cause| cause.reason == "ExitCode").and_then(|cause| cause.message.parse().ok());
    match code {
        Some(code) if status.reason == "NonZeroExitCode" => {
            err(format_args!("command terminated with exit code {code}"));
            Err(Failure::Exit(code))
        }
        _ => Err(Failure::Other(format!("Internal error occurred: {}", status.message))),
    }
}
