//! Pods that are placed together or not at all (META-11).

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Which kind of group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GroupKind {
    /// PodGroup: of pods.
    Pods,
    /// CompositePodGroup: of groups.
    Groups,
}

/// The name of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupName {
    /// Which kind.
    pub kind: GroupKind,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

/// A PodGroup or CompositePodGroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: GroupName,
    /// Policy `gang`: so many members (`minCount` pods, `minGroupCount` groups) at once, or none. None for policy `basic`.
    pub gang: Option<usize>,
    /// `parentCompositePodGroupName`.
    pub parent: Option<String>,
}
