//! HTTP GET for probes and hooks, with upstream's habits: default headers, no look at certificates, redirects on the same host.

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Request, Response, Uri};
use k8s_openapi::api::core::v1::HTTPGetAction;

use super::connection::{Connection, Speech};
use super::dial::{ConnectionError, Endpoint, Reach};
use super::url::{join, parse};

/// So much of an answer is read.
const MOST_BODY: usize = 10 * 1024;
/// So many redirects are followed.
const MOST_REDIRECTS: usize = 10;
/// Statuses that mean a redirect if they come with a Location.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Who asks: how we call ourselves, as upstream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A probe.
    Probe,
    /// A lifecycle hook.
    Hook,
}

impl Caller {
    pub(crate) const fn user_agent(self) -> &'static str {
        match self {
            Self::Probe => concat!("kube-probe/1.37 husk/", env!("CARGO_PKG_VERSION")),
            Self::Hook => concat!("kube-lifecycle/1.37 husk/", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// What came back, after the redirects that are followed.
pub(crate) struct Answer {
    response: Response<Incoming>,
    /// Lives until the body is read.
    _connection: Connection,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The beginning of its body, or why that didn't come; what follows is of no interest.
    pub(crate) async fn body(self) -> Result<String, ConnectionError> {
        let mut read = Vec::new();
        let mut body = self.response.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() >= MOST_BODY {
                read.truncate(MOST_BODY);
                break;
            }
        }
        Ok(String::from_utf8_lossy(&read).into_owned())
    }
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GetError {
    /// The action can't be sent; names its field.
    #[error("{0}")]
    Unsendable(String),
    /// There is no answer.
    #[error("Get \"{url}\": {error}")]
    NoAnswer {
        /// What was asked for.
        url: String,
        /// Why not.
        error: ConnectionError,
    },
}

/// Gets what the action names.
pub(crate) async fn get(
    action: &HTTPGetAction,
    endpoint: &Endpoint,
    caller: Caller,
    reach: &impl Reach,
) -> Result<Answer, GetError> {
    let mut url = url(action, endpoint)?;
    let mut headers = headers(action, caller)?;
    let in_the_clear = if action.protocol.as_deref() == Some("HTTP2") { Speech::Http2 } else { Speech::Http1 };
    let mut redirects = 0;
    loop {
        let answer = once(&url, in_the_clear, &headers, reach).await?;
        let followed = redirect(&answer.response, &url).filter(|_| redirects < MOST_REDIRECTS);
        let Some((next, keeps_name)) = followed else { return Ok(answer) };
        // Who is named anew isn't called by the old name.
        if !keeps_name {
            headers.remove(HOST);
        }
        url = next;
        redirects += 1;
    }
}

/// What an action asks for.
pub(crate) fn url(action: &HTTPGetAction, endpoint: &Endpoint) -> Result<Uri, GetError> {
    let (scheme, path) = (if is_https(action) { "https" } else { "http" }, action.path.as_deref().unwrap_or_default());
    let url = parse(scheme, &endpoint.to_string(), path);
    url.ok_or_else(|| GetError::Unsendable(format!("httpGet: `{path}` of `{endpoint}` can't be asked for")))
}

pub(crate) fn is_https(action: &HTTPGetAction) -> bool {
    action.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

async fn once(url: &Uri, in_the_clear: Speech, headers: &HeaderMap, reach: &impl Reach) -> Result<Answer, GetError> {
    let (speech, port) = if url.scheme_str() == Some("https") { (Speech::Tls, 443) } else { (in_the_clear, 80) };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let endpoint = Endpoint { host, port: url.port_u16().unwrap_or(port) };
    let answer = async {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers.clone();
        let mut connection = Connection::open(&endpoint, speech, reach).await?;
        let response = connection.send(request).await?;
        Ok(Answer { response, _connection: connection })
    };
    answer.await.map_err(|error| GetError::NoAnswer { url: url.to_string(), error })
}

/// The headers to send, but for Host if nobody asked for one.
fn headers(action: &HTTPGetAction, caller: Caller) -> Result<HeaderMap, GetError> {
    let mut headers = HeaderMap::new();
    for header in action.http_headers.iter().flatten() {
        let bad = |_| GetError::Unsendable(format!("httpHeaders: `{}` can't be sent", header.name));
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|error| bad(error.to_string()))?;
        let value = HeaderValue::from_str(&header.value).map_err(|error| bad(error.to_string()))?;
        headers.append(name, value);
    }
    // Given but empty means: don't send.
    for (name, value) in [(USER_AGENT, caller.user_agent()), (ACCEPT, "*/*")] {
        match headers.get(&name) {
            None => {
                headers.insert(name, HeaderValue::from_static(value));
            }
            Some(value) if value.is_empty() => {
                headers.remove(name);
            }
            Some(_) => {}
        }
    }
    if headers.get(HOST).is_some_and(HeaderValue::is_empty) {
        headers.remove(HOST);
    }
    Ok(headers)
}

/// Where an answer leads on the same host, and whether its host goes on to be called as before.
fn redirect(response: &Response<Incoming>, from: &Uri) -> Option<(Uri, bool)> {
    if !REDIRECTS.contains(&response.status().as_u16()) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let (next, is_absolute) = join(from, location)?;
    (next.host() == from.host()).then_some((next, !is_absolute))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use k8s_openapi::api::core::v1::HTTPHeader;
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn action(path: &str, headers: &[(&str, &str)]) -> HTTPGetAction {
        let header = |(name, value): &(&str, &str)| HTTPHeader { name: (*name).into(), value: (*value).into() };
        HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::Int(0),
            http_headers: Some(headers.iter().map(header).collect()),
            ..HTTPGetAction::default()
        }
    }

    /// A server that gives these answers, one per connection, and then the requests it saw.
    async fn server(answers: Vec<String>) -> (SocketAddr, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let requests = tokio::spawn(async move {
            let mut seen = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = String::new();
                let mut buffer = [0; 2048];
                while !request.contains("\r\n\r\n") {
                    let read = stream.read(&mut buffer).await.expect("read");
                    request.push_str(&String::from_utf8_lossy(&buffer[..read]));
                }
                seen.push(request);
                stream.write_all(answer.as_bytes()).await.expect("written");
            }
            seen
        });
        (address, requests)
    }

    fn answer(status: &str, headers: &str) -> String {
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 2\r\nConnection: close\r\n\r\nno")
    }

    /// The status of an answer, and its body if it came.
    async fn asked(action: &HTTPGetAction, address: SocketAddr) -> (u16, Option<String>) {
        let endpoint = Endpoint { host: address.ip().to_string(), port: address.port() };
        let answer = get(action, &endpoint, Caller::Probe, &|address| address).await.expect("an answer");
        (answer.status(), answer.body().await.ok())
    }

    #[tokio::test]
    async fn the_answer_is_told_and_headers_are_as_asked() {
        let (address, requests) = server(vec![answer("204 x", ""), answer("503 x", ""), answer("200 x", "")]).await;
        let plain = action("healthz", &[]);
        assert_eq!(asked(&plain, address).await.0, 204);
        assert_eq!(asked(&plain, address).await, (503, Some("no".into())));
        let own =
            action("/x", &[("User-Agent", ""), ("Accept", "text/plain"), ("X-A", "1"), ("X-A", "2"), ("Host", "me")]);
        assert_eq!(asked(&own, address).await.0, 200);
        let requests = requests.await.expect("served");
        assert!(requests[0].starts_with("GET /healthz HTTP/1.1\r\n"), "{}", requests[0]);
        assert!(requests[0].contains("User-Agent: kube-probe/1.37") && requests[0].contains("Accept: */*\r\n"));
        assert!(requests[0].contains(&format!("Host: {address}\r\n")), "{}", requests[0]);
        let own = requests[2].to_lowercase();
        assert!(!own.contains("user-agent") && own.contains("accept: text/plain") && own.contains("host: me"));
        assert_eq!(own.matches("x-a: ").count(), 2);
    }

    #[tokio::test]
    async fn redirects_are_followed_on_the_same_host_only() {
        let to = |location: &str| answer("302 x", &format!("Location: {location}\r\n"));
        let (other_port, there) = server(vec![answer("200 x", "")]).await;
        let hops = vec![to("/b"), to("c"), to(&format!("http://{other_port}/d"))];
        let (address, requests) = server(hops).await;
        assert_eq!(asked(&action("/a", &[("Host", "me")]), address).await.0, 200);
        assert!(requests.await.expect("served")[2].starts_with("GET /c "));
        // Who names itself is called so; another port is the same host.
        let there = &there.await.expect("served")[0];
        assert!(there.starts_with("GET /d ") && there.contains(&format!("Host: {other_port}")), "{there}");
        let (address, _) = server(vec![to("http://elsewhere.example/")]).await;
        assert_eq!(asked(&action("/", &[]), address).await.0, 302);
        let (address, _) = server(vec![answer("302 x", "")]).await;
        assert_eq!(asked(&action("/", &[]), address).await.0, 302);
        let (address, requests) = server(vec![to("/again"); 11]).await;
        assert_eq!(asked(&action("/", &[]), address).await.0, 302);
        assert_eq!(requests.await.expect("served").len(), 11);
    }

    #[tokio::test]
    async fn a_body_is_read_as_far_as_it_matters() {
        let long = format!("HTTP/1.1 200 x\r\nContent-Length: 99999999\r\n\r\n{}", "x".repeat(20_000));
        let (address, _) = server(vec![long, "HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nbroken".into()]).await;
        assert_eq!(asked(&action("/", &[]), address).await.1.map(|body| body.len()), Some(MOST_BODY));
        assert_eq!(asked(&action("/", &[]), address).await, (200, None));
    }
}
