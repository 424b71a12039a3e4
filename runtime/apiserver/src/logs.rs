//! Output of containers.

use bytes::{BufMut, Bytes, BytesMut};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use crate::api::Api;
use crate::backend::{LogLine, LogSource, Target};
use crate::container;
use crate::query::Query;
use crate::respond::{self, Response};
use crate::route::Place;
use crate::status::ApiError;

/// So many pieces may wait for a client; then the container's log goes on without it.
const PIECES: usize = 16;
/// What is there is sent in pieces of about so many bytes.
const PIECE: usize = 16 << 10;

/// Which part of a log, and how it is written.
#[derive(Clone, Debug, Default, PartialEq)]
struct Excerpt {
    tail: Option<u64>,
    since: Option<Timestamp>,
    timestamps: bool,
    limit: Option<u64>,
}

impl Excerpt {
    fn of(query: &Query) -> Result<Self, ApiError> {
        let invalid = |field: &str, why: &str| {
            ApiError::new(422, "Invalid", format!("PodLogOptions \"\" is invalid: {field}: Invalid value: {why}"))
        };
        let seconds = query.number("sinceSeconds")?;
        let time = query.get("sinceTime").map(|text| {
            text.parse::<Timestamp>().map_err(|_| {
                ApiError::bad_request(format!("query parameter sinceTime: {text:?} is not an RFC 3339 time"))
            })
        });
        let since = match (seconds, time.transpose()?) {
            (Some(_), Some(_)) => {
                return Err(invalid("sinceSeconds", "at most one of sinceTime or sinceSeconds may be specified"));
            }
            (Some(seconds), None) if seconds < 1 => return Err(invalid("sinceSeconds", "must be greater than 0")),
            (Some(seconds), None) => {
                let ago = SignedDuration::from_secs(seconds);
                Some(Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::MIN))
            }
            (None, time) => time,
        };
        let limit = query.number("limitBytes")?;
        if limit.is_some_and(|limit| limit < 1) {
            return Err(invalid("limitBytes", "must be greater than 0"));
        }
        let tail = query.number("tailLines")?;
        if tail.is_some_and(|tail| tail < 0) {
            return Err(invalid("tailLines", "must be greater than or equal to 0"));
        }
        Ok(Self {
            tail: tail.map(i64::unsigned_abs),
            since,
            timestamps: query.flag("timestamps"),
            limit: limit.map(i64::unsigned_abs),
        })
    }

    fn has(&self, line: &LogLine) -> bool {
        self.since.is_none_or(|since| line.time >= since)
    }
}

/// Answers with the output of a container.
pub(crate) async fn answer(api: &Api, place: &Place, query: &Query) -> Result<Response, ApiError> {
    let pod = container::pod(api, place).await?;
    let name = container::named(&pod, query.get("container"))?;
    let excerpt = Excerpt::of(query)?;
    let previous = query.flag("previous");
    container::has_log(&pod, &name, previous)?;
    let target = Target { pod: &pod, container: &name };
    let source = api.backend().logs(target, previous, query.flag("follow")).await?;
    let (pieces, receiver) = mpsc::channel(PIECES);
    let api = api.clone();
    tokio::spawn(async move {
        tokio::select! {
            // An end before the log's is that of the client or of its limit.
            _ = send(source, &excerpt, Sink { pieces, left: excerpt.limit }) => {}
            () = api.ended() => {}
        }
    });
    Ok(respond::stream("text/plain", receiver))
}

/// Nothing more is wanted.
struct Enough;

struct Sink {
    pieces: mpsc::Sender<Bytes>,
    left: Option<u64>,
}

