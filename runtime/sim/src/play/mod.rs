//! Plays the core in virtual time: from wake-up to wake-up, without waiting.

mod heir;
mod records;

use std::collections::HashSet;
use std::time::Duration;

use husk_core::backoff::BackoffConfig;
use husk_core::io::{Hook, InstanceRef, PodUid};
use husk_core::record::{Interruption, PodRecord};
use husk_core::{Action, Input, Instant, Node, NodeConfig};

use self::heir::Heir;
use self::records::InMemory;
pub use self::records::Records;
use crate::broken::{Broken, rule};
use crate::referee::Referee;
use crate::scenario::{Cause, Scenario, Subject};
use crate::world::{Due, Told, World};

/// Far more than any pod needs in a day of virtual time: more than that is an endless loop.
const MOST_STEPS: u64 = 5_000_000;
/// Steps from one look at all pods to the next: so many, and so many more for each pod, since a look costs as much as there are pods.
const CHECK_ALL: (u64, u64) = (64, 8);

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

/// When a play is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// All pods are gone.
    Gone,
    /// Nothing more happens.
    Rest,
}

/// Plays pods until they are gone or nothing more will happen, or until `until`.
///
/// # Errors
/// The core broke a rule that always holds.
pub fn play(subjects: &[Subject], scenario: &Scenario, until: Duration, watch: &mut impl Watch) -> Result<End, Broken> {
    // Where nothing but the pods is of interest, what is left of them isn't.
    let stop = if scenario.facts.is_empty() { Stop::Gone } else { Stop::Rest };
    play_until(subjects, scenario, until, stop, watch, InMemory::default())
}

/// Plays pods until nothing more will happen, or until `until`.
///
/// # Errors
/// The core broke a rule that always holds.
pub fn play_out(
    subjects: &[Subject],
    scenario: &Scenario,
    until: Duration,
    watch: &mut impl Watch,
) -> Result<End, Broken> {
    play_until(subjects, scenario, until, Stop::Rest, watch, InMemory::default())
}

/// The same with records that are kept elsewhere.
///
/// # Errors
/// The core, or who keeps the records, broke a rule that always holds.
pub fn play_with(
    subjects: &[Subject],
    scenario: &Scenario,
    until: Duration,
    watch: &mut impl Watch,
    records: impl Records,
) -> Result<End, Broken> {
    play_until(subjects, scenario, until, Stop::Rest, watch, records)
}

fn play_until(
    subjects: &[Subject],
    scenario: &Scenario,
    until: Duration,
    stop: Stop,
    watch: &mut impl Watch,
    records: impl Records,
) -> Result<End, Broken> {
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
        referee: Referee::new(subjects),
        heir: None,
        now: Instant::ZERO,
        steps: 0,
        facts: 0,
        records,
        keeps_records: scenario.has_restarts(),
        subjects,
        gone: HashSet::new(),
        slack: World::slack(scenario),
        check_every: CHECK_ALL.0 + CHECK_ALL.1 * subjects.len() as u64,
        watch,
    };
    play.run(Instant::ZERO + until, stop)
}

struct Play<'s, W, R> {
    node: Node,
    config: NodeConfig,
    scenario: &'s Scenario,
    subjects: &'s [Subject],
    world: World<'s>,
    referee: Referee,
    heir: Option<Heir>,
    now: Instant,
    steps: u64,
    /// Facts that were told.
    facts: u64,
    records: R,
    keeps_records: bool,
    gone: HashSet<PodUid>,
    slack: Duration,
    /// Steps from one look at all pods to the next.
    check_every: u64,
    watch: &'s mut W,
}

