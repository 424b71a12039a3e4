//! Pipelines whose first stage goes on for ever: `tail -f log | grep error`.
//!
//! Stages run one after the other, so what reads from such a stage would never have its turn. Where a stage treats each
//! line by itself, it makes no difference whether it sees all lines in one run or each in a run of its own. So it is
//! run whenever lines have been written to it.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use brush_parser::ast::{Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, SimpleCommand};

use super::{Flow, Outcome, Shell};
use crate::stream::{LineSink, Stream};

/// A stage that runs whenever there is a line for it.
struct Live {
    shell: RefCell<Shell>,
    command: Command,
    /// A line that has begun.
    begun: RefCell<Vec<u8>>,
    status: Cell<i32>,
    /// The stage has ended by itself: a loop was left, the shell's end was asked for.
    has_ended: Cell<bool>,
}

impl LineSink for Live {
    fn take(&self, bytes: &[u8]) -> io::Result<()> {
        let mut begun = self.begun.borrow_mut();
        begun.extend(bytes);
        let Some(end) = begun.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let lines = begun.drain(..=end).collect();
        drop(begun);
        self.run(lines);
        if self.has_ended.get() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl Live {
    fn run(&self, lines: Vec<u8>) {
        if self.has_ended.get() {
            return;
        }
        let mut shell = self.shell.borrow_mut();
        let input = Stream::source(lines);
        shell.fds.open(0, input.clone());
        let outcome = shell.run_command(&self.command);
        shell.flush();
        match outcome {
            Ok(status) => {
                self.status.set(status);
                // A loop that was left before its `read` came to the end doesn't want more.
                let is_loop = matches!(self.command, Command::Compound(..));
                self.has_ended.set(is_loop && !input.was_read_to_end());
            }
            Err(flow) => {
                self.has_ended.set(true);
                self.status.set(if let Flow::Exit(status) | Flow::Return(status) = flow { status } else { 0 });
            }
        }
    }

    /// The first stage has ended: a line that has begun is the last one.
    fn finish(&self) -> i32 {
        let rest = self.begun.take();
        if !rest.is_empty() {
            self.run(rest);
        }
        self.status.get()
    }
}

/// Whether a pipeline is to be run this way.
pub(super) fn is_live(stages: &[Command]) -> bool {
    stages.split_first().is_some_and(|(first, rest)| goes_on(first) && !rest.is_empty() && rest.iter().all(takes_lines))
}

impl Shell {
    pub(super) fn run_live(&mut self, stages: &[Command]) -> Outcome {
        let mut output = self.fds.stream(1);
        let mut lives: Vec<Rc<Live>> = Vec::new();
        for command in stages[1..].iter().rev() {
            let mut shell = self.subshell();
            shell.fds.open(1, output);
            let live = Rc::new(Live {
                shell: RefCell::new(shell),
                command: command.clone(),
                begun: RefCell::default(),
                status: Cell::new(0),
                has_ended: Cell::new(false),
            });
            output = Stream::Live(Rc::clone(&live) as Rc<dyn LineSink>);
            lives.push(live);
        }
        let first = &stages[0];
        self.in_subshell(|subshell| {
            subshell.fds.open(1, output);
            subshell.run_command(first)
        })?;
        // From the front to the back: what one writes last the next one has to see.
        Ok(lives.iter().rev().fold(0, |_, live| live.finish()))
    }
}

/// Whether a stage may go on for ever.
fn goes_on(stage: &Command) -> bool {
    match stage {
        Command::Simple(command) => {
            let words = words(command);
            words.first() == Some(&"tail") && words.iter().any(|word| is_flag(word) && word.contains(['f', 'F']))
        }
        Command::Compound(CompoundCommand::WhileClause(_) | CompoundCommand::UntilClause(_), _) => true,
        _ => false,
    }
}

/// Whether a stage treats each line by itself.
fn takes_lines(stage: &Command) -> bool {
    let command = match stage {
        Command::Simple(command) if command.prefix.is_none() => command,
        Command::Compound(CompoundCommand::WhileClause(command), _) => return reads_first(&command.0),
        _ => return false,
    };
    let words = words(command);
    let Some((name, args)) = words.split_first() else { return false };
    let flags_are = |allowed: &str| {
        let flags = args.iter().filter(|arg| is_flag(arg));
        flags.flat_map(|flag| flag[1..].chars()).all(|letter| allowed.contains(letter))
    };
    let operands: Vec<&&str> = args.iter().filter(|arg| !is_flag(arg)).collect();
    match *name {
        "cat" => args.is_empty(),
        "cut" => true,
        "tr" => flags_are("cCd"),
        "tee" => flags_are("a") && (operands.is_empty() || !args.is_empty() && is_flag(args[0])),
        "grep" | "egrep" | "fgrep" => flags_are("EFGivwxoh") && operands.len() == 1,
        // Without addresses: a line's number or the last line is nothing of its own.
        "sed" => {
            flags_are("Er") && matches!(operands[..], [script] if script.trim_matches(['\'', '"']).starts_with('s'))
        }
        _ => false,
    }
}

/// Whether a condition is `read`.
fn reads_first(condition: &CompoundList) -> bool {
    let first = condition.0.first().and_then(|item| item.0.first.seq.first());
    matches!(first, Some(Command::Simple(command)) if command.word_or_name.as_ref().is_some_and(|name| name.value == "read"))
}

fn words(command: &SimpleCommand) -> Vec<&str> {
    let suffix = command.suffix.iter().flat_map(|suffix| &suffix.0);
    let rest = suffix.filter_map(|item| match item {
        Item::Word(word) | Item::AssignmentWord(_, word) => Some(word.value.as_str()),
        Item::IoRedirect(_) | Item::ProcessSubstitution(..) => None,
    });
    command.word_or_name.iter().map(|name| name.value.as_str()).chain(rest).collect()
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}
