//! What the server knows about a resource. Handlers are the same for all; what differs stands in a [`Resource`].

use std::sync::Arc;

use husk_api::FieldError;
use jiff::Timestamp;
use serde_json::Value;

use crate::api::Device;
use crate::storage::{Key, Scope};

/// One resource: a row of the table in [`crate::RESOURCES`].
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version in the group.
    pub version: &'static str,
    /// Kind of its objects.
    pub kind: &'static str,
    /// As in paths.
    pub plural: &'static str,
    /// As `kubectl` prints it.
    pub singular: &'static str,
    /// As people type it.
    pub short_names: &'static [&'static str],
    /// Are its objects in namespaces?
    pub namespaced: bool,
    /// Groups of resources that it belongs to, as in `all`.
    pub categories: &'static [&'static str],
    /// What can be done with it.
    pub verbs: &'static [&'static str],
    /// What there is below an object's path.
    pub subresources: &'static [Subresource],
    /// How objects are read, filled in and checked.
    pub strategy: Strategy,
    /// How lists in its objects are merged; lists that aren't named are replaced.
    pub lists: &'static [(&'static str, ListMerge)],
    /// Columns of the table that `kubectl get` prints.
    pub columns: &'static [Column],
    /// The cells of an object's row.
    pub row: fn(&Value, Timestamp) -> Vec<Value>,
    /// Fields that may stand in a field selector, besides the name and the namespace.
    pub selectable: &'static [&'static str],
}

/// All verbs of a resource that clients may change.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Something below an object's path.
#[derive(Debug)]
pub struct Subresource {
    /// As in the path.
    pub name: &'static str,
    /// Which door it is.
    pub door: Door,
    /// Group, version and kind of what goes through it, if not the object itself.
    pub kind: Option<(&'static str, &'static str, &'static str)>,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
}

/// By which door a request comes to an object; each lets only some changes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The object's own path.
    Main,
    /// `status`.
    Status,
    /// `ephemeralcontainers`.
    EphemeralContainers,
    /// `resize`.
    Resize,
    /// `eviction`.
    Eviction,
    /// `log`.
    Log,
    /// `exec`.
    Exec,
    /// `attach`.
    Attach,
    /// `timeline`, which is Husk's own.
    Timeline,
}

/// What is done to objects on their way in.
pub struct Strategy {
    /// Reads JSON as an object of the kind; the error is for people.
    pub read: fn(&Value) -> Result<Reading, String>,
    /// Fills in what wasn't said.
    pub default: fn(&mut Value),
    /// Sets what only the server may set, before an object is created.
    pub prepare_create: fn(&mut Value),
    /// Keeps what must not change by that door. Says what was kept although another value was asked for.
    pub prepare_update: fn(&Value, &mut Value, Door) -> Vec<String>,
    /// Takes away fields of features that are off, unless the object that is changed uses them. Says what was taken away.
    pub drop_disabled: fn(Option<&Value>, &mut Value, &Device) -> Vec<String>,
    /// Sets what follows from the device, after everything was checked.
    pub settle: fn(&mut Value, &Device),
    /// Everything that is wrong with a new object.
    pub validate: fn(&Value, &Device) -> Vec<FieldError>,
    /// Everything that is wrong with a change.
    pub validate_update: fn(&Value, &Value, Door, &Device) -> Vec<FieldError>,
    /// How objects go.
    pub removal: Removal,
}

/// How objects of a resource go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// At once.
    AtOnce,
    /// When the node has ended them, within their grace.
    Graceful,
    /// When what is in them is gone.
    WithContents,
}

/// An object as it was read.
#[derive(Debug, Default)]
pub struct Reading {
    /// With fields of its kind only.
    pub object: Value,
    /// Fields that its kind doesn't have.
    pub unknown: Vec<String>,
    /// Fields that have no effect here, with what happens instead.
    pub remarks: Vec<String>,
    /// Fields that can't be honoured and mustn't be ignored.
    pub refused: Vec<FieldError>,
}

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// Objects, told apart by this field.
    ByKey(&'static str),
    /// The same, and what the patch doesn't name in `$retainKeys` goes.
    ByKeyRetaining(&'static str),
    /// Plain values, as a set.
    Set,
}

/// A column of a table.
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// `string`, `integer` or `date`.
    pub kind: &'static str,
    /// Shown with `-o wide` only.
    pub wide: bool,
    /// What it shows.
    pub description: &'static str,
}

impl Column {
    /// Of texts.
    pub const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "string", wide: false, description }
    }

    /// Of texts, for `-o wide`.
    pub const fn wide(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "string", wide: true, description }
    }

    /// Of numbers.
    pub const fn number(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "integer", wide: false, description }
    }
}

impl Resource {
    /// As in `poddisruptionbudgets.policy`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.into() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// As in `PodDisruptionBudget.policy`.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.into() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// As in `v1` or `policy/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.into() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The key of an object.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(Arc::from(self.qualified()), if self.namespaced { namespace } else { "" }, name)
    }

    /// The objects of a namespace, or of all.
    pub fn scope(&self, namespace: Option<&str>) -> Scope {
        let namespace = namespace.filter(|_| self.namespaced).map(str::to_owned);
        Scope { resource: Arc::from(self.qualified()), namespace }
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// The value of a field that may stand in a field selector; none if it may not.
    pub fn field<'a>(&self, object: &'a Value, name: &str) -> Option<&'a str> {
        if !self.can_select(name) {
            return None;
        }
        let value = name.split('.').try_fold(object, |value, part| value.get(part));
        Some(value.and_then(Value::as_str).unwrap_or_default())
    }

    /// May the field stand in a selector?
    pub fn can_select(&self, name: &str) -> bool {
        name == "metadata.name" || (name == "metadata.namespace" && self.namespaced) || self.selectable.contains(&name)
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.qualified())
    }
}
