//! One run: pods from apply to gone, whatever the user and the clock want in between.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use husk_agent::{LocalNode, Notice, PodHandle};
use husk_core::io::PodUid;
use husk_core::status::Phase;
use husk_engine::{Follower, Line, Log};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};

use super::happening::{Reporter, What, Who};
use crate::manifest::Found;
use crate::span::Span;

/// How often a live view is brought up to date if nothing happens.
const TICK: Duration = Duration::from_millis(200);
/// Grace after the second Ctrl-C, in seconds, counted from the first.
const SHORT_GRACE: i64 = 2;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All pods succeeded.
    Succeeded,
    /// One at least did not.
    Failed,
    /// Time was up.
    TimedOut,
}

/// A run.
pub(crate) struct Session {
    node: LocalNode,
    reporter: Box<dyn Reporter>,
    notices: broadcast::Receiver<Notice>,
    logs: Vec<Followed>,
    /// Lines that were read and not shown, by time.
    waiting: Vec<(Duration, Who, Arc<str>, Line)>,
    /// Some log has grown.
    grown: Arc<Notify>,
    pods: HashMap<PodUid, OnePod>,
    began: Instant,
    /// From the node's epoch to the beginning of the run.
    offset: Duration,
    timeout: Option<Duration>,
    timed_out: bool,
    interrupts: u32,
}

/// A container's log, and how far it was shown. A guest that writes faster than is shown loses lines in its bounded log.
struct Followed {
    who: Who,
    container: Arc<str>,
    follower: Follower,
}

impl Followed {
    /// The next line that is there already.
    fn next(&mut self) -> Option<Line> {
        match pin!(self.follower.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(line) => line,
            Poll::Pending => None,
        }
    }
}

struct OnePod {
    who: Who,
    phase: Phase,
    /// Its end was asked for, because it ended.
    reaped: bool,
    gone: bool,
}

impl Session {
    /// Applies the pods.
    pub(crate) fn begin(
        node: LocalNode,
        found: Vec<Found>,
        reporter: Box<dyn Reporter>,
        timeout: Option<Span>,
    ) -> Self {
        let notices = node.watch();
        let (grown, mut all_logs, mut pods) = (Arc::new(Notify::new()), Vec::new(), HashMap::new());
        let offset = SystemTime::now().duration_since(node.epoch()).unwrap_or_default();
        for (place, found) in found.into_iter().enumerate() {
            let who = Who { place, name: found.name().into() };
            let PodHandle { uid, logs } = node.apply(found.pod, found.base);
            for (container, log) in logs {
                tell_growth(&log, &grown);
                all_logs.push(Followed { who: who.clone(), container: container.into(), follower: log.follow() });
            }
            pods.insert(uid, OnePod { who, phase: Phase::Pending, reaped: false, gone: false });
        }
        Self {
            node,
            reporter,
            notices,
            logs: all_logs,
            waiting: Vec::new(),
            grown,
            pods,
            began: Instant::now(),
            offset,
            timeout: timeout.map(|span| span.0),
            timed_out: false,
            interrupts: 0,
        }
    }

