//! What happens to the pod of a simulation, and when: the scenario file.
//!
//! Everything has a default, so the empty scenario is a calm life: images come, init containers succeed, apps run (or, where the pod is
//! a job, end well), probes are content.

mod fact;
mod script;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use husk_core::spec::{ContainerKind, PodMeta, PodSpec, RestartPolicy};
use serde::{Deserialize, Serialize};

pub use self::fact::*;
pub use self::script::*;
use crate::span::Span;

/// A scenario file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scenario {
    /// The picture ends here, whatever still runs. `--until` wins.
    #[serde(skip_serializing_if = "is_default")]
    pub until: Option<Span>,
    /// Deletions of the pod; of all pods, if there are more.
    #[serde(skip_serializing_if = "is_default")]
    pub delete: Vec<Delete>,
    /// The node's `crashLoopBackOff.maxContainerRestartPeriod`.
    #[serde(skip_serializing_if = "is_default")]
    pub max_container_restart_period: Option<Span>,
    /// The node's `terminated-pod-gc-threshold`.
    #[serde(skip_serializing_if = "is_default")]
    pub terminated_pod_gc_threshold: Option<usize>,
    /// How long a pod's address and volumes take.
    #[serde(skip_serializing_if = "is_default")]
    pub set_up: SetUp,
    /// How long their removal takes.
    #[serde(skip_serializing_if = "is_default")]
    pub tear_down: TearDown,
    /// By name of the container; for pods that have no script of their own for it.
    #[serde(skip_serializing_if = "is_default")]
    pub containers: BTreeMap<String, Script>,
    /// What the node has and is at the beginning.
    #[serde(skip_serializing_if = "is_default")]
    pub node: NodeScript,
    /// By name of the pod, where a manifest has several; the second of a name is `NAME#2`.
    #[serde(skip_serializing_if = "is_default")]
    pub pods: BTreeMap<String, PodScript>,
    /// What else happens.
    #[serde(skip_serializing_if = "is_default")]
    pub facts: Vec<Fact>,
    /// What is tried on the way to see whether the core keeps its promises.
    #[serde(skip_serializing_if = "is_default")]
    pub trials: Trials,
}

/// What happens to one of several pods. What isn't said here is as the scenario says for all: each field, and each container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodScript {
    /// When it is created.
    #[serde(skip_serializing_if = "is_default")]
    pub applied: Span,
    /// How long its address and volumes take.
    #[serde(skip_serializing_if = "is_default")]
    pub set_up: Option<SetUp>,
    /// How long their removal takes.
    #[serde(skip_serializing_if = "is_default")]
    pub tear_down: Option<TearDown>,
    /// By name of the container; a script here stands for the whole script of that name for all pods.
    #[serde(skip_serializing_if = "is_default")]
    pub containers: BTreeMap<String, Script>,
}

/// What changes nothing if the core is right. A count of 0 is never, 1 is always.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Trials {
    /// After so many steps another node takes over by records; it has to order the same from then on.
    #[serde(skip_serializing_if = "is_default")]
    pub hand_over_every: u32,
    /// Every so many-th fact is said twice.
    #[serde(skip_serializing_if = "is_default")]
    pub repeat_every: u32,
    /// At every so many-th step somebody looks at a pod before anything is due.
    #[serde(skip_serializing_if = "is_default")]
    pub look_every: u32,
    /// Of what is due at the same time the core's timers come before facts.
    #[serde(skip_serializing_if = "is_default")]
    pub timers_first: bool,
}

impl Trials {
    pub(crate) fn repeats(&self, fact: u64) -> bool {
        self.repeat_every != 0 && fact.is_multiple_of(self.repeat_every.into())
    }

    pub(crate) fn looks(&self, step: u64) -> bool {
        self.look_every != 0 && step.is_multiple_of(self.look_every.into())
    }
}

/// A pod that is played.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// How a scenario names it.
    pub id: String,
    /// Who.
    pub meta: PodMeta,
    /// What.
    pub spec: PodSpec,
}

