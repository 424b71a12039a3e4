//! From paths to what they mean.

use crate::health::Question;
use crate::query::plain;
use crate::resource::{Resource, Subresource};
use crate::resources;

/// What a path means.
#[derive(Debug)]
pub(crate) enum Route {
    /// `/version`
    Version,
    /// `/healthz`, `/livez` and `/readyz`, also with the name of a check behind them.
    Health {
        /// Which of them.
        question: Question,
        /// One check of it.
        check: Option<String>,
    },
    /// Figures for Prometheus.
    Metrics,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    Resources {
        /// Empty for the core group.
        group: String,
        /// Its version.
        version: String,
    },
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/PATH OF A VERSION`
    OpenApi {
        /// Empty for the core group.
        group: String,
        /// Its version.
        version: String,
    },
    /// `/openapi/v2`
    OpenApiV2,
    /// Objects.
    Objects(Place),
}

/// Objects, an object, or something below it.
#[derive(Debug)]
pub(crate) struct Place {
    /// The resource.
    pub(crate) resource: &'static Resource,
    /// The namespace; none for all, and for resources that have none.
    pub(crate) namespace: Option<String>,
    /// The object; none for all.
    pub(crate) name: Option<String>,
    /// What is below the object; none for the object itself.
    pub(crate) subresource: Option<&'static Subresource>,
}

impl Place {
    /// The namespace; empty if there is none.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// What a path means; none if it means nothing here.
pub(crate) fn route(path: &str) -> Option<Route> {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if let Some((question, check)) = parts.split_first().and_then(|(first, rest)| Some((Question::of(first)?, rest))) {
        let check = (!check.is_empty()).then(|| check.join("/"));
        return Some(Route::Health { question, check });
    }
    Some(match parts.as_slice() {
        ["version"] => Route::Version,
        ["metrics"] => Route::Metrics,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).into()),
        ["api", version] => Route::Resources { group: String::new(), version: (*version).into() },
        ["apis", group, version] => Route::Resources { group: (*group).into(), version: (*version).into() },
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => Route::OpenApi { group: String::new(), version: (*version).into() },
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenApi { group: (*group).into(), version: (*version).into() }
        }
        ["openapi", "v2"] => Route::OpenApiV2,
        ["api", version, rest @ ..] => Route::Objects(place("", version, rest)?),
        ["apis", group, version, rest @ ..] => Route::Objects(place(group, version, rest)?),
        _ => return None,
    })
}

fn place(group: &str, version: &str, parts: &[&str]) -> Option<Place> {
    let in_namespace = |namespace: &str, plural: &str, rest: &[&str]| {
        let resource = resources::find(group, version, plural).filter(|resource| resource.namespaced)?;
        below(resource, Some(namespace.to_owned()), rest)
    };
    match parts {
        ["namespaces", namespace, plural, rest @ ..] => in_namespace(namespace, plural, rest).or_else(|| {
            let namespaces = resources::find(group, version, "namespaces")?;
            below(namespaces, None, &parts[1..])
        }),
        [plural, rest @ ..] => {
            let resource = resources::find(group, version, plural)?;
            // One object of many namespaces can't be named.
            if resource.namespaced && !rest.is_empty() { None } else { below(resource, None, rest) }
        }
        [] => None,
    }
}

fn below(resource: &'static Resource, namespace: Option<String>, parts: &[&str]) -> Option<Place> {
    let (name, subresource) = match parts {
        [] => (None, None),
        [name] => (Some(*name), None),
        [name, subresource] => (Some(*name), Some(resource.subresource(subresource)?)),
        _ => return None,
    };
    Some(Place { resource, namespace, name: name.map(str::to_owned), subresource })
}

/// In paths a plus is a plus.
fn decoded(part: &str) -> String {
    plain(&part.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Door;

    /// Resource, namespace, name and door.
    type Parts = (String, Option<String>, Option<String>, Option<Door>);

    fn place(path: &str) -> Option<Parts> {
        match route(path)? {
            Route::Objects(Place { resource, namespace, name, subresource }) => {
                Some((resource.qualified(), namespace, name, subresource.map(|s| s.door)))
            }
            _ => None,
        }
    }

    #[test]
    fn paths_of_objects() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(place("/api/v1/pods"), Some(("pods".into(), None, None, None)));
        assert_eq!(place("/api/v1/namespaces/a/pods/b"), Some(("pods".into(), some("a"), some("b"), None)));
        let log = Some(("pods".into(), some("a"), some("b"), Some(Door::Log)));
        assert_eq!(place("/api/v1/namespaces/a/pods/b/log"), log);
        assert_eq!(place("/api/v1/namespaces/a"), Some(("namespaces".into(), None, some("a"), None)));
        let status = Some(("namespaces".into(), None, some("a"), Some(Door::Status)));
        assert_eq!(place("/api/v1/namespaces/a/status"), status);
        let budgets = Some(("poddisruptionbudgets.policy".into(), some("a"), None, None));
        assert_eq!(place("/apis/policy/v1/namespaces/a/poddisruptionbudgets"), budgets);
    }

    #[test]
    fn paths_of_nothing() {
        for path in [
            "/",
            "/x",
            "/api/v2/pods",
            "/api/v1/pods/b",
            "/api/v1/namespaces/a/nodes",
            "/api/v1/namespaces/a/pods/b/jump",
            "/api/v1/namespaces/a/pods/b/log/c",
            "/apis/policy/v1/namespaces/a",
        ] {
            assert!(route(path).is_none(), "{path}");
        }
    }
}
