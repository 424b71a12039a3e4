//! Processes in containers, over a WebSocket: `exec` and `attach`.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::api::Api;
use crate::backend::{Attached, BoxFuture, Exit, Streams, Target, TerminalSize};
use crate::container;
use crate::query::Query;
use crate::resource::Door;
use crate::respond::{Payload, Response};
use crate::route::Place;
use crate::status::ApiError;
use crate::websocket::{Broken, Message, Reader, Writer, accept};

/// The newest first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/// Says whose process somebody is attached to. Upstream's has no such thing, and whoever doesn't know it doesn't miss it.
const CONTAINER_ID: HeaderName = HeaderName::from_static("husk-container-id");

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Followed by the number of the channel that is closed (version 5).
const CLOSE: u8 = 255;

const NORMAL: u16 = 1000;

/// So many pieces may wait in each direction.
const PIECES: usize = 16;
/// How long more output is waited for after a process has ended: its writers are gone by then.
const DRAIN: Duration = Duration::from_secs(5);

/// Answers with a connection to a process.
pub(crate) async fn answer(
    api: &Api,
    place: &Place,
    query: &Query,
    request: &mut Request<Incoming>,
) -> Result<Response, ApiError> {
    let pod = container::pod(api, place).await?;
    let name = container::named(&pod, query.get("container"))?;
    let wanted = ["stdin", "stdout", "stderr"].map(|stream| query.flag(stream));
    if wanted == [false; 3] {
        return Err(ApiError::bad_request("you must specify at least one of stdin, stdout, stderr"));
    }
    let command: Vec<String> = query.all("command").map(str::to_owned).collect();
    let is_exec = place.subresource.is_some_and(|subresource| subresource.door == Door::Exec);
    if is_exec && command.is_empty() {
        return Err(ApiError::bad_request("you must specify at least 1 command for the container"));
    }
    container::is_running(&pod, &name)?;
    let handshake = Handshake::of(request)?;
    let tty = query.flag("tty");
    let (streams, ends) = pipes(wanted, tty);
    let target = Target { pod: &pod, container: &name };
    let (container_id, exit) = if is_exec {
        (None, api.backend().exec(target, command, tty, streams).await?)
    } else {
        let Attached { container_id, exit } = api.backend().attach(target, tty, streams).await?;
        (Some(container_id), exit)
    };
    let upgraded = hyper::upgrade::on(request);
    let api = api.clone();
    tokio::spawn(async move {
        let session = async {
            match upgraded.await {
                Ok(connection) => serve(TokioIo::new(connection), ends, exit).await,
                Err(error) => tracing::debug!(%error, "the client didn't wait for the other protocol"),
            }
        };
        tokio::select! {
            () = session => {}
            () = api.ended() => {}
        }
    });
    Ok(handshake.answer(container_id.as_deref()))
}

/// What a client says to change to the other protocol.
struct Handshake {
    accept: String,
    protocol: &'static str,
}

impl Handshake {
    fn of(request: &Request<Incoming>) -> Result<Self, ApiError> {
        let header =
            |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let has =
            |name: HeaderName, word: &str| header(name).split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
        if has(UPGRADE, "SPDY/3.1") {
            return Err(ApiError::bad_request("SPDY is not served here: use kubectl 1.30 or newer"));
        }
        if !has(CONNECTION, "upgrade") || !has(UPGRADE, "websocket") {
            return Err(ApiError::bad_request("Upgrade request required"));
        }
        let key = header(SEC_WEBSOCKET_KEY);
        if header(SEC_WEBSOCKET_VERSION) != "13" || key.is_empty() {
            return Err(ApiError::bad_request("only version 13 of WebSocket is served"));
        }
        let offered = PROTOCOLS.into_iter().find(|protocol| has(SEC_WEBSOCKET_PROTOCOL, protocol));
        let protocol = offered.ok_or_else(|| {
            ApiError::bad_request(format!("none of the protocols is served; {} are", PROTOCOLS.join(", ")))
        })?;
        Ok(Self { accept: accept(key), protocol })
    }

    fn answer(&self, container_id: Option<&str>) -> Response {
        let mut response = Response::new(Payload::Whole(None));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(self.protocol));
        if let Ok(accept) = HeaderValue::from_str(&self.accept) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let Some(Ok(id)) = container_id.map(HeaderValue::from_str) {
            headers.insert(CONTAINER_ID, id);
        }
        response
    }
}

/// The client's ends of a process' streams.
struct Ends {
    input: Input,
    stdout: Option<mpsc::Receiver<Bytes>>,
    stderr: Option<mpsc::Receiver<Bytes>>,
}

struct Input {
    stdin: Option<mpsc::Sender<Bytes>>,
    resize: Option<mpsc::Sender<TerminalSize>>,
}

fn pipes([stdin, stdout, stderr]: [bool; 3], tty: bool) -> (Streams, Ends) {
    fn pipe<T>(wanted: bool) -> (Option<mpsc::Sender<T>>, Option<mpsc::Receiver<T>>) {
        let (sender, receiver) = mpsc::channel(PIECES);
        if wanted { (Some(sender), Some(receiver)) } else { (None, None) }
    }
    let (stdin, stdin_end) = pipe(stdin);
    let (stdout_end, stdout) = pipe(stdout);
    // A terminal has one output.
    let (stderr_end, stderr) = pipe(stderr && !tty);
    let (resize, resize_end) = pipe(tty);
    let streams = Streams { stdin: stdin_end, stdout: stdout_end, stderr: stderr_end, resize: resize_end };
    (streams, Ends { input: Input { stdin, resize }, stdout, stderr })
}

