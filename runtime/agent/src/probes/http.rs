//! HTTP GET for probes and hooks, with upstream's habits: default headers, redirects on the same host only.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use tokio::net::TcpStream;

/// How we call ourselves, as upstream's probes do.
const PROBE_AGENT: &str = concat!("kube-probe/1.37 husk/", env!("CARGO_PKG_VERSION"));
/// So much of an answer is read.
const MOST_BODY: usize = 10 * 1024;
/// So many redirects are followed.
const MOST_REDIRECTS: usize = 10;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A status from 200 to 399.
    Well,
    /// A redirect that isn't followed; to where.
    Elsewhere(String),
    /// Another status, with the beginning of the body.
    Bad(u16, String),
}

/// Gets what the action names from the pod at `address`, which the node reaches `at` (another one for ports that it may not
/// bind itself).
pub(crate) async fn get(action: &HTTPGetAction, address: SocketAddr, at: SocketAddr) -> Result<Answer, String> {
    if action.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) {
        return Err("scheme HTTPS is not supported yet: probe over HTTP".into());
    }
    let mut path = match action.path.as_deref() {
        None | Some("") => "/".to_owned(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("/{path}"),
    };
    for _ in 0..=MOST_REDIRECTS {
        let response = once(action, address, at, &path).await?;
        let status = response.status();
        if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
            return judge(response).await;
        }
        let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
        match location.as_deref().map(|to| on_this_host(to, &path, address)) {
            Some(Some(next)) => path = next,
            Some(None) => return Ok(Answer::Elsewhere(location.unwrap_or_default())),
            None => return Err(format!("{status} without a Location")),
        }
    }
    Ok(Answer::Elsewhere(format!("stopped after {MOST_REDIRECTS} redirects")))
}

async fn once(
    action: &HTTPGetAction,
    address: SocketAddr,
    at: SocketAddr,
    path: &str,
) -> Result<Response<hyper::body::Incoming>, String> {
    let stream = TcpStream::connect(at).await.map_err(|error| format!("dial tcp {address}: {error}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .title_case_headers(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // Ends with the request: nobody else holds its other half.
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request(action, address, path)?).await;
    if answer.is_err() {
        connection.abort();
    }
    answer.map_err(|error| format!("Get \"http://{address}{path}\": {error}"))
}

fn request(action: &HTTPGetAction, address: SocketAddr, path: &str) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::get(path).body(Empty::new()).map_err(|error| format!("path `{path}`: {error}"))?;
    let headers = request.headers_mut();
    for header in action.http_headers.iter().flatten() {
        let bad = || format!("httpHeaders: `{}` can't be sent", header.name);
        let name: HeaderName = header.name.parse().map_err(|_| bad())?;
        let value = HeaderValue::from_str(&header.value).map_err(|_| bad())?;
        headers.append(name, value);
    }
    // Given but empty means: don't send.
    for (name, value) in [(USER_AGENT, PROBE_AGENT), (ACCEPT, "*/*")] {
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
    if !headers.contains_key(HOST) {
        let host = HeaderValue::from_str(&address.to_string()).map_err(|error| error.to_string())?;
        headers.insert(HOST, host);
    }
    Ok(request)
}

async fn judge(response: Response<hyper::body::Incoming>) -> Result<Answer, String> {
    let status = response.status().as_u16();
    if (200..400).contains(&status) {
        return Ok(Answer::Well);
    }
    // What is longer doesn't matter: the status is what counts.
    let body = Limited::new(response.into_body(), MOST_BODY).collect().await.map(|body| body.to_bytes());
    let text = body.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    Ok(Answer::Bad(status, text))
}

/// The path on this host that a Location means; none if it is on another host.
fn on_this_host(location: &str, from: &str, address: SocketAddr) -> Option<String> {
    if let Some(rest) = location.strip_prefix("http://") {
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let same = name == address.ip().to_string()
            && host.rsplit_once(':').is_none_or(|(_, p)| p == address.port().to_string());
        return same.then(|| if path.is_empty() { "/".into() } else { path.to_owned() });
    }
    if location.contains("://") || location.starts_with("//") {
        return None;
    }
    if location.starts_with('/') {
        return Some(location.to_owned());
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    Some(format!("{folder}/{location}"))
}

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn statuses_from_200_to_399_are_well_and_headers_are_as_asked() {
        let (address, requests) = server(vec![answer("204 x", ""), answer("503 x", ""), answer("200 x", "")]).await;
        let plain = action("healthz", &[]);
        assert_eq!(get(&plain, address, address).await, Ok(Answer::Well));
        assert_eq!(get(&plain, address, address).await, Ok(Answer::Bad(503, "no".into())));
        let own =
            action("/x", &[("User-Agent", ""), ("Accept", "text/plain"), ("X-A", "1"), ("X-A", "2"), ("Host", "me")]);
        assert_eq!(get(&own, address, address).await, Ok(Answer::Well));
        let requests = requests.await.expect("served");
        assert!(requests[0].starts_with("GET /healthz HTTP/1.1\r\n"), "{}", requests[0]);
        assert!(requests[0].contains("User-Agent: kube-probe/1.37") && requests[0].contains("Accept: */*\r\n"));
        let own = requests[2].to_lowercase();
        assert!(!own.contains("user-agent") && own.contains("accept: text/plain") && own.contains("host: me"));
        assert_eq!(own.matches("x-a: ").count(), 2);
    }

    #[tokio::test]
    async fn redirects_are_followed_on_the_same_host_only() {
        let to = |location: &str| answer("302 x", &format!("Location: {location}\r\n"));
        let (address, requests) = server(vec![to("/b"), to("c"), answer("200 x", "")]).await;
        assert_eq!(get(&action("/a", &[]), address, address).await, Ok(Answer::Well));
        assert!(requests.await.expect("served")[2].starts_with("GET /c "));
        let (address, _) = server(vec![to("http://elsewhere.example/")]).await;
        let elsewhere = Answer::Elsewhere("http://elsewhere.example/".into());
        assert_eq!(get(&action("/", &[]), address, address).await, Ok(elsewhere));
        let (address, _) = server(vec![to("/again"); 11]).await;
        assert!(
            matches!(get(&action("/", &[]), address, address).await, Ok(Answer::Elsewhere(why)) if why.contains("10 redirects"))
        );
    }
}
