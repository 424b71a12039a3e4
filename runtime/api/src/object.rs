//! The objects that are taken from a manifest.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplateSpec, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// An object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// `v1` Pod.
    Pod(Box<Pod>),
    /// `batch/v1` Job.
    Job(Box<Job>),
    /// `apps/v1` Deployment.
    Deployment(Box<Deployment>),
    /// `apps/v1` ReplicaSet.
    ReplicaSet(Box<ReplicaSet>),
    /// `apps/v1` DaemonSet.
    DaemonSet(Box<DaemonSet>),
    /// `apps/v1` StatefulSet.
    StatefulSet(Box<StatefulSet>),
    /// `v1` ConfigMap.
    ConfigMap(Box<ConfigMap>),
    /// `v1` Secret.
    Secret(Box<Secret>),
}

impl Object {
    /// `kind`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Pod(_) => "Pod",
            Self::Job(_) => "Job",
            Self::Deployment(_) => "Deployment",
            Self::ReplicaSet(_) => "ReplicaSet",
            Self::DaemonSet(_) => "DaemonSet",
            Self::StatefulSet(_) => "StatefulSet",
            Self::ConfigMap(_) => "ConfigMap",
            Self::Secret(_) => "Secret",
        }
    }

    /// `metadata`.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Pod(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
            Self::Deployment(object) => &object.metadata,
            Self::ReplicaSet(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::ConfigMap(object) => &object.metadata,
            Self::Secret(object) => &object.metadata,
        }
    }

    pub(crate) fn template_mut(&mut self) -> Option<&mut PodTemplateSpec> {
        match self {
            Self::Pod(_) | Self::ConfigMap(_) | Self::Secret(_) => None,
            Self::Job(object) => object.spec.as_mut().map(|spec| &mut spec.template),
            Self::Deployment(object) => Some(&mut object.spec.template),
            Self::ReplicaSet(object) => object.spec.template.as_mut(),
            Self::DaemonSet(object) => Some(&mut object.spec.template),
            Self::StatefulSet(object) => Some(&mut object.spec.template),
        }
    }

    /// The template that pods are made from; none for a pod, and for what isn't run.
    pub fn template(&self) -> Option<&PodTemplateSpec> {
        match self {
            Self::Pod(_) | Self::ConfigMap(_) | Self::Secret(_) => None,
            Self::Job(object) => object.spec.as_ref().map(|spec| &spec.template),
            Self::Deployment(object) => Some(&object.spec.template),
            Self::ReplicaSet(object) => object.spec.template.as_ref(),
            Self::DaemonSet(object) => Some(&object.spec.template),
            Self::StatefulSet(object) => Some(&object.spec.template),
        }
    }
}

/// The namespace of objects that don't name one.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The pod itself, or the first pod of a template: it has the name of its object. None if nothing can be run of it.
pub fn pod_of(object: &Object) -> Option<Pod> {
    let mut pod = match (object, object.template()) {
        (Object::Pod(pod), _) => (**pod).clone(),
        (_, None) => return None,
        (_, Some(template)) => {
            let owner = object.metadata();
            let metadata = ObjectMeta {
                name: owner.name.clone(),
                namespace: owner.namespace.clone(),
                ..template.metadata.clone().unwrap_or_default()
            };
            Pod { metadata, spec: template.spec.clone(), status: None }
        }
    };
    let namespace = pod.metadata.namespace.get_or_insert_default();
    if namespace.is_empty() {
        *namespace = DEFAULT_NAMESPACE.into();
    }
    Some(pod)
}