impl Subject {
    /// Pods in the order in which they are created. Their uids become their names in a scenario, so that each play of them is the same.
    pub fn cast(pods: impl IntoIterator<Item = (PodMeta, PodSpec)>) -> Vec<Self> {
        let mut seen = BTreeMap::<String, u32>::new();
        let subject = |(mut meta, spec): (PodMeta, PodSpec)| {
            let count = seen.entry(meta.name.clone()).and_modify(|count| *count += 1).or_insert(1);
            let id = if *count == 1 { meta.name.clone() } else { format!("{}#{count}", meta.name) };
            meta.uid.clone_from(&id);
            // Changes are counted from here on, as an API server does for a pod that comes from a file.
            meta.generation = meta.generation.max(1);
            Self { id, meta, spec }
        };
        pods.into_iter().map(subject).collect()
    }
}

/// A deletion of the pod.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Delete {
    /// When.
    pub at: Span,
    /// Seconds of grace asked for; the pod's own if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub grace_period_seconds: Option<i64>,
}

/// Making the sandbox.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SetUp {
    /// How long it takes.
    pub takes: Span,
    /// How often it fails before it succeeds.
    pub fails: u32,
}

impl Default for SetUp {
    fn default() -> Self {
        Self { takes: Span::millis(100), fails: 0 }
    }
}

/// Removing the sandbox.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TearDown {
    /// How long it takes.
    pub takes: Span,
}

impl Default for TearDown {
    fn default() -> Self {
        Self { takes: Span::millis(50) }
    }
}

impl Scenario {
    /// Reads a scenario file for some pods.
    ///
    /// # Errors
    /// The file can't be read, or see [`parse`](Self::parse).
    pub fn read(path: &Path, pods: &[Subject]) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("can't read scenario {}", path.display()))?;
        Self::parse(&text, pods).with_context(|| format!("scenario {}", path.display()))
    }

    /// Reads what is in a scenario file.
    ///
    /// # Errors
    /// It isn't YAML of that form, or says what can't be; names the place.
    pub fn parse(text: &str, pods: &[Subject]) -> Result<Self> {
        // A file of comments alone is the empty scenario.
        let parsed: Option<Self> = serde_saphyr::from_str(text)?;
        let scenario = parsed.unwrap_or_default();
        scenario.check(pods)?;
        Ok(scenario)
    }

    fn check(&self, pods: &[Subject]) -> Result<()> {
        let subject = |id: &str| {
            let known = || pods.iter().map(|pod| pod.id.as_str()).collect::<Vec<_>>().join(", ");
            let found = pods.iter().find(|pod| pod.id == id);
            found.with_context(|| format!("{id}: the manifest has no such pod (it has {})", known()))
        };
        for (name, script) in &self.containers {
            let of_all: Vec<_> = pods.iter().map(|pod| &pod.spec).collect();
            check_container(&of_all, name, script).with_context(|| format!("containers.{name}"))?;
        }
        for (id, of_pod) in &self.pods {
            let pod = subject(id).context("pods")?;
            for (name, script) in &of_pod.containers {
                check_container(&[&pod.spec], name, script).with_context(|| format!("pods.{id}.containers.{name}"))?;
            }
        }
        check_node(&self.node).context("node")?;
        for (n, fact) in self.facts.iter().enumerate() {
            let pod = fact.what.pod().map(&subject).transpose().with_context(|| format!("facts[{n}]"))?;
            if let (Some(pod), Some(name)) = (pod, fact.what.container())
                && pod.spec.container(name).is_none()
            {
                bail!("facts[{n}]: pod {} has no container {name}", pod.id);
            }
            fact.what.check().with_context(|| format!("facts[{n}]"))?;
        }
        Ok(())
    }

    /// As in a scenario file, without what is as it would be anyway.
    pub fn to_yaml(&self) -> String {
        // Fails for maps whose keys aren't scalars: there are none.
        serde_saphyr::to_string(self).unwrap_or_default()
    }

    /// Does the agent end on the way?
    pub(crate) fn has_restarts(&self) -> bool {
        self.facts.iter().any(|fact| matches!(fact.what, What::Restart { .. }))
    }

    /// When somebody deletes anything for the last time.
    pub(crate) fn last_deletion(&self) -> Option<Span> {
        let facts = self.facts.iter().filter(|fact| matches!(fact.what, What::Delete { .. })).map(|fact| fact.at);
        self.delete.iter().map(|delete| delete.at).chain(facts).max()
    }

    /// How the sandbox of a pod is made.
    pub(crate) fn set_up<'s>(&'s self, of_pod: Option<&'s PodScript>) -> &'s SetUp {
        of_pod.and_then(|of_pod| of_pod.set_up.as_ref()).unwrap_or(&self.set_up)
    }

    /// How it is removed.
    pub(crate) fn tear_down<'s>(&'s self, of_pod: Option<&'s PodScript>) -> &'s TearDown {
        of_pod.and_then(|of_pod| of_pod.tear_down.as_ref()).unwrap_or(&self.tear_down)
    }

    /// The script of a container, the calm default filled in.
    pub fn script(&self, pod: &Subject, name: &str) -> Script {
        let own = self.pods.get(&pod.id).and_then(|of_pod| of_pod.containers.get(name));
        let mut script = own.or_else(|| self.containers.get(name)).cloned().unwrap_or_default();
        if script.runs.is_empty() {
            script.runs.push(calm_run(&pod.spec, name));
        }
        script
    }
}

