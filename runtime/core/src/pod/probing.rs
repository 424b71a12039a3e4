//! When a container's probes run, and what their answers change (PROBE-03 to PROBE-07, PROBE-15).

use alloc::format;

use serde::{Deserialize, Serialize};

use super::{Out, Pod};
use crate::event::EventKind;
use crate::io::{Action, InstanceRef, ProbeOutcome};
use crate::prober::{Finished, InstanceState as Seen, InstanceView, Next, Prober, View};
use crate::runtime::{Instance, InstanceState, Verdict, Verdicts};
use crate::spec::{ContainerKind, ContainerSpec, ProbeKind};
use crate::time::{Duration, Instant};

/// One probe of a container and when it is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ProbeTask {
    prober: Prober,
    /// When to look at it again; none: not before something changes.
    due: Option<Instant>,
    /// The probe that was ordered last and isn't answered.
    asked: Option<u32>,
    /// When it was due: the period counts from there.
    tick: Instant,
    next_run: u32,
}

/// What a probe said.
pub(crate) struct ProbeResult<'a> {
    pub(crate) instance: &'a InstanceRef,
    pub(crate) kind: ProbeKind,
    pub(crate) run: u32,
    pub(crate) outcome: ProbeOutcome,
    /// Its output, for the event.
    pub(crate) message: &'a str,
}

impl Pod {
    /// The container runs: its probes begin (at once, where they have no initial delay).
    pub(super) fn arm_probes(&mut self, index: usize, out: &Out<'_>) {
        if self.gone {
            return;
        }
        let container = self.container(index);
        let kinds = ProbeKind::ALL.map(|kind| container.probe(kind).is_some().then_some(kind));
        self.slots[index].started_up = None;
        let probes = &mut self.slots[index].probes;
        for kind in kinds.into_iter().flatten() {
            if probes.iter().all(|task| task.prober.kind() != kind) {
                probes.reserve_exact(1);
                let prober = Prober::new(kind);
                probes.push(ProbeTask { prober, due: None, asked: None, tick: out.now, next_run: 0 });
            }
        }
        for task in probes {
            (task.due, task.asked) = (Some(out.now), None);
        }
    }

    /// The container ended: what its probes are still to say is stale, and what they published is taken back.
    pub(super) fn disarm_probes(&mut self, index: usize, out: &Out<'_>) {
        for task in &mut self.slots[index].probes {
            (task.due, task.asked) = (Some(out.now), None);
        }
    }

    /// The pod ends: of its probes only readiness goes on (PROBE-05). What the others are still to say doesn't matter any more.
    pub(super) fn retire_probes(&mut self, out: &Out<'_>) {
        let tasks = self.slots.iter_mut().flat_map(|slot| &mut slot.probes);
        for task in tasks.filter(|task| task.prober.kind() != ProbeKind::Readiness) {
            (task.due, task.asked) = (Some(out.now), None);
        }
    }

    /// What was counted ended with the agent: the record says how it was when it was last written.
    pub(super) fn forget_probe_counts(&mut self, index: usize) {
        self.slots[index].probes.iter_mut().for_each(|task| task.prober.forget_counts());
    }

    /// KILL is ordered: the instance is as good as gone, and so are its probes.
    pub(super) fn silence_probes(&mut self, index: usize) {
        for task in &mut self.slots[index].probes {
            (task.due, task.asked) = (None, None);
        }
    }

    /// Does what is due if that is nothing but probes. Returns true if the whole pod has to be looked at: something else is due,
    /// or a verdict changed, which is rare.
    pub(crate) fn tend_probes(&mut self, due: Instant, out: &mut Out<'_>) -> bool {
        let just_before = Instant::from_nanos(due.as_nanos().saturating_sub(1));
        let others = self.next_wake_but_probes(just_before);
        others.is_some_and(|at| at <= out.now) || self.drive_probes(out)
    }

    /// Takes the answer of a probe. Returns true if the whole pod has to be looked at, as above.
    pub(crate) fn hear_probe(&mut self, result: ProbeResult<'_>, out: &mut Out<'_>) -> bool {
        let overdue = self.wake.is_some_and(|due| due <= out.now);
        let changed = self.probed(result, out);
        overdue || changed || self.drive_probes(out)
    }

    /// Nobody is there any more whom the probes could tell anything.
    pub(super) fn forget_probes(&mut self) {
        for index in 0..self.slots.len() {
            self.silence_probes(index);
        }
    }

    /// Looks at every probe that is due. Returns true if that changed a verdict.
    pub(super) fn drive_probes(&mut self, out: &mut Out<'_>) -> bool {
        let mut changed = false;
        for index in 0..self.slots.len() {
            for task in 0..self.slots[index].probes.len() {
                if self.slots[index].probes[task].due.is_some_and(|due| due <= out.now) {
                    changed |= self.drive_probe(index, task, out);
                }
            }
        }
        changed
    }

