//! Signals and what a script does about them.
//!
//! The module imports the lifecycle interface, so the node leaves the default disposition to the shell: a signal
//! without a trap ends the whole program at once with 128 + its number, also in a `sleep`. With a trap, the command that
//! waits is cut short, and the trap runs after it. Where no command waits when a stop signal comes, the next one that
//! would is cut short: `while [ -z "$stop" ]; do work; sleep 60; done` must not depend on when the signal comes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use husk_guest::{Signal, signals};

use super::{Flow, Outcome, Shell};

/// When a trap runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    Exit,
    Signal(Signal),
}

impl Condition {
    /// By name or number, with or without SIG; 0 is EXIT.
    pub(super) fn parse(text: &str) -> Option<Condition> {
        match text.parse::<i32>() {
            Ok(0) => Some(Condition::Exit),
            Ok(number) => Signal::from_number(number).map(Condition::Signal),
            Err(_) if text.eq_ignore_ascii_case("EXIT") => Some(Condition::Exit),
            Err(_) => Signal::from_name(text).map(Condition::Signal),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Condition::Exit => "EXIT",
            Condition::Signal(signal) => signal.name(),
        }
    }
}

/// The traps that are set, and the signals that wait for them.
#[derive(Clone, Default)]
pub(super) struct Traps {
    /// An empty action ignores the signal.
    actions: BTreeMap<Condition, String>,
    /// Shared with all subshells: they are one process.
    pending: Rc<RefCell<VecDeque<Signal>>>,
    is_running_one: bool,
    /// Shared as well.
    cut: Rc<Cell<Cut>>,
    /// Ended by a signal: the EXIT trap doesn't run.
    is_killed: bool,
}

/// Which pause a stop signal cuts short: one, the present or the next.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Cut {
    #[default]
    Nothing,
    /// The present one was, and its trap hasn't run yet.
    Done,
    /// The next one will be, by this signal.
    Next(Signal),
}

impl Traps {
    pub(super) fn set(&mut self, condition: Condition, action: String) {
        self.actions.insert(condition, action);
    }

    pub(super) fn reset(&mut self, condition: Condition) {
        self.actions.remove(&condition);
    }

    /// The lines that `trap` without arguments prints.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.actions.iter().map(|(condition, action)| format!("trap -- '{action}' {}", condition.name()))
    }

    /// A subshell begins without its parent's actions; what is ignored stays ignored.
    pub(super) fn reset_for_subshell(&mut self) {
        self.actions.retain(|_, action| action.is_empty());
        self.is_running_one = false;
    }

    pub(super) fn reset_for_exec(&mut self) {
        self.actions.retain(|_, action| action.is_empty());
    }

    /// Sends a signal to this program itself.
    pub(super) fn raise(&self, signal: Signal) {
        self.pending.borrow_mut().push_back(signal);
    }

    /// Takes what the node has sent, but for what is ignored.
    fn collect(&self) {
        let mut pending = self.pending.borrow_mut();
        pending.extend(std::iter::from_fn(signals::next));
        pending.retain(|signal| !self.is_ignored(*signal));
    }

    fn is_ignored(&self, signal: Signal) -> bool {
        match self.actions.get(&Condition::Signal(signal)) {
            Some(action) => action.is_empty(),
            None => signal == Signal::Winch,
        }
    }

    /// The signal that may cut a pause short. A trap that runs is not disturbed by what other traps are for.
    fn interrupting(&self) -> Option<Signal> {
        let pending = self.pending.borrow();
        pending
            .iter()
            .copied()
            .find(|signal| !self.is_running_one || !self.actions.contains_key(&Condition::Signal(*signal)))
    }
}

impl Shell {
    /// Acts on the signals that have come. Called between commands.
    pub(crate) fn deliver_signals(&mut self) -> Result<(), Flow> {
        loop {
            self.traps.collect();
            let Some(signal) = self.traps.interrupting() else { return Ok(()) };
            match self.traps.actions.get(&Condition::Signal(signal)).cloned() {
                Some(action) => {
                    self.traps.pending.borrow_mut().retain(|pending| *pending != signal);
                    self.run_trap(&action)?;
                    let was_cut = self.traps.cut.take() == Cut::Done;
                    if !was_cut && signal.is_stop() {
                        self.traps.cut.set(Cut::Next(signal));
                    }
                }
                None => {
                    // In a subshell the signal stays for the shell around it.
                    if !self.is_subshell {
                        self.traps.is_killed = true;
                    }
                    return Err(Flow::Exit(signal.exit_code()));
                }
            }
        }
    }

    /// Waits; without a duration until a signal comes. The error is the exit code of a command that a signal ended.
    pub(crate) fn pause(&mut self, duration: Option<Duration>) -> Result<(), i32> {
        self.flush();
        if let Cut::Next(signal) = self.traps.cut.get()
            && !self.traps.is_running_one
        {
            self.traps.cut.set(Cut::Nothing);
            return Err(signal.exit_code());
        }
        let end = duration.and_then(|duration| Instant::now().checked_add(duration));
        loop {
            self.traps.collect();
            if let Some(signal) = self.traps.interrupting() {
                self.traps.cut.set(Cut::Done);
                return Err(signal.exit_code());
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            if let Some(signal) = signals::wait(left) {
                self.traps.raise(signal);
            }
        }
    }

    pub(super) fn run_exit_trap(&mut self, status: i32) -> i32 {
        let action = self.traps.actions.remove(&Condition::Exit);
        let Some(action) = action.filter(|_| !self.traps.is_killed) else { return status };
        self.status = status;
        match self.run_trap(&action) {
            Err(Flow::Exit(status)) => status,
            _ => status,
        }
    }

    /// Runs a trap's action; `$?` is the same after it as before.
    fn run_trap(&mut self, action: &str) -> Result<(), Flow> {
        let status = self.status;
        let was_running = std::mem::replace(&mut self.traps.is_running_one, true);
        let outcome: Outcome = self.run_text(action);
        self.traps.is_running_one = was_running;
        outcome?;
        self.status = status;
        Ok(())
    }
}
