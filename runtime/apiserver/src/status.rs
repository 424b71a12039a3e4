//! Errors as clients get them: `Status` objects with code, reason and details.

use husk_api::{ErrorKind, FieldError};
use serde_json::{Map, Value, json};

use crate::resource::Resource;

/// A request that failed: what a client is told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Reason for programs, as in `NotFound`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// `details` of the status.
    pub details: Map<String, Value>,
}

impl ApiError {
    /// With a code, a reason and a message.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Map::new() }
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// No such path.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// No such object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", resource.qualified())).about(resource, name)
    }

    /// The name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// The object is not as the client thinks it is.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The object was changed since the client read it.
    pub fn outdated(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// The object breaks rules.
    pub fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Self {
        let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let what = if let [only] = list.as_slice() { only.clone() } else { format!("[{}]", list.join(", ")) };
        let kind = resource.qualified_kind();
        let mut error = Self::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {what}"));
        error.details.insert("name".into(), name.into());
        if !resource.group.is_empty() {
            error.details.insert("group".into(), resource.group.into());
        }
        error.details.insert("kind".into(), resource.kind.into());
        error.causes(errors.iter().map(|error| Cause {
            reason: reason(error.kind),
            message: error.message(),
            field: error.field.clone(),
        }))
    }

    /// What was asked for is not allowed.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// The server doesn't do this to that.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// The answer can't be given in a form that the client takes.
    pub fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json, application/yaml";
        Self::new(406, "NotAcceptable", message)
    }

    /// The body has a form that isn't read.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// What a client wants to go on from is forgotten.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The body is too long.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// A fault of the server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {}", message.into()))
    }

    /// Names the object that it is about.
    #[must_use]
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        if !name.is_empty() {
            self.details.insert("name".into(), name.into());
        }
        if !resource.group.is_empty() {
            self.details.insert("group".into(), resource.group.into());
        }
        self.details.insert("kind".into(), resource.plural.into());
        self
    }

    /// With more to say about single fields or causes.
    #[must_use]
    pub fn causes(mut self, causes: impl IntoIterator<Item = Cause>) -> Self {
        let causes: Vec<Value> = causes.into_iter().map(Cause::into_json).collect();
        self.details.insert("causes".into(), causes.into());
        self
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.details.is_empty() {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}

/// One of `details.causes`.
#[derive(Clone, Debug)]
pub struct Cause {
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The field; empty if it isn't about one.
    pub field: String,
}

impl Cause {
    fn into_json(self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            cause["field"] = self.field.into();
        }
        cause
    }
}

const fn reason(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "FieldValueNotFound",
        ErrorKind::Required => "FieldValueRequired",
        ErrorKind::Duplicate => "FieldValueDuplicate",
        ErrorKind::Invalid => "FieldValueInvalid",
        ErrorKind::NotSupported => "FieldValueNotSupported",
        ErrorKind::Forbidden => "FieldValueForbidden",
        ErrorKind::TooLong => "FieldValueTooLong",
        ErrorKind::TooMany => "FieldValueTooMany",
    }
}
