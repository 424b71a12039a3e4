//! The one table of fields: what may be written in a manifest, with which type, and what Husk does with it.
//!
//! Strict decoding walks it ([`crate::decode`]), and so does the page of supported fields
//! ([`crate::field_table_markdown`]), so that the page can't say anything else than the decoder does.

#[cfg(test)]
mod completeness;
mod configuration;
mod container;
mod meta;
mod pod;
mod security;
mod volumes;
mod workloads;

/// A kind of object that is taken from a manifest.
pub(crate) struct Kind {
    /// `apiVersion`.
    pub(crate) api_version: &'static str,
    /// `kind`.
    pub(crate) kind: &'static str,
    /// Its fields.
    pub(crate) object: &'static Object,
}

/// Every kind that is taken.
pub(crate) static KINDS: [Kind; 8] = [
    Kind { api_version: "v1", kind: "Pod", object: &pod::POD },
    Kind { api_version: "batch/v1", kind: "Job", object: &workloads::JOB },
    Kind { api_version: "apps/v1", kind: "Deployment", object: &workloads::DEPLOYMENT },
    Kind { api_version: "apps/v1", kind: "ReplicaSet", object: &workloads::REPLICA_SET },
    Kind { api_version: "apps/v1", kind: "DaemonSet", object: &workloads::DAEMON_SET },
    Kind { api_version: "apps/v1", kind: "StatefulSet", object: &workloads::STATEFUL_SET },
    Kind { api_version: "v1", kind: "ConfigMap", object: &configuration::CONFIG_MAP },
    Kind { api_version: "v1", kind: "Secret", object: &configuration::SECRET },
];

/// An object with named fields.
pub(crate) struct Object {
    /// As in the Kubernetes API reference.
    pub(crate) name: &'static str,
    /// Its fields.
    pub(crate) fields: &'static [Field],
}

impl Object {
    /// The field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A field of an object.
pub(crate) struct Field {
    /// As written in the manifest.
    pub(crate) name: &'static str,
    /// What may stand there.
    pub(crate) ty: Type,
    /// What is done with it.
    pub(crate) support: Support,
    /// Values that mean what happens anyway, so that there is nothing to say about them.
    pub(crate) but: &'static [&'static str],
    /// For maps and strings: the keys or values that are honoured, and what is done with others; all if it is not there.
    pub(crate) only: Option<(&'static [&'static str], Support)>,
}

/// What Husk does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// It does what Kubernetes says.
    Honoured,
    /// It is taken, but has no effect; the text says what happens instead.
    Warned(&'static str),
    /// The same for a pod that is run without an agent; an agent does what Kubernetes says.
    WarnedAlone(&'static str),
    /// A manifest with it is refused; the text says what to do instead.
    Rejected(&'static str),
}

/// Who is to run the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A command, which has no node to place pods on.
    Alone,
    /// An agent.
    Agent,
}

/// What may stand in a field.
pub(crate) enum Type {
    /// `true` or `false`.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A string.
    Str,
    /// A quantity: a string such as `100m` or `1Gi`, or a number.
    Quantity,
    /// A number or a string, as in a port.
    IntOrString,
    /// An RFC 3339 time.
    Time,
    /// Anything.
    Any,
    /// A list.
    List(&'static Type),
    /// Keys that the user chooses.
    Map(&'static Type),
    /// A nested object.
    Object(&'static Object),
}

impl Type {
    /// How the type is called in messages and in the table.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int32 => "an integer of 32 bits",
            Self::Int64 => "an integer",
            Self::Str => "a string",
            Self::Quantity => "a quantity",
            Self::IntOrString => "an integer or a string",
            Self::Time => "an RFC 3339 time",
            Self::Any => "anything",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Object(_) => "an object",
        }
    }
}

impl Type {
    /// The object behind this type, in a list or not.
    pub(crate) fn nested(&self) -> Option<&'static Object> {
        match self {
            Self::Object(object) => Some(object),
            Self::List(item) => item.nested(),
            _ => None,
        }
    }

    /// How the type is called in the table of fields.
    pub(crate) fn column(&self) -> String {
        match self {
            Self::List(item) => format!("list of {}", item.column()),
            Self::Map(item) => format!("map of {}", item.column()),
            Self::Object(object) => object.name.into(),
            Self::Bool => "boolean".into(),
            Self::Int32 | Self::Int64 => "integer".into(),
            Self::Str => "string".into(),
            Self::Quantity => "quantity".into(),
            Self::IntOrString => "integer or string".into(),
            Self::Time => "time".into(),
            Self::Any => "any".into(),
        }
    }
}

const fn object(name: &'static str, fields: &'static [Field]) -> Object {
    Object { name, fields }
}

const fn field(name: &'static str, ty: Type) -> Field {
    Field { name, ty, support: Support::Honoured, but: &[], only: None }
}

impl Field {
    const fn with(self, support: Support) -> Self {
        Self { name: self.name, ty: self.ty, support, but: self.but, only: self.only }
    }

    const fn warned(self, what: &'static str) -> Self {
        self.with(Support::Warned(what))
    }

    const fn warned_alone(self, what: &'static str) -> Self {
        self.with(Support::WarnedAlone(what))
    }

    const fn rejected(self, what: &'static str) -> Self {
        self.with(Support::Rejected(what))
    }

    const fn but(self, values: &'static [&'static str]) -> Self {
        Self { name: self.name, ty: self.ty, support: self.support, but: values, only: self.only }
    }

    const fn only(self, these: &'static [&'static str], others: Support) -> Self {
        Self { name: self.name, ty: self.ty, support: self.support, but: self.but, only: Some((these, others)) }
    }
}
