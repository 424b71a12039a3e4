//! What a command is about: `pods`, `po web`, `pod/web cm/settings`, `pods,cm -l app=web`.

use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::connection::{Agent, Ask};
use super::failure::Failure;
use super::output::name_of;
use super::query::Query;
use super::resources::{Resource, Resources, items};

/// In which namespace.
#[derive(Args, Clone, Debug)]
pub(crate) struct Namespace {
    /// The namespace
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl Namespace {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.namespace.as_deref().unwrap_or(husk_api::DEFAULT_NAMESPACE)
    }
}

/// Which of many objects.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Selectors {
    /// Only objects with these labels: `app=web,tier!=test`, `app in (a,b)`, `app`, `!app`
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Only objects with these values: `status.phase=Running`, `metadata.name!=web`
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<String>,
}

impl Selectors {
    /// Is anything selected?
    pub(crate) fn is_empty(&self) -> bool {
        self.selector.is_none() && self.field_selector.is_none()
    }

    /// As the server takes them.
    pub(crate) fn query(&self) -> Query {
        Query::default()
            .maybe("labelSelector", self.selector.as_ref())
            .maybe("fieldSelector", self.field_selector.as_ref())
    }
}

/// An object, or all objects of a resource.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) name: Option<String>,
}

impl Target {
    /// Its path, if there is one; the objects are in `namespace`, or in all.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        match &self.name {
            Some(name) => self.resource.object(namespace.unwrap_or_default(), name),
            None => self.resource.collection(namespace),
        }
    }
}

/// What the words of a command line mean.
pub(crate) fn targets(resources: &Resources, words: &[String]) -> Result<Vec<Target>, Failure> {
    let Some((first, names)) = words.split_first() else {
        return Err(Failure::other("Required resource not specified: name one, as in `pods` or `pod/web`"));
    };
    let is_slashed = |word: &String| word.contains('/');
    if words.iter().all(is_slashed) {
        return words.iter().map(|word| slashed(resources, word)).collect();
    }
    if words.iter().any(is_slashed) {
        return Err(Failure::other(
            "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'husk get resource/<resource_name>' instead of 'husk get resource resource/<resource_name>'",
        ));
    }
    let mut targets = Vec::new();
    for word in first.split(',') {
        for resource in resources.called(word)? {
            if names.is_empty() {
                targets.push(Target { resource, name: None });
            } else {
                let named = |name: &String| Target { resource: resource.clone(), name: Some(name.clone()) };
                targets.extend(names.iter().map(named));
            }
        }
    }
    Ok(targets)
}

/// `TYPE/NAME`.
fn slashed(resources: &Resources, word: &str) -> Result<Target, Failure> {
    let malformed = || {
        Failure::Other(format!("arguments in resource/name form must have a single resource and name, not {word:?}"))
    };
    let (kind, name) = word.split_once('/').ok_or_else(|| {
        Failure::other("there must be a resource and a name in each argument when one is in resource/name form")
    })?;
    if kind.is_empty() || name.is_empty() || name.contains('/') {
        return Err(malformed());
    }
    match resources.called(kind)?.as_slice() {
        [resource] => Ok(Target { resource: resource.clone(), name: Some(name.into()) }),
        _ => Err(malformed()),
    }
}

/// The pod that is meant by `NAME`, `pod/NAME` or `po/NAME`.
pub(crate) async fn pod_named(agent: &Agent, word: &str) -> Result<String, Failure> {
    let Some((kind, name)) = word.split_once('/') else { return Ok(word.into()) };
    if ["pod", "pods", "po"].contains(&kind) && !name.is_empty() && !name.contains('/') {
        return Ok(name.into());
    }
    // Whatever else it is, the server knows whether it has that.
    let target = slashed(&Resources::of(agent).await?, word)?;
    Err(Failure::Other(format!("cannot attach to {}: only pods have containers here", target.resource.kind)))
}

/// Objects that were found by name or by selection, with their resources.
pub(crate) async fn found(
    agent: &Agent,
    targets: &[Target],
    namespace: Option<&str>,
    selectors: &Selectors,
) -> Result<Vec<(Target, Value)>, Failure> {
    let mut found = Vec::new();
    for target in targets {
        let ask = Ask::get(target.path(namespace));
        if target.name.is_some() {
            found.push((target.clone(), agent.json(ask).await?));
            continue;
        }
        let list = agent.json(ask.query(selectors.query())).await?;
        for object in items(&list["items"]) {
            let target = Target { name: Some(name_of(object).into()), ..target.clone() };
            found.push((target, object.clone()));
        }
    }
    Ok(found)
}
