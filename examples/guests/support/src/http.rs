//! Requests and responses: as much of HTTP/1.1 as a small server needs.

use std::time::Duration;

/// A request's head. Bodies are not read: the guests here only give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// The path as it came, without the query.
    pub path: String,
    /// What stands behind the question mark.
    pub query: String,
    /// `HTTP/1.1`.
    pub version: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

/// What is wrong with a request, as the status that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected(pub u16);

/// No head may be longer.
pub const MAX_HEAD: usize = 16 * 1024;

impl Request {
    /// Reads a head from the beginning of `bytes`: it and its length, or None while it is incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Rejected> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end.filter(|end| *end <= MAX_HEAD) else {
            return if bytes.len() > MAX_HEAD { Err(Rejected(431)) } else { Ok(None) };
        };
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Rejected(400))?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Rejected(400));
        };
        if !target.starts_with('/') {
            return Err(Rejected(400));
        }
        if !version.starts_with("HTTP/1.") {
            return Err(Rejected(505));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Rejected(400))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            version: version.to_owned(),
            headers,
        };
        Ok(Some((request, end + 4)))
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path with `%41` decoded. None if it isn't UTF-8 then.
    pub fn decoded_path(&self) -> Option<String> {
        let mut bytes = Vec::new();
        let mut rest = self.path.bytes();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        }
        String::from_utf8(bytes).ok()
    }

    /// Whether the connection may serve another request.
    pub(crate) fn keeps_alive(&self) -> bool {
        let connection = self.header("connection").unwrap_or_default().to_ascii_lowercase();
        let has_body = self.header("content-length").is_some_and(|length| length != "0")
            || self.header("transfer-encoding").is_some();
        // A body that isn't read would be taken for the next request.
        !has_body && if self.version == "HTTP/1.0" { connection == "keep-alive" } else { connection != "close" }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// 200.
    pub status: u16,
    /// `text/html`.
    pub content_type: &'static str,
    /// Header lines beside those that every answer has.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The answer is held back for so long.
    pub delay: Duration,
}

impl Response {
    /// An answer in plain text.
    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Response {
        Response::new(status, "text/plain; charset=utf-8", body)
    }

    /// An answer of any type.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, content_type, headers: Vec::new(), body: body.into(), delay: Duration::ZERO }
    }

    /// An answer that only says its status.
    pub fn status(status: u16) -> Response {
        Response::text(status, format!("{status} {}\n", reason(status)))
    }

    /// What goes over the wire.
    pub fn to_bytes(&self, with_body: bool, keeps_alive: bool) -> Vec<u8> {
        let connection = if keeps_alive { "keep-alive" } else { "close" };
        let mut text = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {connection}\r\n",
            self.status,
            reason(self.status),
            self.content_type,
            self.body.len(),
        );
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        if with_body {
            bytes.extend(&self.body);
        }
        bytes
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_or_rejected() {
        let (request, length) = Request::parse(b"GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\n\r\nrest").unwrap().unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str(), length), ("/a%20b", "x=1", 36));
        assert_eq!((request.header("host"), request.decoded_path().as_deref()), (Some("h"), Some("/a b")));
        assert!(request.keeps_alive());
        assert_eq!(Request::parse(b"GET / HTTP/1.1\r\n"), Ok(None));
        for (head, status) in [
            (&b"GET /\r\n\r\n"[..], 400),
            (b"GET / HTTP/2\r\n\r\n", 505),
            (b"GET http://x/ HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (&[b'x'; MAX_HEAD + 1], 431),
        ] {
            assert_eq!(Request::parse(head), Err(Rejected(status)));
        }
        let (request, _) = Request::parse(b"GET /%zz HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert_eq!((request.decoded_path(), request.keeps_alive()), (None, false));
    }
}
