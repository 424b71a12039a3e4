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
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};

use super::happening::{What, Who};
use super::interrupts::Interrupts;
use super::printer::{Passed, Printer};
use crate::manifest::Found;
use crate::out::err;
use husk_sim::Span;

/// How often a live view is brought up to date if nothing happens.
const TICK: Duration = Duration::from_millis(200);
/// Grace after the second Ctrl-C, in seconds, counted from the first.
const SHORT_GRACE: i64 = 2;
/// How long a reader who doesn't read is waited for when the pods are gone and somebody wants an end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All pods succeeded.
    Succeeded,
    /// One at least did not.
    Failed,
    /// Time was up.
    TimedOut,
    /// The agent is gone, or what it told was lost.
    Lost,
}

/// A run.
pub(crate) struct Session {
    node: LocalNode,
    printer: Printer,
    /// Nobody reads any more.
    deserted: bool,
    interrupts: Interrupts,
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
    /// So often its end was asked for.
    interrupted: u32,
}

/// A container's log, and how far it was shown. A guest that writes faster than is shown loses lines in its bounded log.
struct Followed {
    who: Who,
    container: Arc<str>,
    follower: Follower,
    /// Lines that were pushed out of the log, as far as it was told.
    missed: u64,
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
        printer: Printer,
        interrupts: Interrupts,
        timeout: Option<Span>,
    ) -> Self {
        let notices = node.watch();
        let offset = SystemTime::now().duration_since(node.epoch()).unwrap_or_default();
        let (grown, mut all_logs, mut pods) = (Arc::new(Notify::new()), Vec::new(), HashMap::new());
        for (place, found) in found.into_iter().enumerate() {
            let who = Who { place, name: found.name().into() };
            let PodHandle { uid, logs } = node.apply(found.pod, found.base);
            for (container, log) in logs {
                tell_growth(&log, &grown);
                let (who, follower) = (who.clone(), log.follow());
                all_logs.push(Followed { who, container: container.into(), follower, missed: 0 });
            }
            pods.insert(uid, OnePod { who, phase: Phase::Pending, reaped: false, gone: false });
        }
        Self {
            node,
            printer,
            deserted: false,
            interrupts,
            notices,
            logs: all_logs,
            waiting: Vec::new(),
            grown,
            pods,
            began: Instant::now(),
            offset,
            timeout: timeout.map(|span| span.0),
            timed_out: false,
            interrupted: 0,
        }
    }

    /// Goes on until nothing is left of any pod.
    pub(crate) async fn finish(mut self) -> Ending {
        let (timeout, mut ran_out) = (self.timeout, false);
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
                _ = self.interrupts.next() => self.interrupted(),
                () = &mut time_is_up, if !ran_out => {
                    ran_out = true;
                    self.time_is_up();
                }
                notice = self.notices.recv() => match notice {
                    Ok(notice) => self.notice(notice),
                    Err(error) => {
                        // Nothing here waits for anybody, so this can't be for want of time.
                        let why = match error {
                            RecvError::Lagged(missed) => format!("{missed} happenings were lost"),
                            RecvError::Closed => "the agent is gone".to_owned(),
                        };
                        err(format_args!("error: {why}: what became of the pods is not known"));
                        return self.end(Ending::Lost).await;
                    }
                },
                passed = self.printer.pass(), if !self.deserted => match passed {
                    Passed::On => {
                        self.show_lines(None);
                    }
                    Passed::Nowhere => self.desert(),
                },
                () = self.grown.notified() => {
                    self.show_lines(None);
                }
                _ = tick.tick() => self.printer.tick(self.began.elapsed()),
            }
        }
        let ending = self.ending();
        self.end(ending).await
    }

    /// Shows what is left to show, unless somebody is tired of waiting for who reads it, and clears away.
    async fn end(mut self, ending: Ending) -> Ending {
        let impatient = self.timed_out || self.interrupted > 0;
        let mut interrupts = std::mem::replace(&mut self.interrupts, Interrupts::none());
        let shown = async {
            self.printer.empty().await;
            while self.show_lines(None) {
                self.printer.empty().await;
            }
            self.printer.finish(self.began.elapsed()).await;
        };
        let enough = async {
            match impatient {
                true => tokio::time::sleep(LAST_WORDS).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shown => {}
            _ = interrupts.next() => {}
            () = enough => {}
        }
        match self.node.shutdown().await {
            Ok(()) => ending,
            Err(error) => {
                err(format_args!("error: {error}"));
                Ending::Lost
            }
        }
    }

    /// Nobody reads what is shown (`| head`): the pods mustn't go on unseen.
    fn desert(&mut self) {
        self.deserted = true;
        err("nobody reads the output any more: stopping gracefully");
        self.delete_all(None);
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
            Notice::Status { at, pod, status, views, .. } => (at, pod, What::Status(status, views)),
            Notice::Gone { at, pod } => (at, pod, What::Gone),
            Notice::Moved { .. } | Notice::Forgotten { .. } | Notice::Node { .. } | Notice::ShutDown { .. } => return,
        };
        // What a container wrote comes before what became of it.
        self.show_lines(Some(at.since_epoch()));
        let Some(one) = self.pods.get_mut(&pod) else { return };
        self.printer.happened(at.since_epoch().saturating_sub(self.offset), &one.who, what.clone());
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
            What::Event(_) | What::Log(..) | What::Lost(..) => {}
        }
    }

    /// Shows the lines that are there, in the order they were written in; with a time only those from before it. Says whether
    /// there were any. If they aren't read fast enough they wait in their log, which forgets the oldest.
    fn show_lines(&mut self, before: Option<Duration>) -> bool {
        // One that writes much leaves room for the others.
        let share = self.printer.room().saturating_sub(self.waiting.len()).div_ceil(self.logs.len().max(1));
        for log in &mut self.logs {
            for _ in 0..share {
                let Some(line) = log.next() else { break };
                let missed = log.follower.missed();
                if missed > log.missed {
                    let lost = What::Lost(Arc::clone(&log.container), missed - log.missed);
                    self.printer.happened(self.began.elapsed(), &log.who, lost);
                    log.missed = missed;
                }
                let at = line.time.duration_since(self.node.epoch()).unwrap_or_default();
                self.waiting.push((at, log.who.clone(), Arc::clone(&log.container), line));
            }
        }
        self.waiting.sort_by_key(|(at, ..)| *at);
        let count = before.map_or(self.waiting.len(), |before| self.waiting.partition_point(|(at, ..)| *at <= before));
        for (at, who, container, line) in self.waiting.drain(..count) {
            self.printer.happened(at.saturating_sub(self.offset), &who, What::Log(container, line));
        }
        count > 0
    }

    fn interrupted(&mut self) {
        self.interrupted += 1;
        let (grace, note) = match self.interrupted {
            1 => (None, "stopping gracefully; Ctrl-C again for less grace"),
            2 => (Some(SHORT_GRACE), "stopping with little grace; Ctrl-C again to kill"),
            _ => (Some(0), "killing"),
        };
        self.note(note);
        self.delete_all(grace);
    }

    fn time_is_up(&mut self) {
        if self.pods.values().all(|pod| pod.phase.is_terminal()) {
            // They made it; all that is left is to clear away.
            return;
        }
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
        self.printer.note(self.began.elapsed(), text);
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
