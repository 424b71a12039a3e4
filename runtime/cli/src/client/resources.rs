//! What the server has: its resources, found by any of their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::connection::{Agent, Ask};
use super::failure::Failure;
use super::query::encoded;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// One resource of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) is_namespaced: bool,
}

impl Resource {
    /// As in `v1` or `policy/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As in `pods` or `poddisruptionbudgets.policy`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// As in `pod` or `poddisruptionbudget.policy`: what stands before the slash and a name.
    pub(crate) fn prefix(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }

    /// The path of all objects of a namespace, or of all.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root =
            if self.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}/{}", self.group, self.version) };
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{}", encoded(namespace), self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// The path of an object.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(Some(namespace)), encoded(name))
    }

    fn is_called(&self, name: &str) -> bool {
        let (name, group) = name.split_once('.').map_or((name, None), |(name, group)| (name, Some(group)));
        let fits = group.is_none_or(|group| {
            group == self.group || group.trim_end_matches('.') == self.version || group == self.group_and_version()
        });
        let names = [&self.plural, &self.singular, &self.kind.to_lowercase()];
        fits && (names.contains(&&name.to_owned()) || self.short_names.iter().any(|short| short == name))
    }

    fn group_and_version(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

/// Everything the server has.
#[derive(Clone, Debug)]
pub(crate) struct Resources(Vec<Arc<Resource>>);

impl Resources {
    /// Asks the server.
    pub(crate) async fn of(agent: &Agent) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for path in ["/api", "/apis"] {
            let list = agent.json(Ask::get(path).accept(AGGREGATED)).await?;
            for group in items(&list["items"]) {
                for version in items(&group["versions"]) {
                    let resources = items(&version["resources"]);
                    all.extend(resources.iter().map(|resource| Arc::new(read(group, version, resource))));
                }
            }
        }
        Ok(Self(all))
    }

    /// What a word means: a resource, or all of a category.
    pub(crate) fn called(&self, word: &str) -> Result<Vec<Arc<Resource>>, Failure> {
        let name = word.to_lowercase();
        if let Some(found) = self.0.iter().find(|resource| resource.is_called(&name)) {
            return Ok(vec![found.clone()]);
        }
        let of_category = |resource: &&Arc<Resource>| resource.categories.contains(&name);
        let found: Vec<_> = self.0.iter().filter(of_category).cloned().collect();
        if found.is_empty() {
            return Err(Failure::Other(format!("the server doesn't have a resource type {word:?}")));
        }
        Ok(found)
    }

    /// The resource that objects of a kind belong to.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.0.iter().find(|resource| resource.kind == kind && resource.api_version() == api_version).cloned()
    }

    /// Kinds with their versions.
    pub(crate) fn kinds(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|resource| (resource.kind.clone(), resource.api_version())).collect()
    }
}

/// The items of a JSON list; none if it isn't one.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn read(group: &Value, version: &Value, resource: &Value) -> Resource {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| items(value).iter().map(text).collect();
    Resource {
        group: text(&group["metadata"]["name"]),
        version: text(&version["version"]),
        kind: text(&resource["responseKind"]["kind"]),
        plural: text(&resource["resource"]),
        singular: text(&resource["singularResource"]),
        short_names: texts(&resource["shortNames"]),
        categories: texts(&resource["categories"]),
        verbs: texts(&resource["verbs"]),
        is_namespaced: resource["scope"] == "Namespaced",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_many_names() {
        let budgets = Resource {
            group: "policy".into(),
            version: "v1".into(),
            kind: "PodDisruptionBudget".into(),
            plural: "poddisruptionbudgets".into(),
            singular: "poddisruptionbudget".into(),
            short_names: vec!["pdb".into()],
            is_namespaced: true,
            ..Resource::default()
        };
        assert_eq!(budgets.object("a b", "c"), "/apis/policy/v1/namespaces/a%20b/poddisruptionbudgets/c");
        let all = Resources(vec![Arc::new(budgets)]);
        for name in ["pdb", "PodDisruptionBudget", "poddisruptionbudgets.policy", "poddisruptionbudgets.v1.policy"] {
            assert!(all.called(name).is_ok(), "{name}");
        }
        for name in ["pd", "pdb.apps", ""] {
            assert!(all.called(name).is_err(), "{name}");
        }
    }
}
