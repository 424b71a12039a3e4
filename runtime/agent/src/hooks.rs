//! Lifecycle hooks on the wire: exec in the container, HTTP GET.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};

use crate::instance::Running;
use crate::probes;

/// Runs a hook to its end. The core times `sleep` itself.
pub(crate) async fn run(
    handler: &LifecycleHandler,
    container: &Container,
    running: &Running,
    ip: Ipv4Addr,
) -> Result<(), String> {
    match (&handler.exec, &handler.http_get) {
        (Some(exec), _) => match running.exec(exec.command.as_deref().unwrap_or_default()).await? {
            (0, _) => Ok(()),
            (code, output) if output.is_empty() => Err(format!("exit code {code}")),
            (code, output) => Err(format!("exit code {code}: {output}")),
        },
        (None, Some(action)) => {
            let address = probes::address(action.host.as_deref(), &action.port, container, ip)?;
            // Whatever the status, the hook was delivered (HOOK-03).
            probes::http::get(action, address).await.map(|_| ())
        }
        (None, None) => Err("this kind of hook is not supported yet: use exec, httpGet or sleep".into()),
    }
}
