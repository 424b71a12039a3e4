//! What an object is called.

use std::fmt;

/// Resource, namespace and name. Keys sort in this order, so that a list of a resource or of a namespace is a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    resource: Box<str>,
    namespace: Box<str>,
    name: Box<str>,
}

impl ObjectKey {
    /// `namespace` is empty for what has none. `resource` is the plural, with its group if two groups have one
    /// (`pods`, `events.events.k8s.io`).
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The plural name of its kind.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Empty for what has none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Can it be stored? Names of Kubernetes always can.
    pub(crate) fn is_valid(&self) -> bool {
        let parts = [&self.resource, &self.namespace, &self.name];
        !self.resource.is_empty() && !self.name.is_empty() && parts.iter().all(|p| !p.contains('\0') && p.len() <= 512)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [&*self.resource, &*self.namespace, &*self.name].join("\0").into_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(bytes).ok()?.split('\0');
        let key = Self::new(parts.next()?, parts.next()?, parts.next()?);
        (parts.next().is_none() && key.is_valid()).then_some(key)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{}/{}", self.resource, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.resource, self.name),
        }
    }
}