    fn drive_probe(&mut self, index: usize, task: usize, out: &mut Out<'_>) -> bool {
        let kind = self.slots[index].probes[task].prober.kind();
        let name = self.slots[index].name.clone();
        let Some(probe) = self.container(index).probe(kind).cloned() else {
            self.slots[index].probes[task].due = None;
            return false;
        };
        // Initial delays count from the start of the instance, those behind a startup probe from its success (PROBE-03).
        let started_up = self.slots[index].started_up;
        let period = Duration::from_secs(u64::from(probe.period_seconds));
        let began = out.config.spread_probes_after;
        let since = |instance: &Instance| {
            let since = started_up.or(instance.started_at)?;
            let spreads = began.is_some_and(|began| since.saturating_since(began) < period);
            Some(if spreads { since + part_of(period, &[&self.uid.0, &name, kind.as_str()]) } else { since })
        };
        let newest = self.runtime.newest(&name);
        let view = View {
            phase: self.status.phase,
            deleting: self.ending.is_some(),
            instance: newest.map(|instance| InstanceView {
                id: &instance.id,
                state: match instance.state {
                    InstanceState::Running => Seen::Running { since: since(instance).unwrap_or(out.now) },
                    // If another follows, its start has the prober look again; if none does, nothing has.
                    InstanceState::Exited => Seen::Ended { will_restart: true },
                    InstanceState::Created | InstanceState::Unknown => Seen::Waiting,
                },
                started: has_started(self.container(index), instance),
                sidecar: self.slots[index].kind == ContainerKind::Init,
                adopted: false,
            }),
        };
        // Too early for its initial delay: that is the one case in which time alone makes it due. Not if it is held back otherwise,
        // too: by a startup probe without its verdict, or by its own.
        let delay = Duration::from_secs(u64::from(probe.initial_delay_seconds));
        let only_time = view.instance.is_some_and(|instance| instance.started != (kind == ProbeKind::Startup));
        let later = newest
            .filter(|instance| only_time && instance.state == InstanceState::Running)
            .and_then(since)
            .map(|since| since + delay)
            .filter(|at| *at > out.now);
        let task = &mut self.slots[index].probes[task];
        // A shell wakes up a little late: counted from then, each period would be a little longer.
        let tick = task.due.unwrap_or(out.now);
        let begun = task.prober.begin(&view, &probe, out.now);
        task.due = if begun.next == Next::Wait && !task.prober.is_on_hold() { later } else { None };
        let order = (begun.next == Next::Probe).then(|| {
            let run = task.next_run;
            task.next_run = task.next_run.wrapping_add(1);
            (task.asked, task.tick) = (Some(run), tick);
            run
        });
        let published = task.prober.published();
        let changed = self.publish(index, kind, published);
        if let (Some(run), Some(live)) = (order, self.slots[index].live()) {
            let instance = self.instance_ref(index, live.attempt);
            let timeout = Duration::from_secs(u64::from(probe.timeout_seconds));
            out.order(Action::RunProbe { instance, kind, run, timeout });
        }
        changed
    }

    /// A probe answered. Returns true if that changed its verdict.
    fn probed(&mut self, result: ProbeResult<'_>, out: &mut Out<'_>) -> bool {
        let ProbeResult { instance: at, kind, run, outcome, message } = result;
        let Some(index) = self.slot_named(&at.container) else { return false };
        if self.slots[index].current(at.attempt).is_none() {
            return false;
        }
        let Some(probe) = self.container(index).probe(kind).cloned() else { return false };
        let tasks = &mut self.slots[index].probes;
        let Some(task) = tasks.iter_mut().find(|t| t.prober.kind() == kind && t.asked == Some(run)) else {
            return false;
        };
        task.asked = None;
        match task.prober.finish(outcome, &probe) {
            Finished::Retry => {
                task.due = Some(out.now);
                return false;
            }
            Finished::Done { .. } => {
                let period = Duration::from_secs(u64::from(probe.period_seconds.max(1)));
                task.due = (!task.prober.is_on_hold()).then(|| (task.tick + period).max(out.now));
            }
        }
        let published = task.prober.published();
        let changed = self.publish(index, kind, published);
        let name = kind.as_str();
        let event = match outcome {
            ProbeOutcome::Success => None,
            ProbeOutcome::Warning => Some(("ProbeWarning", format!("{name} probe warning: {message}"))),
            ProbeOutcome::Failure | ProbeOutcome::Unknown => {
                Some(("Unhealthy", format!("{name} probe failed: {message}")))
            }
            ProbeOutcome::Error => {
                Some(("Unhealthy", format!("{name} probe errored and resulted in unknown state: {message}")))
            }
        };
        if let Some((reason, message)) = event {
            self.event(out, Some(index), EventKind::Warning, reason, message);
        }
        if kind == ProbeKind::Startup && published == Some(Verdict::Success) {
            // What it held back begins at once, not a period later (PROBE-03, PROBE-15).
            self.slots[index].started_up = Some(out.now);
            for task in self.slots[index].probes.iter_mut().filter(|task| task.prober.kind() != kind) {
                task.due = Some(out.now);
            }
        }
        changed
    }

    /// When a probe is due next.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        self.slots.iter().flat_map(|slot| &slot.probes).filter_map(|task| task.due).min()
    }

    fn publish(&mut self, index: usize, kind: ProbeKind, verdict: Option<Verdict>) -> bool {
        let name = &self.slots[index].name;
        let Some(newest) = self.runtime.instances.iter_mut().find(|i| *i.name == **name) else { return false };
        core::mem::replace(slot_for(&mut newest.verdicts, kind), verdict) != verdict
    }
}

/// Some part of a period: always the same one for the same names, and evenly spread over those of others.
fn part_of(period: Duration, names: &[&str]) -> Duration {
    // FNV-1a.
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    // Its low bits are mixed best.
    let part = (period.as_nanos() * u128::from(hash as u32)) >> 32;
    Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
}

fn slot_for(verdicts: &mut Verdicts, kind: ProbeKind) -> &mut Option<Verdict> {
    match kind {
        ProbeKind::Liveness => &mut verdicts.liveness,
        ProbeKind::Readiness => &mut verdicts.readiness,
        ProbeKind::Startup => &mut verdicts.startup,
    }
}

/// `started`: it runs and its startup probe, if it has one, succeeded.
pub(super) fn has_started(container: &ContainerSpec, instance: &Instance) -> bool {
    instance.state == InstanceState::Running
        && (container.startup_probe.is_none() || instance.verdicts.startup == Some(Verdict::Success))
}
