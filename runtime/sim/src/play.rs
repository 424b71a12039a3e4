//! Plays the core in virtual time: from wake-up to wake-up, without waiting.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Result, bail};
use husk_core::backoff::BackoffConfig;
use husk_core::io::PodUid;
use husk_core::record::{Interruption, PodRecord};
use husk_core::{Action, Input, Instant, Node, NodeConfig};

use crate::scenario::{Cause, Scenario, Subject};
use crate::world::{Due, Told, World};

/// Far more than any pod needs in a day of virtual time: more than that is an endless loop.
const MOST_STEPS: u64 = 5_000_000;

/// Looks on while pods are played.
pub trait Watch {
    /// Something happened.
    fn input(&mut self, now: Instant, input: &Input);
    /// Something was ordered.
    fn action(&mut self, now: Instant, action: &Action);
    /// All orders of a step are out and the node is like that.
    fn settled(&mut self, now: Instant, node: &Node);
}

/// How it came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing more will happen after this instant.
    Over(Instant),
    /// More would have happened, but only so much was asked for.
    Cut(Instant),
}

/// Plays pods until nothing more will happen, or until `until`.
///
/// # Errors
/// It makes no progress: a fault of the core.
pub fn play(subjects: &[Subject], scenario: &Scenario, until: Duration, watch: &mut impl Watch) -> Result<End> {
    let crash_loop = BackoffConfig::standard(scenario.max_container_restart_period.map(|cap| cap.0));
    let mut config = NodeConfig { crash_loop, ..NodeConfig::default() };
    if let Some(threshold) = scenario.terminated_pod_gc_threshold {
        config.terminated_pod_gc_threshold = threshold;
    }
    let mut play = Play {
        node: Node::new(config.clone()),
        config,
        scenario,
        world: World::new(scenario, subjects),
        now: Instant::ZERO,
        stored: HashMap::new(),
        subjects: subjects.len(),
        gone: HashSet::new(),
        asleep_until: Instant::ZERO,
        watch,
    };
    play.run(Instant::ZERO + until)
}

struct Play<'s, W> {
    node: Node,
    config: NodeConfig,
    scenario: &'s Scenario,
    world: World<'s>,
    now: Instant,
    /// The records that had to be persisted.
    stored: HashMap<PodUid, Vec<u8>>,
    subjects: usize,
    gone: HashSet<PodUid>,
    asleep_until: Instant,
    watch: &'s mut W,
}

impl<W: Watch> Play<'_, W> {
    fn run(&mut self, until: Instant) -> Result<End> {
        if let Some(input) = self.world.beginning() {
            self.tell(input);
        }
        for _ in 0..MOST_STEPS {
            if self.gone.len() == self.subjects {
                return Ok(End::Over(self.now));
            }
            let next = match (self.world.next_due(), self.node.next_wake()) {
                (Some(due), Some(wake)) => due.min(wake),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => return Ok(End::Over(self.now)),
            };
            if next > until {
                return Ok(End::Cut(until));
            }
            self.now = self.now.max(next).max(self.asleep_until);
            self.step();
        }
        let now = self.now;
        bail!("the simulation makes no progress at {now:?}: please report this with the manifest and the scenario")
    }

    fn step(&mut self) {
        let timer = self.node.next_wake().is_some_and(|wake| wake <= self.now);
        let due = if timer && self.scenario.trials.timers_first { None } else { self.world.pop_due(self.now) };
        match due {
            None => {
                self.node.advance(self.now);
                self.drain();
            }
            Some(Due::Answer(input)) => self.tell(input),
            Some(Due::Apply(place)) => {
                let input = self.world.apply(place);
                self.tell(input);
            }
            Some(Due::Fact(number)) => match self.world.fact(self.now, number) {
                Told::Input(input) => self.tell(input),
                Told::Restart(cause, takes) => self.restart(cause, takes),
                Told::Sleep(takes) => self.asleep_until = self.now + takes,
                Told::Nothing => {}
            },
        }
    }

    fn tell(&mut self, input: Input) {
        self.watch.input(self.now, &input);
        self.node.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(action) = self.node.poll_action() {
            self.watch.action(self.now, &action);
            self.world.carry_out(self.now, &action);
            match action {
                Action::Persist { pod } => {
                    if let Some(record) = self.node.record(&pod) {
                        self.stored.insert(pod, record.to_bytes());
                    }
                }
                Action::Forget { pod } => {
                    self.stored.remove(&pod);
                }
                Action::Gone { pod } => {
                    self.gone.insert(pod);
                }
                _ => {}
            }
        }
        self.watch.settled(self.now, &self.node);
    }

    fn restart(&mut self, cause: Cause, takes: Duration) {
        let records = self.stored.values().filter_map(|bytes| PodRecord::from_bytes(bytes).ok());
        let mut records: Vec<PodRecord> = records.collect();
        records.sort_by_key(PodRecord::accepted);
        let back = match cause {
            Cause::AgentRestart => self.now + takes,
            // Without a clock that runs on a battery time goes on from the last record.
            Cause::Reboot => records.iter().map(PodRecord::saved_at).max().unwrap_or(self.now),
        };
        self.world.lose_everything(self.now + takes - back);
        self.now = back;
        self.node = Node::new(self.config.clone());
        for record in records {
            let after = Interruption::from(cause);
            self.tell(Input::Restored { record: Box::new(record), after });
        }
        let groups: Vec<_> = self.world.groups().collect();
        for input in groups.into_iter().chain(self.world.beginning()) {
            self.tell(input);
        }
    }
}
