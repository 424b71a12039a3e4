//! Server-side apply: managers say all they want of an object, and the server knows who wants what.
//!
//! Who owns what is recorded from the first apply on: objects that nobody applies carry no `managedFields`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::fields::{FieldSet, Path, Step, remove_at, shown, value_at};
use super::lists::Lists;
use super::strategic;
use crate::incoming::now;
use crate::resource::Resource;
use crate::status::{ApiError, Cause};

/// A manager of fields: its name, how it writes, and by which door.
type Manager = (String, String, String);

/// Who applies, and how.
#[derive(Clone, Debug)]
pub(crate) struct Applier {
    /// `fieldManager`.
    pub(crate) manager: String,
    /// Fields of others are taken over.
    pub(crate) force: bool,
    /// Name of the subresource; empty for the object itself.
    pub(crate) subresource: String,
}

impl Applier {
    fn key(&self, operation: &str) -> Manager {
        (self.manager.clone(), operation.into(), self.subresource.clone())
    }

    /// Applies to an object that is there.
    pub(crate) fn apply(&self, wanted: &Value, current: &Value, resource: &Resource) -> Result<Value, ApiError> {
        let lists = Lists(resource.lists);
        let mut managed = Managed::of(current);
        let me = self.key("Apply");
        let before = managed.0.remove(&me).map(|owned| owned.set).unwrap_or_default();
        let set = FieldSet::of(wanted, lists);
        let conflicts = managed.conflicts(&set, wanted, current);
        if !conflicts.is_empty() && !self.force {
            return Err(refused(&conflicts, resource));
        }
        for (owner, path) in &conflicts {
            if let Some(owned) = managed.0.get_mut(owner) {
                owned.set.0.remove(path);
            }
        }
        let mut object = current.clone();
        strategic::apply(wanted, &mut object, resource.lists)?;
        // From the outside in: an item goes as a whole, and one that stays keeps what tells it apart.
        for path in before.0.iter().filter(|path| !set.0.contains(*path) && !is_key(path)) {
            let is_wanted =
                |set: &FieldSet| set.0.range(path.clone()..).next().is_some_and(|next| next.starts_with(path));
            if !is_wanted(&set) && !managed.0.values().any(|owned| is_wanted(&owned.set)) {
                remove_at(&mut object, path);
            }
        }
        managed.put(me, set, current, resource);
        managed.write(&mut object);
        Ok(object)
    }

    /// The record of a new object.
    pub(crate) fn created(&self, wanted: &Value, object: &mut Value, resource: &Resource) {
        let mut managed = Managed::default();
        managed.put(self.key("Apply"), FieldSet::of(wanted, Lists(resource.lists)), object, resource);
        managed.write(object);
    }

    /// Records a change that wasn't an apply: what is changed belongs to who changed it.
    pub(crate) fn updated(&self, current: &Value, object: &mut Value, resource: &Resource) {
        let mut managed = Managed::of(current);
        if managed.0.is_empty() {
            return;
        }
        let lists = Lists(resource.lists);
        let (before, after) = (FieldSet::of(current, lists), FieldSet::of(object, lists));
        let is_same = |path: &Path| value_at(current, path) == value_at(object, path);
        let is_item = |path: &Path| matches!(path.last(), Some(Step::Item(..)));
        let changed: BTreeSet<&Path> =
            after.0.iter().filter(|path| !before.0.contains(*path) || !is_item(path) && !is_same(path)).collect();
        for owned in managed.0.values_mut() {
            owned.set.0.retain(|path| !changed.contains(path) && value_at(object, path).is_some());
        }
        if !changed.is_empty() {
            let me = self.key("Update");
            let mut set = managed.0.remove(&me).map(|owned| owned.set).unwrap_or_default();
            set.0.extend(changed.into_iter().cloned());
            managed.put(me, set, current, resource);
        }
        managed.write(object);
    }
}

/// Is it the field that tells an item apart?
fn is_key(path: &Path) -> bool {
    matches!(path.as_slice(), [.., Step::Item(name, _), Step::Field(field)] if name == field)
}

/// Fields of one manager.
#[derive(Clone, Debug, Default)]
struct Owned {
    set: FieldSet,
    version: String,
    time: String,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
struct Managed(BTreeMap<Manager, Owned>);

impl Managed {
    fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let read = |entry: &Value| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            let owned =
                Owned { set: FieldSet::read(&entry["fieldsV1"]), version: text("apiVersion"), time: text("time") };
            ((text("manager"), text("operation"), text("subresource")), owned)
        };
        Self(entries.map(read).collect())
    }

    /// Sets the fields of a manager. If they are what they were, the time stays, so that there is nothing to write.
    fn put(&mut self, manager: Manager, set: FieldSet, current: &Value, resource: &Resource) {
        let before = Self::of(current).0.remove(&manager).filter(|owned| owned.set == set);
        let time = before.map_or_else(|| now().to_string(), |owned| owned.time);
        self.0.insert(manager, Owned { set, version: resource.api_version(), time });
    }

    /// Fields that others want to be something else.
    fn conflicts(&self, set: &FieldSet, wanted: &Value, current: &Value) -> Vec<(Manager, Path)> {
        let theirs = self.0.iter().flat_map(|(manager, owned)| owned.set.0.iter().map(move |path| (manager, path)));
        let differs = |path: &Path| {
            let is_item = matches!(path.last(), Some(Step::Item(..)));
            !is_item && value_at(wanted, path) != value_at(current, path)
        };
        theirs
            .filter(|(_, path)| set.0.contains(*path) && differs(path))
            .map(|(manager, path)| (manager.clone(), path.clone()))
            .collect()
    }

    fn write(self, object: &mut Value) {
        let entries: Vec<Value> = self
            .0
            .into_iter()
            .filter(|(_, owned)| !owned.set.0.is_empty())
            .map(|((manager, operation, subresource), owned)| {
                let mut entry = json!({
                    "manager": manager,
                    "operation": operation,
                    "apiVersion": owned.version,
                    "time": owned.time,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": owned.set.written(),
                });
                if !subresource.is_empty() {
                    entry["subresource"] = subresource.into();
                }
                entry
            })
            .collect();
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            if entries.is_empty() {
                metadata.remove("managedFields");
            } else {
                metadata.insert("managedFields".into(), entries.into());
            }
        }
    }
}

