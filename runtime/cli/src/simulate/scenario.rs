//! What happens to the pod of a simulation, and when: the scenario file.
//!
//! Everything has a default, so the empty scenario is a calm life: images come, init containers succeed, apps run (or, where the pod is
//! a job, end well), probes are content.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use husk_core::io::{Outcome, Trap};
use husk_core::spec::{ContainerKind, PodSpec, ProbeKind, RestartPolicy};
use serde::Deserialize;

use crate::span::Span;

/// A scenario file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Scenario {
    /// The picture ends here, whatever still runs. `--until` wins.
    pub(crate) until: Option<Span>,
    /// Deletions of the pod.
    pub(crate) delete: Vec<Delete>,
    /// The node's `crashLoopBackOff.maxContainerRestartPeriod`.
    pub(crate) max_container_restart_period: Option<Span>,
    /// How long the pod's address and volumes take.
    pub(crate) set_up: SetUp,
    /// By name of the container.
    pub(crate) containers: BTreeMap<String, Script>,
}

/// A deletion of the pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Delete {
    /// When.
    pub(crate) at: Span,
    /// Seconds of grace asked for; the pod's own if not given.
    pub(crate) grace_period_seconds: Option<i64>,
}

/// Making the sandbox.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SetUp {
    /// How long it takes.
    pub(crate) takes: Span,
    /// How often it fails before it succeeds.
    pub(crate) fails: u32,
}

impl Default for SetUp {
    fn default() -> Self {
        Self { takes: Span::millis(100), fails: 0 }
    }
}

/// What one container does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Script {
    /// Fetching its image.
    pub(crate) image: ImageScript,
    /// How long a start takes.
    pub(crate) start: StartScript,
    /// What its instances do, one entry per attempt; the last stands for all that follow.
    pub(crate) runs: Vec<Run>,
    /// What it does on its stop signal.
    pub(crate) on_stop: StopScript,
    /// Its probes.
    pub(crate) probes: Probes,
    /// Its lifecycle hooks.
    pub(crate) hooks: Hooks,
}

/// Fetching an image.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ImageScript {
    /// How long it takes.
    pub(crate) takes: Span,
    /// How often it fails before it succeeds.
    pub(crate) fails: u32,
    /// The message of a failure.
    pub(crate) message: String,
}

impl Default for ImageScript {
    fn default() -> Self {
        Self { takes: Span::millis(500), fails: 0, message: "image not found".into() }
    }
}

/// Starting an instance.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct StartScript {
    /// How long it takes.
    pub(crate) takes: Span,
    /// How often it fails before it succeeds.
    pub(crate) fails: u32,
    /// The message of a failure.
    pub(crate) message: String,
}

impl Default for StartScript {
    fn default() -> Self {
        Self { takes: Span::millis(50), fails: 0, message: "the module has no entry".into() }
    }
}

/// What one instance does: it runs for some time, then it ends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Run {
    /// How long it runs; until it is stopped if not given.
    #[serde(rename = "for")]
    pub(crate) duration: Option<Span>,
    /// Its exit code; 0 if not given.
    pub(crate) exit: Option<i32>,
    /// It traps instead.
    pub(crate) trap: Option<TrapName>,
    /// Its termination message.
    pub(crate) message: String,
}

impl Run {
    /// How it ends by itself.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.trap {
            Some(trap) => Outcome::Trap(trap.into()),
            None => Outcome::Code(self.exit.unwrap_or(0)),
        }
    }
}

/// Why a guest traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum TrapName {
    /// Exit code 134.
    Unreachable,
    /// Exit code 136.
    Arithmetic,
    /// Exit code 139.
    Fault,
    /// Exit code 137, OOMKilled.
    OutOfMemory,
    /// Exit code 152.
    OutOfFuel,
}

impl From<TrapName> for Trap {
    fn from(name: TrapName) -> Self {
        match name {
            TrapName::Unreachable => Self::Unreachable,
            TrapName::Arithmetic => Self::Arithmetic,
            TrapName::Fault => Self::Fault,
            TrapName::OutOfMemory => Self::OutOfMemory,
            TrapName::OutOfFuel => Self::OutOfFuel,
        }
    }
}

/// What a container does on its stop signal.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct StopScript {
    /// It doesn't listen; only KILL ends it.
    pub(crate) ignores: bool,
    /// It handles the signal and ends after so long; without a handler it ends at once.
    pub(crate) takes: Option<Span>,
    /// With this exit code; 0 if it handles the signal.
    pub(crate) exit: Option<i32>,
}

/// The probes of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Probes {
    /// `livenessProbe`.
    pub(crate) liveness: ProbeScript,
    /// `readinessProbe`.
    pub(crate) readiness: ProbeScript,
    /// `startupProbe`.
    pub(crate) startup: ProbeScript,
}

impl Probes {
    /// The script of a kind.
    pub(crate) fn of(&self, kind: ProbeKind) -> &ProbeScript {
        match kind {
            ProbeKind::Liveness => &self.liveness,
            ProbeKind::Readiness => &self.readiness,
            ProbeKind::Startup => &self.startup,
        }
    }
}

