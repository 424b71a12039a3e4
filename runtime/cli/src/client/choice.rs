//! Which objects a verb is about: by name, by selection, or from files.

use clap::Args;
use serde_json::Value;

use super::connection::Agent;
use super::failure::Failure;
use super::files::Files;
use super::resources::Resources;
use super::target::{Namespace, Selectors, Target, found, targets};

/// What verbs that are about objects are asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Choice {
    /// What: `pods`, `pod web`, `po web db`, `pod/web cm/settings`, `pods,cm`, `all`
    #[arg(value_name = "TYPE[/NAME] [NAME]", required_unless_present = "filename")]
    what: Vec<String>,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    pub(crate) namespace: Namespace,
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) selectors: Selectors,
}

/// A target, and the namespace that it is in; none for all.
pub(crate) type Placed = (Target, Option<String>);

impl Choice {
    /// What is meant, as it is written: objects by name, and whole resources.
    pub(crate) fn targets(&self, resources: &Resources) -> Result<Vec<Placed>, Failure> {
        if self.is_from_files() {
            return self.files.targets(resources, &self.namespace);
        }
        let targets = targets(resources, &self.what)?;
        if self.all_namespaces && targets.iter().any(|target| target.name.is_some()) {
            return Err(Failure::other("a resource cannot be retrieved by name across all namespaces"));
        }
        Ok(targets.into_iter().map(|target| (target, self.namespace().map(str::to_owned))).collect())
    }

    /// The same, each by its name. Without names there must be a selection, or `all` of them must be meant.
    pub(crate) async fn objects(&self, agent: &Agent, all: bool) -> Result<Vec<Placed>, Failure> {
        let is_of_many = all || !self.selectors.is_empty();
        let mut objects = Vec::new();
        for (target, namespace) in self.targets(&Resources::of(agent).await?)? {
            if target.name.is_some() && is_of_many && !self.is_from_files() {
                return Err(Failure::other("name cannot be provided when a selector is specified"));
            }
            if target.name.is_some() {
                objects.push((target, namespace));
                continue;
            }
            if !is_of_many {
                return Err(Failure::other("resource(s) were provided, but no name was specified"));
            }
            let found = found(agent, &[target], namespace.as_deref(), &self.selectors).await?;
            let own = |object: &Value| object["metadata"]["namespace"].as_str().map(str::to_owned);
            objects.extend(found.into_iter().map(|(target, object)| (target, own(&object))));
        }
        Ok(objects)
    }

    /// Is it what manifests name?
    pub(crate) fn is_from_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Where objects are looked for; none for everywhere.
    pub(crate) fn namespace(&self) -> Option<&str> {
        (!self.all_namespaces).then(|| self.namespace.name())
    }

    /// That there is nothing.
    pub(crate) fn nothing(&self, is_namespaced: bool) -> String {
        nothing_in(self.namespace().filter(|_| is_namespaced))
    }
}

/// That there is nothing in a namespace, or anywhere.
pub(crate) fn nothing_in(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("No resources found in {namespace} namespace."),
        None => "No resources found".into(),
    }
}
