//! A line for each thing that happens: for pipes, files and CI.

use std::io::{self, Write};
use std::time::Duration;

use husk_core::event::EventKind;
use husk_core::status::{ConditionStatus, Phase};

use super::happening::{Ends, Reporter, What, Who, lost};
use crate::out::printable;
use crate::style;

/// Width of the column of names.
const NAMES: usize = 14;

/// Writes lines.
pub(crate) struct Lines {
    /// Names need their pod only if there are several.
    several: bool,
    phases: Vec<Option<Phase>>,
    ready: Vec<bool>,
    ends: Ends,
}

impl Lines {
    /// To standard output.
    pub(crate) fn new(pods: usize) -> Self {
        Self { several: pods > 1, phases: vec![None; pods], ready: vec![false; pods], ends: Ends::default() }
    }

    /// The lines for something that happened.
    fn lines_of(&mut self, after: Duration, who: &Who, what: &What) -> Vec<String> {
        match what {
            What::Event(event) => {
                let container = event.container();
                let reason = match event.kind {
                    EventKind::Warning => style::yellow(&event.reason),
                    EventKind::Normal => event.reason.to_string(),
                };
                let times = if event.count > 1 { format!(" (x{})", event.count) } else { String::new() };
                vec![self.line(after, who, container, &format!("{reason}: {}{times}", printable(&event.message)))]
            }
            What::Status(status, _) => {
                let ended = self.ends.new_in(who.place, status);
                let mut lines: Vec<_> = ended
                    .into_iter()
                    .map(|(name, end)| {
                        let how = format!("exit {} ({})", end.exit_code, end.reason);
                        let how = if end.exit_code == 0 { style::green(&how) } else { style::red(&how) };
                        let message = if end.message.is_empty() {
                            String::new()
                        } else {
                            format!(": {}", printable(&end.message))
                        };
                        self.line(after, who, Some(name), &format!("{how}{message}"))
                    })
                    .collect();
                let is_ready = status.conditions.iter().any(|c| c.kind == "Ready" && c.status == ConditionStatus::True);
                if std::mem::replace(&mut self.ready[who.place], is_ready) != is_ready {
                    let word = if is_ready { "Ready" } else { "not Ready" };
                    lines.push(self.line(after, who, None, word));
                }
                if self.phases[who.place].replace(status.phase) != Some(status.phase) {
                    lines.push(self.line(after, who, None, &phase(status.phase, &status.reason, &status.message)));
                }
                lines
            }
            What::Log(container, line) => {
                vec![self.line(
                    after,
                    who,
                    Some(container),
                    &format!("{} {}", style::faint("|"), printable(&line.text)),
                )]
            }
            What::Lost(container, lines) => vec![self.line(after, who, Some(container), &style::yellow(&lost(*lines)))],
            What::Gone => vec![self.line(after, who, None, "gone")],
        }
    }

    fn line(&self, after: Duration, who: &Who, container: Option<&str>, text: &str) -> String {
        let pod = who.name.rsplit('/').next().unwrap_or(&who.name);
        let name = match (container, self.several) {
            (Some(container), true) => format!("{pod}/{container}"),
            (Some(container), false) => container.to_owned(),
            (None, true) => pod.to_owned(),
            (None, false) => "pod".to_owned(),
        };
        let padded = format!("{name:<NAMES$}");
        let color = name.bytes().map(usize::from).sum::<usize>() + who.place;
        format!("{} {} {text}", style::faint(&format!("{:>8.2}s", after.as_secs_f64())), style::named(color, &padded))
    }
}

impl Reporter for Lines {
    fn happened(&mut self, after: Duration, who: &Who, what: &What) -> io::Result<()> {
        self.lines_of(after, who, what).iter().try_for_each(|line| print(line))
    }

    fn note(&mut self, after: Duration, text: &str) -> io::Result<()> {
        print(&note(after, text))
    }
}

/// A line about the run as a whole.
fn note(after: Duration, text: &str) -> String {
    format!("{} {:<NAMES$} {text}", style::faint(&format!("{:>8.2}s", after.as_secs_f64())), "husk")
}

fn phase(phase: Phase, reason: &str, message: &str) -> String {
    let word = match phase {
        Phase::Succeeded => style::green(phase.as_str()),
        Phase::Failed => style::red(phase.as_str()),
        Phase::Pending | Phase::Running | Phase::Unknown => phase.as_str().to_owned(),
    };
    let why: Vec<_> = [reason, message].into_iter().filter(|part| !part.is_empty()).collect();
    if why.is_empty() { word } else { format!("{word}: {}", printable(&why.join(": "))) }
}

fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
