//! Lifecycle hooks on the wire: exec in the container, HTTP GET.

use std::net::Ipv4Addr;

use husk_engine::Container as Running;
use husk_engine::net::Protocol;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};

use crate::instance::{ExecFailure, exec};
use crate::probes;

/// Runs a hook to its end. The core times `sleep` itself.
pub(crate) async fn run(
    handler: &LifecycleHandler,
    container: &Container,
    running: &Running,
    ip: Ipv4Addr,
) -> Result<(), String> {
    match (&handler.exec, &handler.http_get) {
        (Some(action), _) => {
            let done = exec(running, action.command.as_deref().unwrap_or_default()).await;
            done.map_err(|(ExecFailure::Failed(message) | ExecFailure::NotRun(message))| message)
        }
        (None, Some(action)) => {
            let address = probes::address(action.host.as_deref(), &action.port, container, ip)?;
            // Whatever the status, the hook was delivered (HOOK-03).
            probes::http::get(action, address, running.locate(Protocol::Tcp, address)).await.map(|_| ())
        }
        (None, None) => Err("this kind of hook is not supported yet: use exec, httpGet or sleep".into()),
    }
}
