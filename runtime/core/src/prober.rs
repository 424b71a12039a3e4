//! One probe of one container as a state machine (PROBE-03 to PROBE-07).
//!
//! The node decides when it is time to probe and calls [`Prober::begin`] with what it knows then. If that says
//! [`Next::Probe`], the probe is carried out, and its outcome goes to [`Prober::finish`]. A prober lives as long as the pod:
//! it sees the container's instances come and go.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::io::ProbeOutcome;
use crate::runtime::Verdict;
use crate::spec::{Probe, ProbeKind};
use crate::status::Phase;
use crate::time::{Duration, Instant};

/// How often a probe is tried that could not be carried out.
const MAX_TRIES: u8 = 3;

/// What is known about the pod when a probe is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// Phase of the pod.
    pub phase: Phase,
    /// The pod is being deleted.
    pub deleting: bool,
    /// The newest instance of the container; none if there is none yet.
    pub instance: Option<InstanceView<'a>>,
}

/// What is known about the instance that is to be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceView<'a> {
    /// `containerID`.
    pub id: &'a str,
    /// Its state.
    pub state: InstanceState,
    /// `started` of the container: its startup probe succeeded, or it has none.
    pub started: bool,
    /// It was running before this node agent was: what its probes said then still holds.
    pub adopted: bool,
    /// It is a sidecar's.
    pub sidecar: bool,
}

/// State of the instance, as far as a probe cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Not running yet.
    Waiting,
    /// Running.
    Running {
        /// Since when.
        since: Instant,
    },
    /// Ended.
    Ended {
        /// Another instance will follow.
        will_restart: bool,
    },
}

/// What to do after [`Prober::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing more, ever: there won't be another instance to probe.
    Stop,
    /// Nothing now.
    Wait,
    /// Carry out the probe.
    Probe,
}

/// Answer of [`Prober::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Another result is published than before.
    pub changed: bool,
    /// What to do.
    pub next: Next,
}

/// Answer of [`Prober::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It could not be carried out: try again at once.
    Retry,
    /// This round is over.
    Done {
        /// Another result is published than before.
        changed: bool,
    },
}

/// One probe of one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prober {
    kind: ProbeKind,
    /// The instance that everything below is about; empty before the first.
    id: String,
    published: Option<Verdict>,
    /// The verdict is final for this instance.
    on_hold: bool,
    last: Option<Verdict>,
    /// How often `last` was the result, in a row. Not cleared by a new instance, as upstream has it.
    run: u32,
    tries: u8,
}

impl Prober {
    /// A prober that has seen no instance yet.
    pub const fn new(kind: ProbeKind) -> Self {
        Self { kind, id: String::new(), published: None, on_hold: false, last: None, run: 0, tries: 0 }
    }

    /// Which probe it is.
    pub const fn kind(&self) -> ProbeKind {
        self.kind
    }

    /// What is published about the current instance.
    pub const fn published(&self) -> Option<Verdict> {
        self.published
    }

    /// The verdict is final: no probe until there is another instance.
    pub const fn is_on_hold(&self) -> bool {
        self.on_hold
    }

    /// What is published before the first probe of an instance (PROBE-06).
    pub const fn initial(&self) -> Verdict {
        match self.kind {
            ProbeKind::Liveness => Verdict::Success,
            ProbeKind::Readiness => Verdict::Failure,
            ProbeKind::Startup => Verdict::Unknown,
        }
    }

    /// What was counted counts no longer.
    pub const fn forget_counts(&mut self) {
        (self.run, self.tries) = (0, 0);
    }

    /// It is time to probe.
    pub fn begin(&mut self, view: &View<'_>, probe: &Probe, now: Instant) -> Begun {
        if view.phase.is_terminal() {
            return Begun { changed: false, next: Next::Stop };
        }
        let Some(instance) = view.instance.filter(|instance| !instance.id.is_empty()) else {
            return Begun { changed: false, next: Next::Wait };
        };
        let renewed = self.take_up(&instance);
        let (published, next) = self.judge(view.deleting, &instance, probe, now);
        let changed = published.is_some_and(|verdict| self.publish(verdict));
        Begun { changed: renewed || changed, next }
    }

