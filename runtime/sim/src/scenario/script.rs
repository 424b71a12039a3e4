//! What one container does: its image, its starts, its runs, its probes and hooks.

use anyhow::{Result, bail};
use husk_core::io::{Outcome, ProbeOutcome, Trap};
use husk_core::spec::ProbeKind;
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::span::Span;

/// What one container does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Script {
    /// Fetching its image.
    #[serde(skip_serializing_if = "is_default")]
    pub image: ImageScript,
    /// How long a start takes.
    #[serde(skip_serializing_if = "is_default")]
    pub start: StartScript,
    /// What its instances do, one entry per attempt; the last stands for all that follow.
    #[serde(skip_serializing_if = "is_default")]
    pub runs: Vec<Run>,
    /// What it does on its stop signal.
    #[serde(skip_serializing_if = "is_default")]
    pub on_stop: StopScript,
    /// Its probes.
    #[serde(skip_serializing_if = "is_default")]
    pub probes: Probes,
    /// Its lifecycle hooks.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks: Hooks,
    /// Resizing it while it runs.
    #[serde(skip_serializing_if = "is_default")]
    pub resize: ResizeScript,
}

/// Fetching an image.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageScript {
    /// How long it takes.
    pub takes: Span,
    /// How often it fails before it succeeds.
    pub fails: u32,
    /// The reason of a failure, as in `InvalidImageName`.
    pub reason: String,
    /// The message of a failure.
    pub message: String,
}

impl Default for ImageScript {
    fn default() -> Self {
        let (reason, message) = ("ErrImagePull".into(), "image not found".into());
        Self { takes: Span::millis(500), fails: 0, reason, message }
    }
}

/// Starting an instance.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StartScript {
    /// How long it takes.
    pub takes: Span,
    /// How often it fails before it succeeds.
    pub fails: u32,
    /// The reason of a failure, as in `CreateContainerConfigError`.
    pub reason: String,
    /// The message of a failure.
    pub message: String,
}

impl Default for StartScript {
    fn default() -> Self {
        let (reason, message) = ("RunContainerError".into(), "the module has no entry".into());
        Self { takes: Span::millis(50), fails: 0, reason, message }
    }
}

/// Giving a running instance other resources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResizeScript {
    /// How long it takes.
    #[serde(skip_serializing_if = "is_default")]
    pub takes: Span,
    /// How often it fails before it succeeds.
    #[serde(skip_serializing_if = "is_default")]
    pub fails: u32,
}

/// What one instance does: it runs for some time, then it ends.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Run {
    /// How long it runs; until it is stopped if not given.
    #[serde(rename = "for", skip_serializing_if = "is_default")]
    pub duration: Option<Span>,
    /// Its exit code; 0 if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub exit: Option<i32>,
    /// It traps instead.
    #[serde(skip_serializing_if = "is_default")]
    pub trap: Option<TrapName>,
    /// Its termination message.
    #[serde(skip_serializing_if = "is_default")]
    pub message: String,
}

impl Run {
    /// How it ends by itself.
    pub fn outcome(&self) -> Outcome {
        match self.trap {
            Some(trap) => Outcome::Trap(trap.into()),
            None => Outcome::Code(self.exit.unwrap_or(0)),
        }
    }
}

/// Why a guest traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum TrapName {
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
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StopScript {
    /// It doesn't listen; only KILL ends it.
    #[serde(skip_serializing_if = "is_default")]
    pub ignores: bool,
    /// It handles the signal and ends after so long; without a handler it ends at once.
    #[serde(skip_serializing_if = "is_default")]
    pub takes: Option<Span>,
    /// With this exit code; 0 if it handles the signal.
    #[serde(skip_serializing_if = "is_default")]
    pub exit: Option<i32>,
}

/// The probes of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Probes {
    /// `livenessProbe`.
    #[serde(skip_serializing_if = "is_default")]
    pub liveness: ProbeScript,
    /// `readinessProbe`.
    #[serde(skip_serializing_if = "is_default")]
    pub readiness: ProbeScript,
    /// `startupProbe`.
    #[serde(skip_serializing_if = "is_default")]
    pub startup: ProbeScript,
}

impl Probes {
    /// The script of a kind.
    pub fn of(&self, kind: ProbeKind) -> &ProbeScript {
        match kind {
            ProbeKind::Liveness => &self.liveness,
            ProbeKind::Readiness => &self.readiness,
            ProbeKind::Startup => &self.startup,
        }
    }
}

/// What a probe says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProbeScript {
    /// How long one takes; longer than its timeout is a failure.
    #[serde(skip_serializing_if = "is_default")]
    pub takes: Option<Span>,
    /// When it fails; it succeeds at all other times.
    #[serde(skip_serializing_if = "is_default")]
    pub fails: Vec<Window>,
    /// The message of a failure.
    #[serde(skip_serializing_if = "is_default")]
    pub message: Option<String>,
}

/// A stretch of time, by the clock of the simulation or of the container's own instance.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Window {
    /// From here, included; the beginning if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub from: Span,
    /// To here, excluded; for ever if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub to: Option<Span>,
    /// What `from` and `to` count from.
    #[serde(skip_serializing_if = "is_default")]
    pub since: Clock,
    /// Only for this attempt (0 is the first).
    #[serde(skip_serializing_if = "is_default")]
    pub attempt: Option<u32>,
    /// What the probe says then; that it failed, if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub says: Option<ProbeOutcome>,
}

/// What a window counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Clock {
    /// The beginning of the simulation.
    #[default]
    Beginning,
    /// The start of the container's instance.
    Start,
}

/// The hooks of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Hooks {
    /// `lifecycle.postStart`.
    #[serde(skip_serializing_if = "is_default")]
    pub post_start: HookScript,
    /// `lifecycle.preStop`.
    #[serde(skip_serializing_if = "is_default")]
    pub pre_stop: HookScript,
}

/// What a hook does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HookScript {
    /// How long it takes.
    #[serde(skip_serializing_if = "is_default")]
    pub takes: Span,
    /// It fails, with this message.
    #[serde(skip_serializing_if = "is_default")]
    pub fails: Option<String>,
}

impl Script {
    pub(super) fn check(&self) -> Result<()> {
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
    pub fn run(&self, attempt: u32) -> Run {
        let n = usize::try_from(attempt).unwrap_or(usize::MAX).min(self.runs.len().saturating_sub(1));
        self.runs.get(n).cloned().unwrap_or_default()
    }
}
