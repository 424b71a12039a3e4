//! `wget` for plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::{Context, Failure, Status};
use crate::cmdline;

/// So many redirections are followed.
const MAX_REDIRECTS: usize = 10;

/// Where to ask and what for.
struct Url {
    host: String,
    port: u16,
    path: String,
}

/// What a server answers, but for the body.
struct Response {
    /// `HTTP/1.1 200 OK`.
    status_line: String,
    code: u16,
    location: Option<String>,
    length: Option<u64>,
    is_chunked: bool,
    body: BufReader<TcpStream>,
}

/// `wget [-q] [-O FILE] [-T SECONDS] [--spider] [--header LINE] [--post-data DATA] URL`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let long = [
        ("spider", 'x'),
        ("header", 'H'),
        ("post-data", 'D'),
        ("timeout", 'T'),
        ("tries", 't'),
        ("quiet", 'q'),
        ("output-document", 'O'),
        ("no-check-certificate", 'c'),
    ];
    let options = cmdline::parse(context.operands(), "qSxcO:T:t:U:Y:H:D:", &long)?;
    let [url] = &options.operands[..] else { return Err(Failure::from("usage: wget [-q] [-O FILE] URL".to_owned())) };
    let timeout = match options.value("T").map(str::parse::<u64>) {
        None | Some(Ok(0)) => None,
        Some(Ok(seconds)) => Some(Duration::from_secs(seconds)),
        Some(Err(_)) => return Err(Failure::from("-T: needs a number of seconds".to_owned())),
    };
    let mut headers: Vec<String> = options.values("H").map(str::to_owned).collect();
    headers.push(format!("User-Agent: {}", options.value("U").unwrap_or("Wget")));
    let mut address = (*url).to_owned();
    for _ in 0..=MAX_REDIRECTS {
        let url = Url::parse(&address)?;
        let response = request(&url, &headers, options.value("D"), timeout)?;
        match (response.code, &response.location) {
            (301 | 302 | 303 | 307 | 308, Some(location)) => address = url.join(location),
            (200..=299, _) if options.has("x") => return Ok(0),
            (200..=299, _) => {
                let default = url.path.split('?').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
                let default = if default.is_empty() { "index.html" } else { default };
                return save(context, response, options.value("O").unwrap_or(default));
            }
            _ => return Err(Failure::from(format!("server returned error: {}", response.status_line))),
        }
    }
    Err(Failure::from("too many redirections".to_owned()))
}

fn save(context: &mut Context<'_>, response: Response, target: &str) -> Status {
    let body = response.read_body()?;
    match target {
        "-" => context.output.write_all(&body)?,
        "/dev/null" => {}
        file => std::fs::write(context.shell.path(file), body)?,
    }
    Ok(0)
}

fn request(url: &Url, headers: &[String], data: Option<&str>, timeout: Option<Duration>) -> Result<Response, String> {
    let Url { host, port, path } = url;
    let failed = |error: std::io::Error| format!("can't connect to {host}:{port}: {}", super::plain(&error));
    let addresses = (host.as_str(), *port)
        .to_socket_addrs()
        .map_err(|error| format!("bad address '{host}': {}", super::plain(&error)))?;
    let mut connected = Err(format!("bad address '{host}'"));
    for address in addresses {
        connected = match timeout {
            // Not every target can connect with a timeout; then it is the server's.
            Some(timeout) => TcpStream::connect_timeout(&address, timeout).or_else(|error| match error.kind() {
                std::io::ErrorKind::Unsupported => TcpStream::connect(address),
                _ => Err(error),
            }),
            None => TcpStream::connect(address),
        }
        .map_err(failed);
        if connected.is_ok() {
            break;
        }
    }
    let mut stream = connected?;
    // Where it can't be set, the server decides how long an answer takes.
    let _ = stream.set_read_timeout(timeout);
    let method = if data.is_some() { "POST" } else { "GET" };
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n");
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    if let Some(data) = data {
        text.push_str(&format!(
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
            data.len()
        ));
    }
    text.push_str("\r\n");
    text.push_str(data.unwrap_or_default());
    stream.write_all(text.as_bytes()).map_err(failed)?;
    Response::read(BufReader::new(stream)).map_err(|error| format!("bad answer from {host}:{port}: {error}"))
}

impl Url {
    fn parse(text: &str) -> Result<Url, String> {
        let rest = match text.split_once("://") {
            None => text,
            Some(("http", rest)) => rest,
            Some((scheme, _)) => return Err(format!("{scheme}: only plain HTTP is supported")),
        };
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("bad port in '{text}'"))?)
            }
            _ => (authority, 80),
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { host: host.trim_matches(['[', ']']).to_owned(), port, path })
    }

    fn join(&self, location: &str) -> String {
        if location.contains("://") {
            return location.to_owned();
        }
        let dir = if location.starts_with('/') { "" } else { self.path.rsplit_once('/').map_or("", |(dir, _)| dir) };
        let slash = if location.starts_with('/') { "" } else { "/" };
        format!("http://{}:{}{dir}{slash}{location}", self.host, self.port)
    }
}

impl Response {
    fn read(mut stream: BufReader<TcpStream>) -> std::io::Result<Response> {
        let status_line = line(&mut stream)?;
        let code = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.filter(|_| status_line.starts_with("HTTP/"));
        let code = code.ok_or_else(|| std::io::Error::other(format!("no HTTP: {status_line}")))?;
        let (mut location, mut length, mut is_chunked) = (None, None, false);
        loop {
            let header = line(&mut stream)?;
            if header.is_empty() {
                return Ok(Response { status_line, code, location, length, is_chunked, body: stream });
            }
            let Some((name, value)) = header.split_once(':') else { continue };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "location" => location = Some(value.to_owned()),
                "content-length" => length = value.parse().ok(),
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                _ => {}
            }
        }
    }

    fn read_body(mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if !self.is_chunked {
            let read = match self.length {
                Some(length) => self.body.take(length).read_to_end(&mut body)? as u64,
                None => self.body.read_to_end(&mut body)? as u64,
            };
            return match self.length {
                Some(length) if read < length => Err(std::io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(body),
            };
        }
        loop {
            let size = line(&mut self.body)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| std::io::Error::other("bad chunk"))?;
            if size == 0 {
                return Ok(body);
            }
            if ((&mut self.body).take(size).read_to_end(&mut body)? as u64) < size {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            line(&mut self.body)?;
        }
    }
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    // A header line longer than this is no server's that means well.
    stream.take(64 * 1024).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned())
}
