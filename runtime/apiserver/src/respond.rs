//! Answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::negotiate::Form;
use crate::status::ApiError;

/// An answer.
pub type Response = hyper::Response<Payload>;

/// More warnings than these nobody reads.
const MOST_WARNINGS: usize = 32;
/// Longer ones are cut.
const LONGEST_WARNING: usize = 512;

/// The body of an answer.
#[derive(Debug)]
pub enum Payload {
    /// All of it.
    Whole(Option<Bytes>),
    /// As it comes, until the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Stream(receiver) => receiver.poll_recv(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// An object, or whatever else is JSON.
pub(crate) fn json(code: u16, object: &Value) -> Response {
    // A map of values can always be written.
    bytes(code, "application/json", serde_json::to_vec(object).unwrap_or_default().into())
}

/// The same in a form; JSON is YAML too.
pub(crate) fn in_form(code: u16, object: &Value, form: Form) -> Response {
    let mut response = json(code, object);
    if form == Form::Yaml {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    }
    response
}

/// Bytes with their type.
pub(crate) fn bytes(code: u16, content_type: &'static str, bytes: Bytes) -> Response {
    typed(code, content_type, Payload::Whole(Some(bytes)))
}

/// Bytes as they come.
pub(crate) fn stream(content_type: &'static str, receiver: mpsc::Receiver<Bytes>) -> Response {
    typed(200, content_type, Payload::Stream(receiver))
}

/// An error as its status.
pub(crate) fn error(error: &ApiError) -> Response {
    let mut response = json(error.code, &error.status());
    if let Some(seconds) = error.details.get("retryAfterSeconds").and_then(Value::as_u64) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Adds warnings, which `kubectl` prints.
pub(crate) fn with_warnings(mut response: Response, warnings: &[String]) -> Response {
    for warning in warnings.iter().take(MOST_WARNINGS) {
        let text: String = warning.chars().filter(|c| !c.is_control()).take(LONGEST_WARNING).collect();
        let quoted = format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_bytes(quoted.as_bytes()) {
            response.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
    response
}

fn typed(code: u16, content_type: &'static str, payload: Payload) -> Response {
    let mut response = Response::new(payload);
    *response.status_mut() = hyper::StatusCode::from_u16(code).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
