//! How the lists of a resource are merged, by their paths.

use super::fields::Step;
use crate::resource::ListMerge;

/// The rules of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists(pub(crate) &'static [(&'static str, ListMerge)]);

/// What `{containers}` in a rule stands for.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

impl Lists {
    /// The rule of a list; none if it is replaced as a whole. In paths `*` is any item.
    pub(crate) fn rule(self, path: &[&str]) -> Option<ListMerge> {
        // Every object has these.
        match path {
            ["metadata", "finalizers"] => return Some(ListMerge::Set),
            ["metadata", "ownerReferences"] => return Some(ListMerge::ByKey("uid")),
            _ => {}
        }
        self.0.iter().find(|(pattern, _)| matches(pattern, path)).map(|(_, rule)| *rule)
    }

    /// The same for a path of steps.
    pub(crate) fn rule_of(self, path: &[Step]) -> Option<ListMerge> {
        let steps: Vec<&str> = path
            .iter()
            .map(|step| match step {
                Step::Field(name) => name.as_str(),
                Step::Item(..) | Step::Member(_) => "*",
            })
            .collect();
        self.rule(&steps)
    }
}

fn matches(pattern: &str, path: &[&str]) -> bool {
    let mut parts = pattern.split('.');
    let fits = path.iter().all(|step| match parts.next() {
        Some("{containers}") => CONTAINERS.contains(step),
        part => part == Some(step),
    });
    fits && parts.next().is_none()
}