/// What a probe says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ProbeScript {
    /// How long one takes; longer than its timeout is a failure.
    pub(crate) takes: Option<Span>,
    /// When it fails; it succeeds at all other times.
    pub(crate) fails: Vec<Window>,
    /// The message of a failure.
    pub(crate) message: Option<String>,
}

/// A stretch of time, by the clock of the simulation or of the container's own instance.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Window {
    /// From here, included; the beginning if not given.
    pub(crate) from: Span,
    /// To here, excluded; for ever if not given.
    pub(crate) to: Option<Span>,
    /// What `from` and `to` count from.
    pub(crate) since: Clock,
    /// Only for this attempt (0 is the first).
    pub(crate) attempt: Option<u32>,
}

/// What a window counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Clock {
    /// The beginning of the simulation.
    #[default]
    Beginning,
    /// The start of the container's instance.
    Start,
}

/// The hooks of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Hooks {
    /// `lifecycle.postStart`.
    pub(crate) post_start: HookScript,
    /// `lifecycle.preStop`.
    pub(crate) pre_stop: HookScript,
}

/// What a hook does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct HookScript {
    /// How long it takes.
    pub(crate) takes: Span,
    /// It fails, with this message.
    pub(crate) fails: Option<String>,
}

impl Scenario {
    /// Reads a scenario file for a pod.
    pub(crate) fn read(path: &Path, pod: &PodSpec) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("can't read scenario {}", path.display()))?;
        Self::parse(&text, pod).with_context(|| format!("scenario {}", path.display()))
    }

    fn parse(text: &str, pod: &PodSpec) -> Result<Self> {
        // A file of comments alone is the empty scenario.
        let parsed: Option<Self> = serde_saphyr::from_str(text)?;
        let scenario = parsed.unwrap_or_default();
        for (name, script) in &scenario.containers {
            if pod.container(name).is_none() {
                let known: Vec<_> = pod.all_containers().map(|(_, c)| c.name.as_str()).collect();
                bail!("containers.{name}: the pod has no such container (it has {})", known.join(", "));
            }
            script.check().with_context(|| format!("containers.{name}"))?;
        }
        Ok(scenario)
    }

    /// The script of a container, the calm default filled in.
    pub(crate) fn script(&self, pod: &PodSpec, name: &str) -> Script {
        let mut script = self.containers.get(name).cloned().unwrap_or_default();
        if script.runs.is_empty() {
            script.runs.push(calm_run(pod, name));
        }
        script
    }
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

impl Script {
    fn check(&self) -> Result<()> {
        for (n, run) in self.runs.iter().enumerate() {
            if run.exit.is_some() && run.trap.is_some() {
                bail!("runs[{n}]: an instance ends by `exit` or by `trap`: remove one of them");
            }
            if run.duration.is_none() && (run.exit.is_some() || run.trap.is_some()) {
                bail!("runs[{n}]: say with `for` how long it runs before it ends (for: 0s ends it at once)");
            }
            if let Some(code) = run.exit.filter(|code| !(0..=255).contains(code)) {
                bail!("runs[{n}].exit: {code} is not an exit code: give one from 0 to 255");
            }
        }
        if self.on_stop.ignores && (self.on_stop.takes.is_some() || self.on_stop.exit.is_some()) {
            bail!("onStop: a container that `ignores` the signal has no `takes` or `exit`: remove them");
        }
        for kind in ProbeKind::ALL {
            for window in &self.probes.of(kind).fails {
                if window.to.is_some_and(|to| to <= window.from) {
                    bail!("probes.{}.fails: `to` must be later than `from`", kind.as_str().to_lowercase());
                }
            }
        }
        Ok(())
    }

    /// What an instance does.
    pub(crate) fn run(&self, attempt: u32) -> Run {
        let n = usize::try_from(attempt).unwrap_or(usize::MAX).min(self.runs.len().saturating_sub(1));
        self.runs.get(n).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use husk_core::spec::ContainerSpec;

    use super::*;

    fn pod() -> PodSpec {
        let named = |name: &str| ContainerSpec { name: name.into(), ..ContainerSpec::default() };
        PodSpec { init_containers: vec![named("prepare")], containers: vec![named("app")], ..PodSpec::default() }
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
";
        let scenario = Scenario::parse(text, &pod()).expect("valid");
        let app = scenario.script(&pod(), "app");
        assert_eq!(app.run(0).outcome(), Outcome::Code(1));
        assert_eq!(app.run(1).outcome(), Outcome::Trap(Trap::OutOfMemory));
        assert_eq!(app.run(7).duration, None);
        assert_eq!(app.probes.of(ProbeKind::Readiness).fails.len(), 2);
        assert_eq!(scenario.script(&pod(), "prepare").run(0).duration, Some(Span::secs(2)));
    }

    #[test]
    fn a_file_of_comments_is_the_calm_scenario() {
        assert!(Scenario::parse("# nothing happens\n", &pod()).expect("valid").containers.is_empty());
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
            ("until: soon", "soon"),
        ] {
            let error = format!("{:#}", Scenario::parse(text, &pod()).expect_err(text));
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
