//! What a `securityContext` means for a guest that has no users and no kernel (META-06).
//!
//! A guest can do what its imports let it, and nothing else, whoever it is said to run as. Whom its files belong to is in
//! [`users`](crate::users). What is left of a security context:
//!
//! * `readOnlyRootFilesystem` holds for the container's own root directory.
//! * `runAsNonRoot` is held against `runAsUser`: a manifest that contradicts itself doesn't start.
//! * Capabilities are host interfaces. Who drops `ALL` computes and writes to its output and to its volumes, but has no sockets,
//!   unless it claims them: by a port in `ports`, or a capability of the network in `add`.
//! * Everything else speaks of processes and kernels, of which there are none: it is validated and has no effect.

use k8s_openapi::api::core::v1::{Container, Pod};

/// Says why a container may not start.
pub(crate) fn check(pod: &Pod, container: &Container) -> Result<(), String> {
    let (own, shared) =
        (container.security_context.as_ref(), pod.spec.as_ref().and_then(|s| s.security_context.as_ref()));
    let not_root = own.and_then(|own| own.run_as_non_root).or(shared.and_then(|shared| shared.run_as_non_root));
    let user = own.and_then(|own| own.run_as_user).or(shared.and_then(|shared| shared.run_as_user));
    if not_root == Some(true) && user == Some(0) {
        let meta = &pod.metadata;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        return Err(format!(
            "container's runAsUser breaks non-root policy (pod: \"{}_{}({})\", container: {})",
            part(&meta.name),
            part(&meta.namespace),
            part(&meta.uid),
            container.name
        ));
    }
    Ok(())
}

/// Whether a container may open sockets.
pub(crate) fn has_network(container: &Container) -> bool {
    let capabilities = container.security_context.as_ref().and_then(|context| context.capabilities.as_ref());
    let Some(capabilities) = capabilities else { return true };
    // Upstream takes both spellings.
    let plain = |name: &String| name.to_ascii_uppercase().trim_start_matches("CAP_").to_owned();
    let drops_all = capabilities.drop.iter().flatten().any(|name| plain(name) == "ALL");
    let adds_network = || {
        let mut added = capabilities.add.iter().flatten().map(plain);
        added.any(|name| name == "ALL" || name.starts_with("NET_"))
    };
    !drops_all || adds_network() || container.ports.as_ref().is_some_and(|ports| !ports.is_empty())
}

/// Whether the root directory is read-only.
pub(crate) fn has_read_only_root(container: &Container) -> bool {
    container.security_context.as_ref().and_then(|context| context.read_only_root_filesystem).unwrap_or(false)
}
