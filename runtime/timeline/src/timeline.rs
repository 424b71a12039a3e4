//! The course of a pod's life, for those who draw it.

use std::time::Duration;

use husk_core::Instant;
use husk_core::spec::ProbeKind;
use husk_core::status::{ConditionStatus, Phase};
use jiff::Timestamp;

use crate::change::{Change, Interruption, LaneState, Role};

/// The course of a pod's life.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// `namespace/name`.
    pub pod: String,
    /// `metadata.uid`; empty in a simulation.
    pub uid: String,
    /// What times are counted from.
    pub origin: Instant,
    /// When that was by people's clocks, if it was at all.
    pub start: Option<Timestamp>,
    /// Before that, only what the pod's record and status still say is known.
    pub complete_since: Option<Instant>,
    /// Where the picture begins.
    pub begin: Instant,
    /// Where the picture ends.
    pub end: Instant,
    /// When the last thing happened, if it came to an end by itself.
    pub over: Option<Instant>,
    /// Phases, without gaps.
    pub phases: Vec<(Instant, Phase)>,
    /// Changes of conditions: when, which, to what, why.
    pub conditions: Vec<ConditionChange>,
    /// One for each container, in order of the spec: init containers, then app containers.
    pub lanes: Vec<Lane>,
    /// Everything that was recorded.
    pub events: Vec<Mark>,
    /// When the pod was asked to go.
    pub deleted: Vec<Instant>,
    /// When it was gone.
    pub gone: Option<Instant>,
    /// What ended its instances beside itself.
    pub interruptions: Vec<(Instant, Interruption)>,
}

/// A condition that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionChange {
    /// When.
    pub at: Instant,
    /// `type`.
    pub kind: String,
    /// `status`.
    pub status: ConditionStatus,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// When.
    pub at: Instant,
    /// Name of the container; none if about the pod.
    pub container: Option<String>,
    /// `type: Warning`.
    pub warning: bool,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `count`.
    pub count: u32,
}

/// The course of one container.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Name of the container.
    pub name: String,
    /// What role it has.
    pub role: Role,
    /// Its probes that are configured.
    pub probe_kinds: Vec<ProbeKind>,
    /// States, without gaps, each to the start of the next.
    pub states: Vec<(Instant, LaneState)>,
    /// What probes said.
    pub probes: Vec<Probed>,
    /// Ends of instances.
    pub exits: Vec<Exit>,
    /// Restarts when the picture ends.
    pub restarts: u32,
}

/// What a probe said, once or several times one after another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probed {
    /// When first.
    pub at: Instant,
    /// When last.
    pub until: Instant,
    /// How often, evenly.
    pub count: u32,
    /// Which.
    pub kind: ProbeKind,
    /// Well?
    pub ok: bool,
}

/// The end of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Exit {
    /// When.
    pub at: Instant,
    /// Its exit code.
    pub code: i32,
    /// As in `OOMKilled`.
    pub reason: String,
}

impl Probed {
    /// When each of them was, but for those that come sooner than `room` after another.
    pub fn times(&self, room: Duration) -> impl Iterator<Item = Instant> {
        let span = self.until - self.at;
        let runs = self.count.max(1);
        let gaps = runs - 1;
        let step = if gaps == 0 || room.is_zero() {
            1
        } else {
            let gap = (span / gaps).max(Duration::from_nanos(1));
            u32::try_from(room.as_nanos().div_ceil(gap.as_nanos())).unwrap_or(u32::MAX).clamp(1, runs)
        };
        let at = self.at;
        (0..runs).step_by(step as usize).map(move |n| at + span.mul_f64(f64::from(n) / f64::from(gaps.max(1))))
    }
}