    /// The probe was carried out, or not.
    pub fn finish(&mut self, outcome: ProbeOutcome, probe: &Probe) -> Finished {
        let verdict = match outcome {
            ProbeOutcome::Success | ProbeOutcome::Warning => Verdict::Success,
            ProbeOutcome::Failure | ProbeOutcome::Unknown => Verdict::Failure,
            ProbeOutcome::Error => {
                self.tries = self.tries.saturating_add(1);
                if self.tries < MAX_TRIES {
                    return Finished::Retry;
                }
                self.tries = 0;
                return Finished::Done { changed: false };
            }
        };
        self.tries = 0;
        self.run = if self.last == Some(verdict) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(verdict);
        let threshold = if verdict == Verdict::Success { probe.success_threshold } else { probe.failure_threshold };
        if self.run < threshold {
            return Finished::Done { changed: false };
        }
        let changed = self.publish(verdict);
        // A container that failed is about to be stopped: probing it then would only be in the way.
        let is_final = match self.kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => verdict == Verdict::Failure,
            ProbeKind::Readiness => false,
        };
        if is_final {
            self.on_hold = true;
            self.run = 0;
        }
        Finished::Done { changed }
    }

    /// Another instance begins with the initial result, unless it was there before the agent was (NODE-03). Of a sidecar that
    /// had started then, it is known that it did: the init containers behind it need not wait for another probe.
    fn take_up(&mut self, instance: &InstanceView<'_>) -> bool {
        if self.id == instance.id {
            return false;
        }
        self.id = instance.id.into();
        self.on_hold = false;
        self.tries = 0;
        self.published = None;
        let known_to_have_started = instance.sidecar && instance.started && self.kind == ProbeKind::Startup;
        match (instance.adopted, known_to_have_started) {
            (false, _) => self.publish(self.initial()),
            (true, true) => self.publish(Verdict::Success),
            (true, false) => false,
        }
    }

    fn judge(
        &self,
        deleting: bool,
        instance: &InstanceView<'_>,
        probe: &Probe,
        now: Instant,
    ) -> (Option<Verdict>, Next) {
        let is_startup = self.kind == ProbeKind::Startup;
        let since = match instance.state {
            _ if self.on_hold => return (None, Next::Wait),
            InstanceState::Waiting | InstanceState::Ended { will_restart: true } => {
                return (Some(Verdict::Failure), Next::Wait);
            }
            InstanceState::Ended { will_restart: false } => return (Some(Verdict::Failure), Next::Stop),
            InstanceState::Running { since } => since,
        };
        // Nothing may kill a container that is stopping anyway; whether it still serves goes on to matter (PROBE-05).
        if deleting && self.kind != ProbeKind::Readiness {
            return (Some(Verdict::Success), Next::Stop);
        }
        let initial_delay = Duration::from_secs(probe.initial_delay_seconds.into());
        let is_due = now >= since + initial_delay && instance.started != is_startup;
        (None, if is_due { Next::Probe } else { Next::Wait })
    }

    fn publish(&mut self, verdict: Verdict) -> bool {
        self.published.replace(verdict) != Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Handler;

    const PROBE: Probe = Probe {
        handler: Handler::Exec,
        initial_delay_seconds: 5,
        period_seconds: 10,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace_period_seconds: None,
    };

    fn view(id: &str, started: bool) -> View<'_> {
        let state = InstanceState::Running { since: Instant::ZERO };
        View {
            phase: Phase::Running,
            deleting: false,
            instance: Some(InstanceView { id, state, started, adopted: false, sidecar: false }),
        }
    }

    fn begin(prober: &mut Prober, view: &View<'_>) -> Next {
        prober.begin(view, &PROBE, Instant::from_secs(60)).next
    }

    #[test]
    fn the_initial_delay_counts_from_the_start_of_the_instance() {
        let mut prober = Prober::new(ProbeKind::Readiness);
        let early = prober.begin(&view("c1", true), &PROBE, Instant::from_secs(4));
        assert_eq!(early, Begun { changed: true, next: Next::Wait });
        assert_eq!(prober.published(), Some(Verdict::Failure));
        assert_eq!(prober.begin(&view("c1", true), &PROBE, Instant::from_secs(5)).next, Next::Probe);
    }

    #[test]
    fn startup_gates_the_others_and_never_runs_after_its_verdict() {
        let (mut startup, mut liveness) = (Prober::new(ProbeKind::Startup), Prober::new(ProbeKind::Liveness));
        assert_eq!(begin(&mut liveness, &view("c1", false)), Next::Wait);
        assert_eq!(begin(&mut startup, &view("c1", false)), Next::Probe);
        assert_eq!(startup.finish(ProbeOutcome::Success, &PROBE), Finished::Done { changed: true });
        assert_eq!(begin(&mut startup, &view("c1", false)), Next::Wait, "on hold");
        assert_eq!(begin(&mut startup, &view("c1", true)), Next::Wait);
        assert_eq!(begin(&mut liveness, &view("c1", true)), Next::Probe);
    }

    #[test]
    fn failures_below_the_threshold_change_nothing_and_a_verdict_holds_until_the_next_instance() {
        let mut liveness = Prober::new(ProbeKind::Liveness);
        begin(&mut liveness, &view("c1", true));
        for changed in [false, false, true] {
            assert_eq!(liveness.finish(ProbeOutcome::Failure, &PROBE), Finished::Done { changed });
        }
        assert_eq!(begin(&mut liveness, &view("c1", true)), Next::Wait);
        assert_eq!(begin(&mut liveness, &view("c2", true)), Next::Probe);
        assert_eq!(liveness.published(), Some(Verdict::Success));
    }

    #[test]
    fn a_probe_that_cannot_be_carried_out_is_tried_three_times_and_then_ignored() {
        let mut readiness = Prober::new(ProbeKind::Readiness);
        begin(&mut readiness, &view("c1", true));
        let tried = [(); 3].map(|()| readiness.finish(ProbeOutcome::Error, &PROBE));
        assert_eq!(tried, [Finished::Retry, Finished::Retry, Finished::Done { changed: false }]);
    }

    #[test]
    fn deletion_stops_liveness_but_not_readiness() {
        let going = View { deleting: true, ..view("c1", true) };
        assert_eq!(begin(&mut Prober::new(ProbeKind::Liveness), &going), Next::Stop);
        assert_eq!(begin(&mut Prober::new(ProbeKind::Readiness), &going), Next::Probe);
    }
}