/// Carries data between a client and a process until one of them ends.
async fn serve<C: AsyncRead + AsyncWrite>(connection: C, ends: Ends, exit: BoxFuture<Exit>) {
    let (reader, writer) = tokio::io::split(connection);
    let (pings, pongs) = mpsc::channel(PIECES);
    let Ends { input, stdout, stderr } = ends;
    tokio::select! {
        // Reading ends when the client is gone, and the process with it.
        error = receive(Reader::new(reader), input, pings) => tracing::debug!(%error, "a client is gone"),
        result = send(Writer(writer), stdout, stderr, pongs, exit) => if let Err(error) = result {
            tracing::debug!(%error, "a client is gone");
        },
    }
}

async fn receive<R: AsyncRead + Unpin>(mut reader: Reader<R>, mut input: Input, pings: mpsc::Sender<Bytes>) -> Broken {
    loop {
        let data = match reader.next().await {
            Ok(Message::Data(data)) => data,
            Ok(Message::Ping(data)) => {
                // Pongs that can't be written are not missed.
                let _ = pings.try_send(data);
                continue;
            }
            Ok(Message::Close) => return Broken::Protocol("it closed the connection"),
            Err(error) => return error,
        };
        match data.split_first() {
            Some((&STDIN, bytes)) if !bytes.is_empty() => {
                if let Some(stdin) = &input.stdin
                    && stdin.send(data.slice(1..)).await.is_err()
                {
                    // The process doesn't read any more.
                    input.stdin = None;
                }
            }
            Some((&RESIZE, size)) => {
                if let (Some(resize), Ok(size)) = (&input.resize, serde_json::from_slice(size)) {
                    // Only the last size counts, and it comes again with the next change.
                    let _ = resize.try_send(size);
                }
            }
            Some((&CLOSE, [STDIN])) => input.stdin = None,
            _ => {}
        }
    }
}

async fn send<W: AsyncWrite + Unpin>(
    mut writer: Writer<W>,
    mut stdout: Option<mpsc::Receiver<Bytes>>,
    mut stderr: Option<mpsc::Receiver<Bytes>>,
    mut pongs: mpsc::Receiver<Bytes>,
    mut exit: BoxFuture<Exit>,
) -> std::io::Result<()> {
    let mut outcome = None;
    let too_late = tokio::time::sleep(DRAIN);
    tokio::pin!(too_late);
    loop {
        if outcome.is_some() && stdout.is_none() && stderr.is_none() {
            break;
        }
        tokio::select! {
            piece = piece(&mut stdout) => match piece {
                Some(bytes) => writer.channel(STDOUT, &bytes).await?,
                None => stdout = None,
            },
            piece = piece(&mut stderr) => match piece {
                Some(bytes) => writer.channel(STDERR, &bytes).await?,
                None => stderr = None,
            },
            Some(data) = pongs.recv() => {
                writer.pong(&data).await?;
                // No progress: clients ping as long as they are there.
                continue;
            }
            ended = &mut exit, if outcome.is_none() => outcome = Some(ended),
            () = &mut too_late, if outcome.is_some() => break,
        }
        too_late.as_mut().reset(tokio::time::Instant::now() + DRAIN);
    }
    let outcome = outcome.unwrap_or(Exit::Code(0));
    let mut status = BytesMut::new().writer();
    // Writing to memory can't fail.
    let _ = serde_json::to_writer(&mut status, &exit_status(&outcome));
    writer.channel(ERROR, &status.into_inner()).await?;
    writer.close(NORMAL).await
}

/// The next piece of a stream; never of one that isn't there.
async fn piece(stream: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
    match stream {
        Some(stream) => stream.recv().await,
        None => std::future::pending().await,
    }
}

fn exit_status(exit: &Exit) -> Value {
    match exit {
        Exit::Code(0) => json!({"metadata": {}, "status": "Success"}),
        Exit::Code(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Exit::Failed(why) => json!({
            "metadata": {},
            "status": "Failure",
            "message": why,
            "reason": "InternalError",
            "details": {"causes": [{"message": why}]},
            "code": 500,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn output_that_still_comes_after_the_end_is_waited_for() {
        let (connection, mut client) = tokio::io::duplex(1 << 10);
        let (stdout, pieces) = mpsc::channel(1);
        let (_pings, pongs) = mpsc::channel(1);
        tokio::spawn(async move {
            for _ in 0..4 {
                tokio::time::sleep(DRAIN / 2).await;
                stdout.send(Bytes::from_static(b"x")).await.expect("somebody waits");
            }
            // Held by something that the process left behind: that isn't waited for.
            std::future::pending::<()>().await;
        });
        let exit: BoxFuture<Exit> = Box::pin(std::future::ready(Exit::Code(0)));
        send(Writer(connection), Some(pieces), None, pongs, exit).await.expect("a client");
        let mut told = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut client, &mut told).await.expect("an end");
        assert_eq!(told.windows(4).filter(|frame| *frame == [0x82, 2, STDOUT, b'x']).count(), 4);
    }
}
