//! A timeline as JSON: what an agent serves, and what `husk simulate -o json` prints.

use std::fmt;
use std::time::Duration;

use husk_core::Instant;
use husk_core::spec::ProbeKind;
use husk_core::status::{ConditionStatus, Phase, Word};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::change::{Change, Interruption, LaneState, Role};
use crate::moment;
use crate::rows::{Kind, Row, rows};
use crate::timeline::{Exit, Lane, Mark, Probed, Timeline};

const KIND: &str = "Timeline";
const API_VERSION: &str = "husk.dev/v1";

/// A timeline as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// `Timeline`.
    pub kind: String,
    /// `husk.dev/v1`.
    pub api_version: String,
    /// `namespace/name`.
    pub pod: String,
    /// `metadata.uid`; none in a simulation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// When it began, by people's clocks.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "moment")]
    pub start: Option<Timestamp>,
    /// From then on everything is known, in seconds since the start; from the start if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_since: Option<f64>,
    /// How long it was or is.
    pub seconds: f64,
    /// The phase at the end.
    pub phase: String,
    /// Is the pod gone?
    pub gone: bool,
    /// Its containers.
    pub containers: Vec<ContainerDocument>,
    /// What changed, in order of time.
    pub changes: Vec<Row>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerDocument {
    /// Its name.
    pub name: String,
    /// What it is in its pod.
    pub role: Role,
    /// How often it was restarted.
    pub restart_count: u32,
    /// The probes that it has: `startup`, `liveness`, `readiness`.
    #[serde(default)]
    pub probe_kinds: Vec<String>,
    /// What they said.
    pub probes: Vec<ProbeDocument>,
    /// The ends of its instances.
    #[serde(default)]
    pub exits: Vec<ExitDocument>,
}

/// What a probe said, once or several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeDocument {
    /// When first, in seconds since the start.
    pub seconds: f64,
    /// When last, if it said so several times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// How often, if several times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Which probe.
    pub kind: String,
    /// Well?
    pub success: bool,
}

/// The end of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitDocument {
    /// When, in seconds since the start.
    pub seconds: f64,
    /// Its exit code.
    pub exit_code: i32,
    /// As in `OOMKilled`.
    pub reason: String,
}