impl Sink {
    async fn send(&mut self, piece: Bytes) -> Result<(), Enough> {
        let length = self.left.map_or(piece.len(), |left| piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        self.left = self.left.map(|left| left - length as u64);
        self.pieces.send(piece.slice(..length)).await.map_err(|_| Enough)?;
        if self.left == Some(0) { Err(Enough) } else { Ok(()) }
    }
}

async fn send(source: LogSource, excerpt: &Excerpt, mut sink: Sink) -> Result<(), Enough> {
    let lines: Vec<&LogLine> = source.lines.iter().filter(|line| excerpt.has(line)).collect();
    let first = excerpt.tail.map_or(0, |tail| first_of_tail(&lines, tail));
    let mut piece = BytesMut::new();
    let mut goes_on = false;
    for line in &lines[first..] {
        write(line, excerpt.timestamps && !goes_on, &mut piece);
        goes_on = line.partial;
        if piece.len() >= PIECE {
            sink.send(piece.split().freeze()).await?;
        }
    }
    if !piece.is_empty() {
        sink.send(piece.split().freeze()).await?;
    }
    drop(lines);
    let Some(mut more) = source.more else { return Ok(()) };
    loop {
        let line = tokio::select! {
            line = more.recv() => line,
            () = sink.pieces.closed() => return Err(Enough),
        };
        let Some(line) = line else { return Ok(()) };
        if excerpt.has(&line) {
            write(&line, excerpt.timestamps && !goes_on, &mut piece);
            goes_on = line.partial;
            sink.send(piece.split().freeze()).await?;
        }
    }
}

/// Where the last `tail` lines begin. Pieces of a line are one line.
fn first_of_tail(lines: &[&LogLine], tail: u64) -> usize {
    let begins = |at: usize| at == 0 || !lines[at - 1].partial;
    let mut beginnings = (0..lines.len()).rev().filter(|at| begins(*at));
    match usize::try_from(tail) {
        Ok(0) => lines.len(),
        Ok(tail) => beginnings.nth(tail - 1).unwrap_or(0),
        Err(_) => 0,
    }
}

fn write(line: &LogLine, timestamp: bool, piece: &mut BytesMut) {
    if timestamp {
        piece.put_slice(format!("{:.9} ", line.time).as_bytes());
    }
    piece.put_slice(&line.text);
    if !line.partial {
        piece.put_u8(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: i64, text: &'static str) -> LogLine {
        LogLine { time: Timestamp::from_second(second).expect("a time"), text: text.into(), partial: false }
    }

    async fn sent(query: &str, lines: Vec<LogLine>) -> String {
        let excerpt = Excerpt::of(&Query::parse(query)).expect("a query");
        let (pieces, mut receiver) = mpsc::channel(PIECES);
        let _ = send(LogSource { lines, more: None }, &excerpt, Sink { pieces, left: excerpt.limit }).await;
        let mut text = Vec::new();
        while let Some(piece) = receiver.recv().await {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).expect("text")
    }

    #[tokio::test]
    async fn pieces_of_a_line_are_one_line() {
        let piece = |second, text| LogLine { partial: true, ..line(second, text) };
        let lines = || vec![line(1, "one"), piece(2, "t"), piece(3, "w"), line(4, "o"), piece(5, "three")];
        assert_eq!(sent("", lines()).await, "one\ntwo\nthree");
        assert_eq!(sent("tailLines=2", lines()).await, "two\nthree");
        let time = |second| format!("1970-01-01T00:00:0{second}.000000000Z");
        let timed = format!("{} two\n{} three", time(2), time(5));
        assert_eq!(sent("timestamps=true&tailLines=2", lines()).await, timed);
    }

    #[tokio::test]
    async fn an_excerpt_is_cut_at_both_ends() {
        let lines = || vec![line(1, "one"), line(2, "two"), line(3, "three")];
        assert_eq!(sent("", lines()).await, "one\ntwo\nthree\n");
        assert_eq!(sent("tailLines=2", lines()).await, "two\nthree\n");
        assert_eq!(sent("tailLines=0", lines()).await, "");
        assert_eq!(sent("limitBytes=6", lines()).await, "one\ntw");
        assert_eq!(sent("sinceTime=1970-01-01T00:00:03Z", lines()).await, "three\n");
        assert_eq!(sent("timestamps=true&tailLines=1", lines()).await, "1970-01-01T00:00:03.000000000Z three\n");
        assert!(Excerpt::of(&Query::parse("tailLines=-1")).is_err());
        assert!(Excerpt::of(&Query::parse("sinceSeconds=1&sinceTime=1970-01-01T00:00:03Z")).is_err());
    }
}
