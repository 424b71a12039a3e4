//! Background jobs: there are none but sleeps, which only need a clock.

use std::time::{Duration, Instant};

use brush_parser::ast::{AndOrList, Command, CommandPrefixOrSuffixItem as Item};

use super::{Flow, Outcome, Shell};
use crate::applets::sleep;

/// A `sleep` in the background.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// What `$!` says.
    pub(super) id: u32,
    /// None: for ever.
    end: Option<Instant>,
}

/// `$!` of the first job; the shell itself is 1.
const FIRST_ID: u32 = 2;

impl Shell {
    pub(super) fn run_in_background(&mut self, commands: &AndOrList) -> Outcome {
        let Some(words) = simple_words(commands) else { return Err(self.no_background_jobs()) };
        let mut args = Vec::new();
        for word in words {
            args.extend(self.expand_fields(word)?);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let end = match &args[..] {
            ["sleep", times @ ..] => match sleep::duration(times) {
                Ok(duration) => duration.and_then(|duration| Instant::now().checked_add(duration)),
                Err(message) => return Err(self.fatal(&message)),
            },
            // The other way to wait for ever.
            ["tail", "-f", "/dev/null"] => None,
            _ => return Err(self.no_background_jobs()),
        };
        let id = self.jobs.last().map_or(FIRST_ID, |job| job.id + 1);
        self.jobs.push(Job { id, end });
        Ok(0)
    }

    /// `wait`: until the jobs are done, or a signal with a trap comes.
    pub(super) fn wait_for_jobs(&mut self, ids: &[String]) -> i32 {
        let is_meant = |job: &Job| ids.is_empty() || ids.iter().any(|id| *id == job.id.to_string());
        if !ids.iter().all(|id| self.jobs.iter().any(|job| *id == job.id.to_string())) {
            return 127;
        }
        let now = Instant::now();
        let waits: Vec<Option<Duration>> = self
            .jobs
            .iter()
            .filter(|job| is_meant(job))
            .map(|job| job.end.map(|end| end.saturating_duration_since(now)))
            .collect();
        if !waits.is_empty() {
            let longest = if waits.contains(&None) { None } else { waits.into_iter().flatten().max() };
            if let Err(code) = self.pause(longest) {
                return code;
            }
        }
        self.jobs.retain(|job| !is_meant(job));
        0
    }

    /// Ends a job: `kill $!`. False if there is no such job.
    pub(super) fn end_job(&mut self, id: u32) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| job.id != id);
        self.jobs.len() < before
    }

    pub(super) fn has_job(&self, id: u32) -> bool {
        self.jobs.iter().any(|job| job.id == id && job.end.is_none_or(|end| end > Instant::now()))
    }

    fn no_background_jobs(&self) -> Flow {
        self.fatal(
            "background jobs aren't possible: a Wasm instance has no child processes (only `sleep N &` with `wait` is). \
             Run the command in the foreground, or in a container of its own",
        )
    }
}

/// The words of a list that is one simple command and nothing else.
fn simple_words(commands: &AndOrList) -> Option<Vec<&str>> {
    let [Command::Simple(command)] = &commands.first.seq[..] else { return None };
    if !commands.additional.is_empty() || command.prefix.is_some() {
        return None;
    }
    let mut words = vec![command.word_or_name.as_ref()?.value.as_str()];
    for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
        match item {
            Item::Word(word) => words.push(&word.value),
            // Where a sleep's output goes makes no difference.
            Item::IoRedirect(_) => {}
            Item::AssignmentWord(..) | Item::ProcessSubstitution(..) => return None,
        }
    }
    Some(words)
}