/// A document that no agent writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl Document {
    /// Of a timeline.
    pub fn of(timeline: &Timeline) -> Self {
        let seconds = |at: Instant| timeline.after(at).as_secs_f64();
        let lane = |lane: &Lane| ContainerDocument {
            name: lane.name.clone(),
            role: lane.role,
            restart_count: lane.restarts,
            probe_kinds: lane.probe_kinds.iter().map(|kind| kind.as_str().to_lowercase()).collect(),
            probes: lane
                .probes
                .iter()
                .map(|probed| ProbeDocument {
                    seconds: seconds(probed.at),
                    until: (probed.count > 1).then(|| seconds(probed.until)),
                    count: (probed.count > 1).then_some(probed.count),
                    kind: probed.kind.as_str().to_lowercase(),
                    success: probed.ok,
                })
                .collect(),
            exits: lane
                .exits
                .iter()
                .map(|exit| ExitDocument {
                    seconds: seconds(exit.at),
                    exit_code: exit.code,
                    reason: exit.reason.clone(),
                })
                .collect(),
        };
        Self {
            kind: KIND.into(),
            api_version: API_VERSION.into(),
            pod: timeline.pod.clone(),
            uid: timeline.uid.clone(),
            start: timeline.start,
            complete_since: timeline.complete_since.map(seconds),
            seconds: timeline.duration().as_secs_f64(),
            phase: timeline.last_phase().as_str().into(),
            gone: timeline.gone.is_some(),
            containers: timeline.lanes.iter().map(lane).collect(),
            changes: rows(timeline),
        }
    }

    /// The timeline that it tells; its times are counted from zero.
    ///
    /// # Errors
    /// It says what no timeline can.
    pub fn timeline(self) -> Result<Timeline, Unreadable> {
        let mut timeline = Timeline {
            pod: self.pod,
            uid: self.uid,
            start: self.start,
            complete_since: self.complete_since.map(instant),
            ..Timeline::default()
        };
        for container in self.containers {
            timeline.lanes.push(container.lane()?);
        }
        for row in self.changes {
            let bad = || Unreadable(format!("{:?} of {:?}", row.what, row.kind));
            let at = instant(row.seconds);
            let change = match row.kind {
                Kind::Node => [Interruption::AgentRestarted, Interruption::NodeRebooted]
                    .into_iter()
                    .find(|interruption| interruption.as_str() == row.what)
                    .map(Change::Interrupted),
                Kind::Pod => match row.what.as_str() {
                    "delete" => Some(Change::Deleted),
                    "gone" => Some(Change::Gone),
                    _ => None,
                },
                Kind::State => {
                    let lane = timeline.lanes.iter().position(|lane| Some(&lane.name) == row.container.as_ref());
                    let lane = lane.and_then(|lane| u16::try_from(lane).ok());
                    lane.zip(LaneState::read(&row.what, &row.detail)).map(|(lane, state)| Change::State { lane, state })
                }
                Kind::Condition => condition(&row.what, &row.detail),
                Kind::Phase => PHASES.into_iter().find(|phase| phase.as_str() == row.what).map(Change::Phase),
                // How often it was is in what it says.
                Kind::Event => {
                    let Row { container, warning, what: reason, detail: message, .. } = row;
                    timeline.events.push(Mark { at, container, warning, reason, message, count: 1 });
                    continue;
                }
            };
            timeline.put(at, change.ok_or_else(bad)?);
        }
        let end = instant(self.seconds);
        Ok(if self.gone { timeline.finished(end) } else { timeline.cut(end) })
    }
}

impl ContainerDocument {
    fn lane(self) -> Result<Lane, Unreadable> {
        let probed = |probe: ProbeDocument| {
            let at = instant(probe.seconds);
            let until = probe.until.map_or(at, instant);
            let count = probe.count.unwrap_or(1);
            Ok(Probed { at, until, count, kind: kind(&probe.kind)?, ok: probe.success })
        };
        let exit = |exit: ExitDocument| Exit { at: instant(exit.seconds), code: exit.exit_code, reason: exit.reason };
        Ok(Lane {
            name: self.name,
            role: self.role,
            probe_kinds: self.probe_kinds.iter().map(|word| kind(word)).collect::<Result<_, _>>()?,
            states: Vec::new(),
            probes: self.probes.into_iter().map(probed).collect::<Result<_, _>>()?,
            exits: self.exits.into_iter().map(exit).collect(),
            restarts: self.restart_count,
        })
    }
}

const PHASES: [Phase; 5] = [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::Unknown];

fn kind(word: &str) -> Result<ProbeKind, Unreadable> {
    let found = ProbeKind::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(word));
    found.ok_or_else(|| Unreadable(format!("probe {word:?}")))
}

/// `Ready=True` with `reason: message`.
fn condition(what: &str, detail: &str) -> Option<Change> {
    let (kind, status) = what.rsplit_once('=')?;
    let status = match status {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        "Unknown" => ConditionStatus::Unknown,
        _ => return None,
    };
    let (reason, message) = detail.split_once(": ").unwrap_or((detail, ""));
    let word = |text: &str| Word::Owned(text.to_owned());
    Some(Change::Condition { kind: word(kind), status, reason: word(reason), message: message.into() })
}

/// In microseconds, which a number of seconds has exactly for centuries.
fn instant(seconds: f64) -> Instant {
    let micros = (seconds * 1e6).round();
    // A float that is negative or too large becomes the nearest that there is.
    Instant::ZERO + Duration::from_micros(micros as u64)
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the timeline has {} in it, which this husk doesn't know: is the agent of another version?", self.0)
    }
}

impl std::error::Error for Unreadable {}
