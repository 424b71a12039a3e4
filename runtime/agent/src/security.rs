//! What a `securityContext` means for a guest that has no users and no kernel (META-06).
//!
//! A guest can do what its imports let it, and nothing else, whoever it is said to run as. Whom its files belong to is in
//! [`users`](crate::users). What is left of a security context:
//!
//! * `readOnlyRootFilesystem` holds for the container's own root directory.
//! * Capabilities are host interfaces. Who drops `ALL` computes and writes to its output and to its volumes, but has no sockets,
//!   unless it claims them: by a port in `ports`, or a capability of the network in `add`.
//! * Everything else speaks of processes and kernels, of which there are none: it is validated and has no effect.

use k8s_openapi::api::core::v1::{Container, Pod, PodSecurityContext};

/// Who a container is to be; its own context wins over that of its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `runAsUser`.
    pub(crate) user: Option<i64>,
    /// `runAsGroup`.
    pub(crate) group: Option<i64>,
}

/// What a manifest says.
pub(crate) fn wanted_user(pod: &Pod, container: &Container) -> Wanted {
    let (own, shared) = (container.security_context.as_ref(), of_pod(pod));
    Wanted {
        user: own.and_then(|own| own.run_as_user).or(shared.and_then(|shared| shared.run_as_user)),
        group: own.and_then(|own| own.run_as_group).or(shared.and_then(|shared| shared.run_as_group)),
    }
}

/// `runAsNonRoot`.
pub(crate) fn must_not_be_root(pod: &Pod, container: &Container) -> bool {
    let own = container.security_context.as_ref().and_then(|own| own.run_as_non_root);
    own.or(of_pod(pod).and_then(|shared| shared.run_as_non_root)).unwrap_or(false)
}

/// Groups of all containers of a pod beside their own, each with the field that names it.
pub(crate) fn more_groups(pod: &Pod) -> impl Iterator<Item = (&'static str, i64)> {
    of_pod(pod).into_iter().flat_map(|shared| {
        let supplemental = shared.supplemental_groups.iter().flatten().map(|id| ("supplementalGroups", *id));
        shared.fs_group.map(|id| ("fsGroup", id)).into_iter().chain(supplemental)
    })
}

/// A container, as upstream names it in messages.
pub(crate) fn named(pod: &Pod, container: &Container) -> String {
    let meta = &pod.metadata;
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let (name, namespace, uid) = (part(&meta.name), part(&meta.namespace), part(&meta.uid));
    format!("(pod: \"{name}_{namespace}({uid})\", container: {})", container.name)
}

fn of_pod(pod: &Pod) -> Option<&PodSecurityContext> {
    pod.spec.as_ref()?.security_context.as_ref()
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
