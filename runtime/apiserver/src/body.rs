//! Bodies of requests: bounded, in the forms that clients send.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;

use crate::protobuf;
use crate::status::ApiError;
use husk_api::RawObject;

/// As upstream: objects are small.
pub(crate) const MAX_BODY: usize = 3 << 20;

/// A client that sends more slowly is given up.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The rest of a body that nobody wanted has less time.
const FINISH: Duration = Duration::from_secs(5);
/// And is read so far: what is larger by mistake is told so.
const FINISH_SIZE: usize = 64 << 20;

/// A body with the type its sender gave it.
#[derive(Debug)]
pub(crate) struct Body {
    /// Without parameters; JSON if none was given, as one client does.
    pub(crate) media_type: String,
    /// The bytes.
    pub(crate) bytes: Bytes,
}

impl Body {
    /// Reads a body to its end, or to the limit.
    pub(crate) async fn read(content_type: Option<&str>, body: &mut Incoming) -> Result<Self, ApiError> {
        let media_type = content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
        let media_type = if media_type.is_empty() { "application/json" } else { media_type };
        let collected = tokio::time::timeout(TIMEOUT, Limited::new(body, MAX_BODY).collect());
        match collected.await.map_err(|_| ApiError::new(408, "Timeout", "the body didn't come in time"))? {
            Ok(collected) => Ok(Self { media_type: media_type.to_ascii_lowercase(), bytes: collected.to_bytes() }),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ApiError::too_large(MAX_BODY)),
            Err(error) => Err(ApiError::bad_request(format!("the body could not be read: {error}"))),
        }
    }

    /// Reads what is left of a body that nobody wanted: who still sends when the connection closes hears that it broke, and not
    /// why the request was refused.
    pub(crate) async fn finish(body: &mut Incoming) {
        let mut rest = Limited::new(body, FINISH_SIZE);
        let reading = async { while let Some(Ok(_)) = rest.frame().await {} };
        let _ = tokio::time::timeout(FINISH, reading).await;
    }

    /// Was anything sent?
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// As an object.
    pub(crate) fn object(&self) -> Result<RawObject, ApiError> {
        match self.media_type.as_str() {
            "application/json" => self.json(),
            "application/yaml" => self.yaml(),
            "application/vnd.kubernetes.protobuf" => {
                let value = protobuf::object(&self.bytes).map_err(|error| match error {
                    protobuf::Error::UnknownKind(kind) => {
                        ApiError::unsupported_media_type(&format!("application/json, application/yaml for {kind}"))
                    }
                    protobuf::Error::Malformed => ApiError::bad_request("the body is no Kubernetes protobuf object"),
                })?;
                Ok(RawObject { value, repeated: Vec::new() })
            }
            _ => Err(ApiError::unsupported_media_type(
                "application/json, application/yaml, application/vnd.kubernetes.protobuf",
            )),
        }
    }

    /// As JSON, whatever its type.
    pub(crate) fn json(&self) -> Result<RawObject, ApiError> {
        husk_api::json_of_json(&self.bytes)
            .map_err(|error| ApiError::bad_request(format!("the body is not JSON: {error}")))
    }

    /// As YAML, which JSON may stand for.
    pub(crate) fn yaml(&self) -> Result<RawObject, ApiError> {
        if let Ok(read) = husk_api::json_of_json(&self.bytes) {
            return Ok(read);
        }
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|_| ApiError::bad_request("the body is not YAML: it is not UTF-8"))?;
        husk_api::json_of_yaml(text)
            .map_err(|problem| ApiError::bad_request(format!("the body is not YAML: {problem}")))
    }
}
