//! What there is to be seen of pods.

use std::sync::Arc;

use husk_core::io::PodUid;
use husk_core::spec::{ContainerSpec, ProbeKind};

use super::Driver;
use crate::local::PodState;
use crate::notice::Notice;
use crate::view::{self, ContainerView};

impl Driver {
    /// All pods as they are now.
    pub(super) fn states(&self) -> Vec<PodState> {
        let state = |uid: &PodUid| {
            Some(PodState {
                uid: uid.clone(),
                pod: self.pods.get(uid)?.pod.clone(),
                status: self.node.status(uid).cloned().map(Arc::new),
                views: self.views(uid),
                deletion: self.node.deletion(uid),
            })
        };
        self.pods.keys().filter_map(state).collect()
    }

    /// How a pod is now.
    pub(super) fn status_of(&self, pod: PodUid) -> Option<Notice> {
        let (status, views) = (Arc::new(self.node.status(&pod)?.clone()), self.views(&pod));
        Some(Notice::Status { at: self.now(), status, deletion: self.node.deletion(&pod), views, pod })
    }

    fn views(&self, pod: &PodUid) -> Arc<[ContainerView]> {
        let containers = self.node.spec(pod).into_iter().flat_map(|spec| spec.all_containers());
        containers.map(|(_, container)| self.view(pod, container)).collect()
    }

    fn view(&self, pod: &PodUid, container: &ContainerSpec) -> ContainerView {
        let name = &container.name;
        let local = self.pods.get(pod).and_then(|local| Some((local, local.container(name)?)));
        // One that an earlier agent has started is who the manifest says.
        let user = local.and_then(|(local, container)| {
            let started = local.users.get(name).cloned();
            started.or_else(|| self.ground.users.of_manifest(&local.pod, container))
        });
        let kinds = ProbeKind::ALL.into_iter().filter(|kind| container.probe(*kind).is_some());
        ContainerView {
            verdicts: kinds.map(|kind| (kind, self.node.probe_verdict(pod, name, kind))).collect(),
            back_off_until: self.node.retry_at(pod, name),
            user,
            mounts: local.map(|(_, container)| view::mounts(container)).unwrap_or_default(),
            name: name.clone(),
        }
    }
}