fn refused(conflicts: &[(Manager, Path)], resource: &Resource) -> ApiError {
    let with = |((manager, operation, _), _): &(Manager, Path)| match operation.as_str() {
        "Apply" => format!("conflict with \"{manager}\""),
        _ => format!("conflict with \"{manager}\" using {}", resource.api_version()),
    };
    let told = |conflict: &(Manager, Path)| format!("{}: {}", with(conflict), shown(&conflict.1));
    let message = match conflicts {
        [only] => format!("Apply failed with 1 conflict: {}", told(only)),
        all => {
            let lines: Vec<String> = all.iter().map(told).collect();
            format!("Apply failed with {} conflicts: {}", all.len(), lines.join("\n"))
        }
    };
    let causes = conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict",
        message: with(conflict),
        field: shown(&conflict.1),
    });
    ApiError::new(409, "Conflict", message).causes(causes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::PODS;

    fn applier(manager: &str, force: bool) -> Applier {
        Applier { manager: manager.into(), force, subresource: String::new() }
    }

    fn created(manager: &str, wanted: Value) -> Value {
        let mut object = wanted.clone();
        applier(manager, false).created(&wanted, &mut object, &PODS);
        object
    }

    fn pod(labels: Value, containers: Value) -> Value {
        json!({"metadata": {"name": "a", "labels": labels}, "spec": {"containers": containers}})
    }

    #[test]
    fn what_is_not_applied_any_more_goes_if_nobody_else_wants_it() {
        let live = created(
            "m",
            pod(json!({"a": "1", "b": "2"}), json!([{"name": "x", "image": "i"}, {"name": "y", "image": "j"}])),
        );
        let other = pod(json!({"b": "2"}), json!([]));
        let live = applier("n", false).apply(&other, &live, &PODS).expect("the same value is no conflict");
        let less = pod(json!({}), json!([{"name": "y", "image": "j"}]));
        let live = applier("m", false).apply(&less, &live, &PODS).expect("no conflict");
        assert_eq!(live["metadata"]["labels"], json!({"b": "2"}));
        assert_eq!(live["spec"]["containers"], json!([{"name": "y", "image": "j"}]));
        let again = applier("m", false).apply(&less, &live, &PODS).expect("no conflict");
        assert_eq!(again, live);
    }

    #[test]
    fn what_others_want_is_a_conflict_unless_forced() {
        let live = created("m", pod(json!({"a": "1"}), json!([{"name": "x", "image": "i"}])));
        let wanted = pod(json!({"a": "2"}), json!([{"name": "x", "image": "k"}]));
        let error = applier("n", false).apply(&wanted, &live, &PODS).expect_err("a conflict");
        assert_eq!((error.code, error.reason), (409, "Conflict"));
        let causes = error.details["causes"].as_array().expect("causes").clone();
        assert_eq!(
            causes[0],
            json!({"reason": "FieldManagerConflict", "message": "conflict with \"m\"", "field": ".metadata.labels.a"})
        );
        assert_eq!(causes[1]["field"], ".spec.containers[name=\"x\"].image");
        let forced = applier("n", true).apply(&wanted, &live, &PODS).expect("forced");
        assert_eq!(forced["metadata"]["labels"]["a"], "2");
        // What was taken over is lost to the first one.
        let first = applier("m", false).apply(&pod(json!({}), json!([])), &forced, &PODS).expect("no conflict");
        assert_eq!(first["metadata"]["labels"]["a"], "2");
    }

    #[test]
    fn who_changes_a_field_owns_it() {
        let live = created("m", pod(json!({"a": "1"}), json!([])));
        let mut changed = live.clone();
        changed["metadata"]["labels"]["a"] = "2".into();
        applier("kubectl-edit", false).updated(&live, &mut changed, &PODS);
        let error =
            applier("m", false).apply(&pod(json!({"a": "1"}), json!([])), &changed, &PODS).expect_err("a conflict");
        assert_eq!(
            error.message,
            "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .metadata.labels.a"
        );
        let untracked = pod(json!({"a": "1"}), json!([]));
        let mut object = untracked.clone();
        object["metadata"]["labels"]["a"] = "2".into();
        applier("kubectl-edit", false).updated(&untracked, &mut object, &PODS);
        assert!(object["metadata"]["managedFields"].is_null());
    }
}
