//! The gRPC health check, `grpc.health.v1.Health/Check`, as upstream's prober makes it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use husk_core::backoff::Spoken;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::Unwell;
use super::carrier::Carrier;
use super::dial::{ConnectionError, Endpoint, Reach, dial};
use super::greeting::{Greeted, Greeting};
use super::http::Caller;
use super::tls;
use super::url::parse;

/// An answer is a few bytes long.
const MOST_ANSWER: usize = 10 * 1024;
/// Who couldn't connect tries again after this, and then after longer.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGER: f64 = 1.6;

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Check<'a> {
    /// Which of the server's services; all of it if empty.
    pub(super) service: &'a str,
    /// Where it is.
    pub(super) endpoint: Endpoint,
    /// TLS, without a look at the certificate.
    pub(super) tls: bool,
}

/// How a check ended that was not answered.
enum Refusal {
    /// There is nobody who speaks HTTP/2.
    NotConnected(ConnectionError),
    /// There is, and this was the answer.
    Answered(Status),
}

impl From<ConnectionError> for Refusal {
    fn from(error: ConnectionError) -> Self {
        Self::NotConnected(error)
    }
}

/// Asks whether a service is well. Who can't connect tries again as long as there is time.
pub(super) async fn check(check: Check<'_>, reach: &impl Reach, timeout: Duration) -> Result<(), Unwell> {
    let greeting = Arc::new(Greeting::default());
    let asked = async {
        let mut pause = FIRST_PAUSE;
        loop {
            match ask(&check, reach, timeout, &greeting).await {
                Err(Refusal::NotConnected(error)) if !error.is_the_nodes() => sleep(pause).await,
                answer => return answer,
            }
            pause = pause.mul_f64(LONGER);
        }
    };
    let (endpoint, limit) = (&check.endpoint, Spoken(timeout));
    Err(Unwell::Failed(match timeout_at(Instant::now() + timeout, asked).await {
        Ok(Ok(status)) if status == ServingStatus::Serving as i32 => return Ok(()),
        Ok(Ok(status)) => {
            let status = ServingStatus::try_from(status)
                .map_or_else(|_| status.to_string(), |status| status.as_str_name().to_owned());
            format!("service unhealthy (responded with {status:?})")
        }
        Ok(Err(Refusal::NotConnected(error))) => return Err(error.into()),
        Ok(Err(Refusal::Answered(status))) => match status.code() {
            Code::Unimplemented => format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                status.message()
            ),
            Code::DeadlineExceeded => format!("timeout: health rpc did not complete within {limit}"),
            code => {
                let message = status.message();
                format!("error: health rpc probe failed: rpc error: code = {} desc = {message}", name(code))
            }
        },
        Err(_) if greeting.was_heard() => format!("timeout: health rpc did not complete within {limit}"),
        Err(_) => {
            format!("timeout: failed to connect service \"{endpoint}\" within {limit}: context deadline exceeded")
        }
    }))
}

/// As upstream spells it.
fn name(code: Code) -> String {
    if code == Code::Cancelled { "Canceled".into() } else { format!("{code:?}") }
}

async fn ask(
    check: &Check<'_>,
    reach: &impl Reach,
    timeout: Duration,
    greeting: &Arc<Greeting>,
) -> Result<i32, Refusal> {
    let tcp = dial(&check.endpoint, reach).await?;
    if !check.tls {
        return call(tcp, check, timeout, greeting).await;
    }
    let stream = tls::connect(tcp, &check.endpoint.host, tls::GRPC).await?;
    if tls::agreed(&stream) != Some(tls::H2) {
        return Err(ConnectionError::Tls("the server doesn't say that it speaks HTTP/2".into()).into());
    }
    call(stream, check, timeout, greeting).await
}

async fn call(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    check: &Check<'_>,
    timeout: Duration,
    greeting: &Arc<Greeting>,
) -> Result<i32, Refusal> {
    let carrier = Carrier::default();
    let stream = TokioIo::new(Greeted::new(stream, greeting.clone()));
    let handshake = http2::handshake(carrier.spawner(), stream).await;
    let (sender, connection) = handshake.map_err(ConnectionError::from)?;
    carrier.carry(connection);
    let scheme = if check.tls { "https" } else { "http" };
    let origin = parse(scheme, &check.endpoint.to_string(), "").unwrap_or_default();
    let mut request = tonic::Request::new(HealthCheckRequest { service: check.service.to_owned() });
    request.set_timeout(timeout);
    let mut client = HealthClient::with_origin(Sender(sender), origin).max_decoding_message_size(MOST_ANSWER);
    match client.check(request).await {
        Ok(answer) => Ok(answer.into_inner().status),
        Err(status) if greeting.was_heard() => Err(Refusal::Answered(status)),
        Err(status) => Err(ConnectionError::NotHttp2(status.message().to_owned()).into()),
    }
}

/// A connection as gRPC takes it.
struct Sender(http2::SendRequest<Body>);

impl tower_service::Service<Request<Body>> for Sender {
    type Response = Response<Incoming>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.0.poll_ready(context).map_err(lost)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(Caller::Probe.user_agent()));
        let answer = self.0.send_request(request);
        Box::pin(async move { only_grpc(answer.await.map_err(lost)?) })
    }
}

/// What isn't gRPC comes from a server that knows nothing of it: then its HTTP status has to do.
fn only_grpc(answer: Response<Incoming>) -> Result<Response<Incoming>, Status> {
    let kind = answer.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()));
    let why = match kind {
        Some(kind) if kind.starts_with("application/grpc") => return Ok(answer),
        Some(kind) => format!("transport: received unexpected content-type {kind:?}"),
        None => "malformed header: missing HTTP content-type".into(),
    };
    let status = answer.status();
    let code = match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    let (number, reason) = (status.as_u16(), status.canonical_reason().unwrap_or_default());
    Err(Status::new(code, format!("unexpected HTTP status code received from server: {number} ({reason}); {why}")))
}

fn lost(error: hyper::Error) -> Status {
    Status::unavailable(ConnectionError::from(error).to_string())
}
