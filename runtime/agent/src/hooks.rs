//! Lifecycle hooks on the wire: exec in the container, HTTP GET.

use k8s_openapi::api::core::v1::{HTTPGetAction, LifecycleHandler};

use crate::instance::{ExecFailure, exec};
use crate::probes::http::{self, Caller, GetError};
use crate::probes::{ConnectionError, Endpoint, Reach, Target};

/// A hook that ran, with what people should know of it.
pub(crate) type Done = Option<Remark>;

/// Something that people should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// As in an event.
    pub(crate) reason: &'static str,
    /// In words.
    pub(crate) message: String,
}

/// Runs a hook to its end. The core times `sleep` itself.
pub(crate) async fn run(handler: &LifecycleHandler, target: Target<'_>) -> Result<Done, String> {
    match (&handler.exec, &handler.http_get) {
        (Some(action), _) => {
            let done = exec(target.running, action.command.as_deref().unwrap_or_default()).await;
            done.map(|()| None).map_err(|(ExecFailure::Failed(message) | ExecFailure::NotRun(message))| message)
        }
        (None, Some(action)) => {
            get(action, &target.endpoint(action.host.as_deref(), &action.port)?, &target.reach()).await
        }
        (None, None) => Err("this kind of hook is not supported yet: use exec, httpGet or sleep".into()),
    }
}

/// Whatever the status, the hook was delivered (HOOK-03).
async fn get(action: &HTTPGetAction, endpoint: &Endpoint, reach: &impl Reach) -> Result<Done, String> {
    let error = match http::get(action, endpoint, Caller::Hook, reach).await {
        Ok(_) => return Ok(None),
        Err(error) => error,
    };
    if !matches!(error, GetError::NoAnswer { error: ConnectionError::NotTls, .. }) {
        return Err(error.to_string());
    }
    // Hooks once ignored their scheme, and manifests were written that go by that.
    match http::get(&in_the_clear(action), endpoint, Caller::Hook, reach).await {
        Ok(_) => {
            let message =
                format!("request to HTTPS lifecycle hook {endpoint} got HTTP response, retry with HTTP succeeded");
            Ok(Some(Remark { reason: "LifecycleHTTPFallback", message }))
        }
        Err(_) => Err(error.to_string()),
    }
}

/// The same, without TLS and so without what only TLS may carry.
fn in_the_clear(action: &HTTPGetAction) -> HTTPGetAction {
    let mut action = HTTPGetAction { scheme: Some("HTTP".into()), ..action.clone() };
    if let Some(headers) = &mut action.http_headers {
        headers.retain(|header| !header.name.eq_ignore_ascii_case("authorization"));
    }
    action
}
