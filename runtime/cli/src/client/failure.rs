//! What can go wrong, in the words of `kubectl`.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use crate::out::{err, printable};

/// Why a command doesn't do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server says no.
    Server(Box<Status>),
    /// Nobody listens there.
    NoAgent {
        /// Where.
        socket: PathBuf,
        /// How that was noticed.
        error: io::Error,
    },
    /// Anything else, for people.
    Other(String),
    /// It was said already.
    Told,
    /// A process ended with that code.
    Exit(u8),
    /// Who read the output has seen enough.
    NobodyReads,
}

/// What a server says when it refuses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// HTTP status code.
    pub(crate) code: u16,
    /// For programs, as in `NotFound`.
    pub(crate) reason: String,
    /// For people.
    pub(crate) message: String,
    /// What it is about.
    kind: String,
    name: String,
    /// Fields or parts that are wrong: what they are called, and what is wrong with them.
    pub(crate) causes: Vec<Cause>,
    /// What was being done with which file.
    doing: Option<String>,
}

/// One of several things that are wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Status {
    /// Of a `Status` object.
    pub(crate) fn of(object: &Value) -> Self {
        fn text(object: &Value, field: &str) -> String {
            object[field].as_str().unwrap_or_default().to_owned()
        }
        let details = &object["details"];
        let cause = |cause: &Value| Cause {
            reason: text(cause, "reason"),
            field: text(cause, "field"),
            message: text(cause, "message"),
        };
        Self {
            code: object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            reason: text(object, "reason"),
            message: text(object, "message"),
            kind: text(details, "kind"),
            name: text(details, "name"),
            causes: details["causes"].as_array().into_iter().flatten().map(cause).collect(),
            doing: None,
        }
    }

    /// Of an answer that isn't one of Kubernetes.
    pub(crate) fn unexplained(code: u16, body: &str) -> Self {
        let message = match body.trim() {
            "" => format!("the server answers with HTTP status {code}"),
            body => format!("the server answers with HTTP status {code}: {body}"),
        };
        Self { code, message, ..Self::default() }
    }

    fn line(&self) -> String {
        if self.reason == "Invalid" && !self.causes.is_empty() {
            return self.invalid();
        }
        let reason = if self.reason.is_empty() { String::new() } else { format!(" ({})", self.reason) };
        let doing = self.doing.as_deref().map(|doing| format!("{doing}: ")).unwrap_or_default();
        format!("Error from server{reason}: {doing}{}", self.message)
    }

    fn invalid(&self) -> String {
        let what = match (self.kind.as_str(), self.name.as_str()) {
            ("", "") => "request".to_owned(),
            (kind, name) => format!("{kind} {name:?}"),
        };
        let mut list: Vec<String> = Vec::new();
        for Cause { field, message, .. } in &self.causes {
            let line = if field.is_empty() { message.clone() } else { format!("{field}: {message}") };
            if !list.contains(&line) {
                list.push(line);
            }
        }
        match list.as_slice() {
            [only] => format!("The {what} is invalid: {only}"),
            _ => format!("The {what} is invalid: \n* {}", list.join("\n* ")),
        }
    }
}

impl Failure {
    /// With a text for people.
    pub(crate) fn other(message: impl Display) -> Self {
        Self::Other(message.to_string())
    }

    /// Is it that there is no such thing?
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Server(status) if status.code == 404)
    }

    /// Adds what was being done, as in `error when creating "pod.yaml"`.
    pub(crate) fn when(mut self, doing: String) -> Self {
        if let Self::Server(status) = &mut self {
            status.doing = Some(doing);
        }
        self
    }

    /// Tells people.
    pub(crate) fn tell(&self) {
        match self {
            Self::Server(status) => {
                for line in status.line().lines() {
                    err(printable(line));
                }
            }
            Self::NoAgent { socket, error } => err(format_args!(
                "error: no agent answers at {}: {error}; `husk agent` starts one, and --socket or HUSK_SOCKET says where another listens",
                socket.display()
            )),
            Self::Other(message) => {
                let message: Vec<String> = message.lines().map(printable).collect();
                err(format_args!("error: {}", message.join("\n")));
            }
            Self::Told | Self::Exit(_) | Self::NobodyReads => {}
        }
    }
}

/// Does it for each. What fails is told and doesn't hold up the others, unless nothing can be done for them either.
pub(crate) async fn each<T>(
    all: impl IntoIterator<Item = T>,
    mut work: impl AsyncFnMut(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut has_failed = false;
    for one in all {
        match work(one).await {
            Ok(()) => {}
            Err(error @ (Failure::NobodyReads | Failure::NoAgent { .. })) => return Err(error),
            Err(error) => {
                error.tell();
                has_failed = true;
            }
        }
    }
    if has_failed { Err(Failure::Told) } else { Ok(()) }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Other(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_read_as_those_of_kubectl() {
        let status = |reason: &str, causes: Value| {
            Status::of(&json!({
                "kind": "Status", "code": 422, "reason": reason, "message": "all of it",
                "details": {"kind": "Pod", "name": "web", "causes": causes},
            }))
        };
        assert_eq!(status("NotFound", json!([])).line(), "Error from server (NotFound): all of it");
        assert_eq!(Status::unexplained(502, " ").line(), "Error from server: the server answers with HTTP status 502");
        let one = json!([{"field": "spec.a", "message": "Required value"}]);
        assert_eq!(status("Invalid", one).line(), "The Pod \"web\" is invalid: spec.a: Required value");
        let two =
            json!([{"field": "a", "message": "x"}, {"field": "b", "message": "y"}, {"field": "a", "message": "x"}]);
        assert_eq!(status("Invalid", two).line(), "The Pod \"web\" is invalid: \n* a: x\n* b: y");
        let doing = Failure::Server(Box::new(status("BadRequest", json!([])))).when("error when creating \"p\"".into());
        let Failure::Server(doing) = doing else { panic!("it was one") };
        assert_eq!(doing.line(), "Error from server (BadRequest): error when creating \"p\": all of it");
    }
}
