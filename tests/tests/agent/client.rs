//! Asks the API over the agent's socket, with nothing but HTTP/1.1.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// Lines before the body.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// What the server warns about.
    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.head.lines().filter_map(|line| line.split_once(": ")).filter(is_warning).map(|(_, text)| text).collect()
    }

    /// The body of a success.
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.code), "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

fn is_warning((name, _): &(&str, &str)) -> bool {
    name.eq_ignore_ascii_case("warning")
}

/// One request. None if no server answers.
pub(crate) fn ask(socket: &Path, method: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let body = body.map(Value::to_string).unwrap_or_default();
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: husk\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Some(Answer { code, head: head.to_owned(), body: if is_chunked { joined(body) } else { body.to_owned() } })
}

fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        body.push_str(chunk);
        chunks = rest.get(size + 2..).unwrap_or_default();
    }
    body
}