    /// Goes on until nothing is left of any pod.
    pub(crate) async fn finish(mut self) -> Ending {
        let mut interrupt = Interrupts::new();
        let timeout = self.timeout;
        let mut time_is_up = pin!(async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        });
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.pods.values().all(|pod| pod.gone) {
            tokio::select! {
                // In this order: the user first, and lines only when all that happened before them was told.
                biased;
                () = interrupt.next() => self.interrupted(),
                () = &mut time_is_up, if !self.timed_out => self.time_is_up(),
                notice = self.notices.recv() => match notice {
                    Ok(notice) => self.notice(notice),
                    Err(RecvError::Lagged(missed)) => self.note(&format!("{missed} happenings came too fast to be shown")),
                    Err(RecvError::Closed) => break,
                },
                () = self.grown.notified() => self.show_lines(None),
                _ = tick.tick() => self.reporter.tick(self.began.elapsed()),
            }
        }
        self.show_lines(None);
        self.reporter.finish();
        self.ending()
    }

    fn ending(&self) -> Ending {
        if self.timed_out {
            return Ending::TimedOut;
        }
        let well = self.pods.values().all(|pod| pod.phase == Phase::Succeeded);
        if well { Ending::Succeeded } else { Ending::Failed }
    }

    fn notice(&mut self, notice: Notice) {
        let (at, pod, what) = match notice {
            Notice::Event { at, event } => (at, event.pod.clone(), What::Event(event)),
            Notice::Status { at, pod, status, views } => (at, pod, What::Status(status, views)),
            Notice::Gone { at, pod } => (at, pod, What::Gone),
        };
        // What a container wrote comes before what became of it.
        self.show_lines(Some(at.since_epoch()));
        let Some(one) = self.pods.get_mut(&pod) else { return };
        self.reporter.happened(at.since_epoch().saturating_sub(self.offset), &one.who, &what);
        match what {
            What::Status(status, _) => {
                one.phase = status.phase;
                if status.phase.is_terminal() && !one.reaped {
                    // It is over: nobody is there to look at its remains later.
                    one.reaped = true;
                    self.node.delete(&pod, None);
                }
            }
            What::Gone => one.gone = true,
            What::Event(_) | What::Log(..) => {}
        }
    }

    /// Shows the lines that are there, in the order they were written in; with a time only those from before it.
    fn show_lines(&mut self, before: Option<Duration>) {
        for log in &mut self.logs {
            while let Some(line) = log.next() {
                let at = line.time.duration_since(self.node.epoch()).unwrap_or_default();
                self.waiting.push((at, log.who.clone(), Arc::clone(&log.container), line));
            }
        }
        self.waiting.sort_by_key(|(at, ..)| *at);
        let count = before.map_or(self.waiting.len(), |before| self.waiting.partition_point(|(at, ..)| *at <= before));
        for (at, who, container, line) in self.waiting.drain(..count) {
            self.reporter.happened(at.saturating_sub(self.offset), &who, &What::Log(container, line));
        }
    }

    fn interrupted(&mut self) {
        self.interrupts += 1;
        let (grace, note) = match self.interrupts {
            1 => (None, "stopping gracefully; Ctrl-C again for less grace"),
            2 => (Some(SHORT_GRACE), "stopping with little grace; Ctrl-C again to kill"),
            _ => (Some(0), "killing"),
        };
        self.note(note);
        self.delete_all(grace);
    }

    fn time_is_up(&mut self) {
        self.timed_out = true;
        let after = Span(self.timeout.unwrap_or_default());
        self.note(&format!("time is up after {after}: stopping gracefully"));
        self.delete_all(None);
    }

    fn delete_all(&self, grace: Option<i64>) {
        for (uid, pod) in &self.pods {
            if !pod.gone {
                self.node.delete(uid, grace);
            }
        }
    }

    fn note(&mut self, text: &str) {
        self.reporter.note(self.began.elapsed(), text);
    }
}

/// Tells when a log grows, for as long as the program lives.
fn tell_growth(log: &Log, grown: &Arc<Notify>) {
    let (mut follower, grown) = (log.follow(), Arc::clone(grown));
    tokio::spawn(async move {
        while follower.next().await.is_some() {
            grown.notify_one();
        }
    });
}

/// Ctrl-C, and TERM, which means the same to a command in the foreground.
struct Interrupts {
    int: Option<Signal>,
    term: Option<Signal>,
}

impl Interrupts {
    fn new() -> Self {
        Self { int: signal(SignalKind::interrupt()).ok(), term: signal(SignalKind::terminate()).ok() }
    }

    async fn next(&mut self) {
        async fn of(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => {
                    signal.recv().await;
                }
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = of(&mut self.int) => {}
            () = of(&mut self.term) => {}
        }
    }
}
