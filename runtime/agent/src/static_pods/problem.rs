//! What is wrong with the files of static pods.

use std::fmt;
use std::sync::Arc;

use husk_api::Problem;

use super::manifest::StaticPod;

/// A problem with a file, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManifestProblem {
    /// What, and where.
    pub problem: Problem,
    /// Pods that run all the same, as the file wanted them before, or as another file does. None if it is no file of a known pod.
    pub pods: Arc<[PodName]>,
}

/// Which pod it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl ManifestProblem {
    /// Of pods that run all the same.
    pub(super) fn of<'a>(problem: Problem, pods: impl IntoIterator<Item = &'a StaticPod>) -> Self {
        Self { problem, pods: pods.into_iter().map(StaticPod::name).collect() }
    }
}