impl<W: Watch, R: Records> Play<'_, W, R> {
    fn run(&mut self, until: Instant, stop: Stop) -> Result<End, Broken> {
        if let Some(input) = self.world.beginning() {
            self.tell(input)?;
        }
        while self.steps < MOST_STEPS {
            if stop == Stop::Gone && self.gone.len() == self.subjects.len() {
                return Ok(End::Over(self.now));
            }
            let next = match (self.world.next_due(), self.node.next_wake()) {
                (Some(due), Some(wake)) => due.min(wake),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => {
                    self.referee.check_end(self.now, &self.node)?;
                    return Ok(End::Over(self.now));
                }
            };
            if next > until {
                return Ok(End::Cut(until));
            }
            self.steps += 1;
            self.look_early(next)?;
            self.now = self.now.max(next);
            self.step()?;
            if self.steps.is_multiple_of(self.check_every) {
                self.referee.check_all(self.now, &self.node)?;
            }
            self.hand_over()?;
        }
        let now = self.now;
        Err(Broken { rule: "nothing goes on without a pause", at: now, seen: format!("{MOST_STEPS} steps and no end") })
    }

    fn step(&mut self) -> Result<(), Broken> {
        let wake = self.node.next_wake().filter(|wake| *wake <= self.now);
        let due = if wake.is_some() && self.scenario.trials.timers_first { None } else { self.world.pop_due(self.now) };
        match due {
            None => {
                let shut_down = self.node.is_shut_down();
                self.node.advance(self.now);
                if let Some(heir) = &mut self.heir {
                    heir.tell(self.now, None);
                }
                let busy = self.drain()?;
                let next = self.node.next_wake();
                let later = next.is_none_or(|next| next > self.now);
                rule!(later, self.now, "what is due is done", "the next wake-up is {next:?}");
                let had_to = busy || shut_down != self.node.is_shut_down();
                rule!(had_to, self.now, "no wake-up is for nothing", "woken at {wake:?}, nothing was due");
                Ok(())
            }
            Some(Due::Answer(input)) => {
                let again = (self.scenario.trials.repeats(self.facts)).then(|| input.clone());
                self.tell(input)?;
                again.map_or(Ok(()), |input| self.tell_again(input))
            }
            Some(Due::Look) => self.referee.check_all(self.now, &self.node),
            Some(Due::Apply(place)) => {
                let input = self.world.apply(place);
                self.tell(input)
            }
            Some(Due::Delete { place, number }) => self.happen(self.world.delete(place, number)),
            Some(Due::Fact(number)) => {
                let told = self.world.fact(self.now, number);
                self.happen(told)
            }
        }
    }

    fn happen(&mut self, told: Told) -> Result<(), Broken> {
        match told {
            Told::Input(input) => self.tell(input),
            Told::Restart(cause, takes) => self.restart(cause, takes),
            Told::Sleep(takes) => {
                self.now = self.now + takes;
                self.referee.overslept(takes);
                Ok(())
            }
            Told::Nothing => Ok(()),
        }
    }

    fn tell(&mut self, input: Input) -> Result<(), Broken> {
        self.facts += 1;
        self.watch.input(self.now, &input);
        self.referee.input(&input);
        if let Some(heir) = &mut self.heir {
            heir.tell(self.now, Some(input.clone()));
        }
        self.node.handle(self.now, input);
        self.drain().map(drop)
    }

    /// What was answered is answered: a second time changes nothing.
    fn tell_again(&mut self, input: Input) -> Result<(), Broken> {
        let (about, wake) = (format!("{input:?}"), self.node.next_wake());
        self.node.handle(self.now, input);
        let order = self.node.poll_action();
        rule!(order.is_none(), self.now, "an answer counts once", "{about} led to {order:?}");
        let again = self.node.next_wake();
        rule!(wake == again, self.now, "an answer counts once", "{about} turned wake-up {wake:?} into {again:?}");
        Ok(())
    }

    /// Somebody looks before anything is due: nothing must happen.
    fn look_early(&mut self, next: Instant) -> Result<(), Broken> {
        if !self.scenario.trials.looks(self.steps) || self.subjects.is_empty() {
            return Ok(());
        }
        let just_before = Instant::from_nanos(next.as_nanos().saturating_sub(1)).max(self.now);
        let which = usize::try_from(self.steps).unwrap_or_default() % self.subjects.len();
        let subject = &self.subjects[which];
        let pod = PodUid::from(subject.id.as_str());
        let Some((_, container)) = subject.spec.all_containers().next() else { return Ok(()) };
        // Nobody has that attempt, so only the look itself counts.
        let instance = InstanceRef { pod: pod.clone(), container: container.name.as_str().into(), attempt: u32::MAX };
        let wake = self.node.next_wake();
        if wake.is_some_and(|wake| wake <= just_before) {
            return Ok(());
        }
        self.node.handle(just_before, Input::HookDone { instance, hook: Hook::PreStop, result: Ok(()) });
        let order = self.node.poll_action();
        rule!(
            order.is_none(),
            just_before,
            "nothing is due before the wake-up",
            "{order:?} at a look at {pod}, the next wake-up was {wake:?}; it is {:?}",
            self.node.status(&pod)
        );
        let again = self.node.next_wake();
        rule!(wake == again, just_before, "a look changes no timer", "{pod}: {wake:?} became {again:?}");
        Ok(())
    }

    /// Takes all orders. Returns true if there were any.
    fn drain(&mut self) -> Result<bool, Broken> {
        let mut any = false;
        loop {
            let action = self.node.poll_action();
            if let Some(heir) = &mut self.heir {
                heir.check(self.now, action.as_ref(), &self.node)?;
            }
            let Some(action) = action else { break };
            any = true;
            self.watch.action(self.now, &action);
            self.referee.action(self.now, &action, &self.node, self.slack)?;
            self.world.carry_out(self.now, &action);
            match action {
                Action::Persist { pod, urgency } if self.keeps_records => {
                    if let Some(record) = self.node.record(&pod) {
                        self.records.keep(self.now, &pod, record.to_bytes(), urgency);
                    }
                }
                Action::Forget { pod } => self.records.forget(self.now, &pod),
                Action::Gone { pod } => {
                    self.gone.insert(pod);
                }
                _ => {}
            }
        }
        if let Some(heir) = &self.heir {
            heir.check_wake(self.now, &self.node)?;
        }
        self.referee.settled(self.now, &self.node)?;
        self.watch.settled(self.now, &self.node);
        Ok(any)
    }

    /// Another node takes over, at every so many-th step.
    fn hand_over(&mut self) -> Result<(), Broken> {
        let every = u64::from(self.scenario.trials.hand_over_every);
        if every == 0 || !self.steps.is_multiple_of(every) {
            return Ok(());
        }
        self.heir = None;
        // A shortage and a shutdown are told to each node by its shell, and are no part of any record.
        if self.referee.is_pressed() {
            return Ok(());
        }
        // The heir learns what the node has, which is a reason to look at who waits; so this one looks as well.
        if let Some(input) = self.world.now() {
            self.tell(input)?;
        }
        let pods = self.subjects.iter().map(|subject| PodUid::from(subject.id.as_str())).collect::<Vec<_>>();
        let circumstances = self.world.now().into_iter().chain(self.world.groups());
        self.heir = Some(Heir::of(&self.node, self.now, &self.config, pods.iter(), circumstances)?);
        Ok(())
    }

    /// The agent ends, or the board, and goes on from what was persisted.
    fn restart(&mut self, cause: Cause, takes: Duration) -> Result<(), Broken> {
        self.heir = None;
        let after = Interruption::from(cause);
        let records = self.records.reopen(self.now, after)?;
        let back = match cause {
            Cause::AgentRestart => self.now + takes,
            // Without a clock that runs on a battery time goes on from the last record.
            Cause::Reboot => records.iter().map(PodRecord::saved_at).max().unwrap_or(self.now),
        };
        self.world.lose_everything(self.now + takes - back);
        self.now = back;
        self.referee.interrupted(after);
        records.iter().for_each(|record| _ = self.gone.remove(record.uid()));
        self.node = Node::new(self.config.clone());
        for record in records {
            self.tell(Input::Restored { record: Box::new(record), after })?;
        }
        let circumstances: Vec<_> = self.world.now().into_iter().chain(self.world.groups()).collect();
        for input in circumstances {
            self.tell(input)?;
        }
        Ok(())
    }
}