impl Timeline {
    /// Spans between changes: from, to, what.
    pub fn spans<'a, T>(&self, changes: &'a [(Instant, T)]) -> Vec<(Instant, Instant, &'a T)> {
        let ends = changes.iter().skip(1).map(|(at, _)| *at).chain([self.end]);
        changes.iter().zip(ends).map(|((from, what), to)| (*from, to, what)).collect()
    }

    /// Time from the beginning to the end.
    pub fn duration(&self) -> Duration {
        self.after(self.over.unwrap_or(self.end))
    }

    /// Time from the beginning to an instant.
    pub fn after(&self, at: Instant) -> Duration {
        at.saturating_since(self.origin)
    }

    /// What people's clocks said at an instant.
    pub fn wall(&self, at: Instant) -> Option<Timestamp> {
        self.start?.checked_add(self.after(at)).ok()
    }

    /// The phase when the picture ends.
    pub fn last_phase(&self) -> Phase {
        self.phases.last().map_or(Phase::Pending, |(_, phase)| *phase)
    }

    /// The picture ends here.
    #[must_use]
    pub fn cut(self, end: Instant) -> Self {
        Self { end: end.max(self.begin), ..self }
    }

    /// It is over. The picture goes on a little, so that it shows where it all led to.
    #[must_use]
    pub fn finished(self, at: Instant) -> Self {
        let more = (at.saturating_since(self.begin) / 25).max(Duration::from_millis(200));
        Self { end: at + more, over: Some(at), ..self }
    }

    /// Only what there was from then on, and what was so then.
    #[must_use]
    pub fn since(mut self, begin: Instant) -> Self {
        if begin <= self.begin {
            return self;
        }
        self.begin = begin.min(self.end);
        let begin = self.begin;
        self.phases = from(self.phases, begin);
        self.conditions = conditions_from(self.conditions, begin);
        self.events.retain(|event| event.at >= begin);
        self.deleted.retain(|at| *at >= begin);
        self.interruptions.retain(|(at, _)| *at >= begin);
        for lane in &mut self.lanes {
            lane.states = from(std::mem::take(&mut lane.states), begin);
            lane.exits.retain(|exit| exit.at >= begin);
            lane.probes.retain(|probe| probe.until >= begin);
        }
        self
    }

    /// Puts in what changed. Changes come in order of time.
    pub(crate) fn put(&mut self, at: Instant, change: Change) {
        match change {
            Change::Phase(phase) => push_change(&mut self.phases, at, phase),
            Change::Condition { kind, status, reason, message } => self.conditions.push(ConditionChange {
                at,
                kind: kind.into_owned(),
                status,
                reason: reason.into_owned(),
                message,
            }),
            Change::State { lane, state } => self.lane(lane, |lane| push_change(&mut lane.states, at, state)),
            Change::Exit { lane, code, reason } => {
                self.lane(lane, |lane| lane.exits.push(Exit { at, code, reason: reason.into_owned() }));
            }
            Change::Probes { lane, kind, ok, count, micros } => {
                let until = at + Duration::from_micros(micros);
                self.lane(lane, |lane| lane.probes.push(Probed { at, until, count, kind, ok }));
            }
            Change::Event { container, warning, reason, message, count } => {
                self.events.push(Mark { at, container, warning, reason: reason.into_owned(), message, count });
            }
            Change::Deleted => self.deleted.push(at),
            Change::Gone => self.gone = Some(at),
            Change::Interrupted(what) => self.interruptions.push((at, what)),
        }
    }

    fn lane(&mut self, lane: u16, change: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.lanes.get_mut(usize::from(lane)) {
            change(lane);
        }
    }
}

/// What is so at `begin` begins no earlier.
fn from<T>(changes: Vec<(Instant, T)>, begin: Instant) -> Vec<(Instant, T)> {
    let first = changes.partition_point(|(at, _)| *at <= begin).saturating_sub(1);
    changes.into_iter().skip(first).map(|(at, what)| (at.max(begin), what)).collect()
}

/// The same, for each type.
fn conditions_from(changes: Vec<ConditionChange>, begin: Instant) -> Vec<ConditionChange> {
    let split = changes.partition_point(|change| change.at < begin);
    let (before, after) = changes.split_at(split);
    let is_last =
        |(n, change): &(usize, &ConditionChange)| before[n + 1..].iter().all(|later| later.kind != change.kind);
    let last =
        before.iter().enumerate().filter(is_last).map(|(_, change)| ConditionChange { at: begin, ..change.clone() });
    last.chain(after.iter().cloned()).collect()
}

fn push_change<T: PartialEq>(changes: &mut Vec<(Instant, T)>, now: Instant, what: T) {
    match changes.last_mut() {
        Some((_, last)) if *last == what => {}
        // Within one instant only the last word counts.
        Some((at, last)) if *at == now => {
            *last = what;
            if changes.len() > 1 && changes[changes.len() - 2].1 == changes[changes.len() - 1].1 {
                changes.pop();
            }
        }
        _ => changes.push((now, what)),
    }
}
