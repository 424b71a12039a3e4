//! A shell with a person at its terminal: it runs each line when it is there, and a mistake ends the line only.

use std::io::{IsTerminal, Write};

use super::{Flow, Outcome, Shell, parse};
use crate::stream::Stream;

/// Whether there is a person: the input is the terminal itself, not a file or another stage.
pub(super) fn is_meant(shell: &Shell) -> bool {
    matches!(shell.fds.stream(0), Stream::Stdin) && std::io::stdin().is_terminal()
}

/// Runs lines until the end of the input, or `exit`.
pub(super) fn run(shell: &mut Shell) -> Outcome {
    shell.is_interactive = true;
    // ^C ends what runs, and not the shell.
    shell.run_text("trap : INT")?;
    let mut text = String::new();
    loop {
        prompt(shell, if text.is_empty() { ("PS1", "$ ") } else { ("PS2", "> ") });
        let line = match shell.fds.stream(0).read_line() {
            Ok(line) => line,
            Err(error) => return Err(shell.fatal(&format!("input: {error}"))),
        };
        // What came while nothing ran is about nothing.
        shell.deliver_signals()?;
        text.push_str(&String::from_utf8_lossy(&line));
        let is_over = line.is_empty();
        let outcome = match parse(&text) {
            Err(mistake) if mistake.is_incomplete && !is_over => continue,
            Err(mistake) => Err(shell.fatal(&mistake.message)),
            Ok(program) => shell.run_program_text(&program),
        };
        text.clear();
        let status = match outcome {
            Ok(status) | Err(Flow::Abandon(status)) => status,
            Err(Flow::Break(_) | Flow::Continue(_)) => 0,
            Err(other) => return Err(other),
        };
        shell.status = status;
        if is_over {
            return Ok(status);
        }
    }
}

fn prompt(shell: &mut Shell, (variable, usual): (&str, &str)) {
    let text = shell.vars.value(variable).unwrap_or(usual).to_owned();
    shell.flush();
    // Nobody reads: then nobody misses it.
    let _ = write!(shell.fds.stream(2), "{text}");
    let _ = shell.fds.stream(2).flush();
}