fn check_container(pods: &[&PodSpec], name: &str, script: &Script) -> Result<()> {
    if pods.iter().all(|pod| pod.container(name).is_none()) {
        let known: Vec<_> = pods.iter().flat_map(|pod| pod.all_containers()).map(|(_, c)| c.name.as_str()).collect();
        bail!("the pod has no such container (it has {})", known.join(", "));
    }
    script.check()
}

fn check_node(node: &NodeScript) -> Result<()> {
    let allocatable = node.allocatable.as_ref().map(Amounts::parse).transpose();
    allocatable.map(drop).map_err(|error| anyhow!("allocatable: {error}"))
}

impl What {
    fn check(&self) -> Result<()> {
        match self {
            Self::Node(node) => check_node(node).context("node"),
            Self::Update { change: Change::Resources { requests, limits, .. }, .. } => {
                requests.parse().map_err(|error| anyhow!("requests: {error}"))?;
                limits.parse().map_err(|error| anyhow!("limits: {error}"))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a container does that nobody wrote a script for.
fn calm_run(pod: &PodSpec, name: &str) -> Run {
    let ends_after = |secs| Run { duration: Some(Span::secs(secs)), ..Run::default() };
    match pod.container(name) {
        Some((ContainerKind::Init, container)) if !container.is_sidecar() => ends_after(2),
        Some((ContainerKind::App, container))
            if container.restart_policy.unwrap_or(pod.restart_policy) != RestartPolicy::Always =>
        {
            ends_after(30)
        }
        _ => Run::default(),
    }
}

#[cfg(test)]
mod tests {
    use husk_core::io::{Outcome, Trap};
    use husk_core::spec::{ContainerSpec, ProbeKind};

    use super::*;

    fn pods() -> Vec<Subject> {
        let named = |name: &str| ContainerSpec { name: name.into(), ..ContainerSpec::default() };
        let spec =
            PodSpec { init_containers: vec![named("prepare")], containers: vec![named("app")], ..PodSpec::default() };
        Subject::cast([(PodMeta { name: "web".into(), ..PodMeta::default() }, spec)])
    }

    #[test]
    fn a_whole_scenario_is_read() {
        let text = "
until: 5m
delete: [{at: 2m, gracePeriodSeconds: 5}]
containers:
  app:
    image: {takes: 3s, fails: 1}
    runs:
    - {for: 30s, exit: 1}
    - {for: 1m, trap: OutOfMemory}
    - {}
    onStop: {takes: 2s}
    probes:
      readiness: {fails: [{from: 60s, to: 90s}, {to: 5s, since: start}]}
    hooks:
      preStop: {takes: 4s}
node: {allocatable: {memory: 64Mi}}
facts:
- {at: 3s, what: {delete: {pod: web, gracePeriodSeconds: 3}}}
- {at: 4s, what: {update: {pod: web, change: {resources: {container: app, requests: {memory: 8Mi}}}}}}
- {at: 5s, what: {pressure: {resource: Memory, usage: {web: 77}}}}
- {at: 6s, what: {restart: {after: Reboot, takes: 10s}}}
- {at: 7s, what: {node: {taints: [broken]}}}
";
        let scenario = Scenario::parse(text, &pods()).expect("valid");
        let app = scenario.script(&pods()[0], "app");
        assert_eq!(app.run(0).outcome(), Outcome::Code(1));
        assert_eq!(app.run(1).outcome(), Outcome::Trap(Trap::OutOfMemory));
        assert_eq!(app.run(7).duration, None);
        assert_eq!(app.probes.of(ProbeKind::Readiness).fails.len(), 2);
        assert_eq!(scenario.script(&pods()[0], "prepare").run(0).duration, Some(Span::secs(2)));
        assert_eq!(Scenario::parse(&scenario.to_yaml(), &pods()).expect("what is written is read"), scenario);
    }

    #[test]
    fn a_file_of_comments_is_the_calm_scenario() {
        assert!(Scenario::parse("# nothing happens\n", &pods()).expect("valid").containers.is_empty());
    }

    #[test]
    fn what_a_pod_has_no_entry_for_is_as_for_all() {
        let text = "
setUp: {takes: 3s}
tearDown: {takes: 4s}
containers:
  prepare: {runs: [{for: 5s}]}
  app: {runs: [{for: 6s, exit: 1}], image: {takes: 8s}}
pods:
  web: {applied: 1s, tearDown: {takes: 9s}, containers: {app: {runs: [{for: 7s}]}}}
";
        let pods = pods();
        let scenario = Scenario::parse(text, &pods).expect("valid");
        let of_pod = scenario.pods.get("web");
        assert_eq!(scenario.set_up(of_pod).takes, Span::secs(3));
        assert_eq!((scenario.tear_down(of_pod).takes, scenario.tear_down(None).takes), (Span::secs(9), Span::secs(4)));
        assert_eq!(scenario.script(&pods[0], "prepare").run(0).duration, Some(Span::secs(5)));
        let app = scenario.script(&pods[0], "app");
        assert_eq!((app.run(0).duration, app.run(0).exit), (Some(Span::secs(7)), None));
        assert_eq!(app.image, ImageScript::default(), "a container's script is taken as a whole");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("containers: {appp: {}}", "containers.appp: the pod has no such container (it has prepare, app)"),
            ("containers: {app: {runs: [{exit: 1}]}}", "runs[0]: say with `for`"),
            ("containers: {app: {runs: [{for: 1s, exit: 300}]}}", "runs[0].exit: 300"),
            ("containers: {app: {onStop: {ignores: true, takes: 1s}}}", "onStop"),
            ("containers: {app: {probes: {liveness: {fails: [{from: 9s, to: 3s}]}}}}", "probes.liveness.fails"),
            ("contaners: {}", "contaners"),
            ("pods: {wep: {}}", "wep: the manifest has no such pod (it has web)"),
            ("facts: [{at: 1s, what: {evict: {pod: wep, by: EvictionByEvictionApi}}}]", "facts[0]: wep: the manifest"),
            ("facts: [{at: 1s, what: {exit: {pod: web, container: ap}}}]", "facts[0]: pod web has no container ap"),
            ("facts: [{at: 1s, what: {node: {allocatable: {cpu: lots}}}}]", "facts[0]: node: allocatable"),
            ("until: soon", "soon"),
        ] {
            let error = format!("{:#}", Scenario::parse(text, &pods()).expect_err(text));
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
