//! The shell: its state, and how a run of it begins and ends.

mod arith;
mod builtins;
mod command;
mod exec;
mod expand;
mod fields;
mod interactive;
mod jobs;
mod live;
mod options;
mod parameter;
pub(crate) mod pattern;
mod redirect;
pub(crate) mod sh;
mod state_builtins;
mod trap;
mod variables;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use brush_parser::{ParseError, ParserOptions, ast};

use crate::applets;
use crate::stream::{Descriptors, Stream};
use jobs::Job;
use options::Options;
pub(crate) use redirect::plain;
use trap::Traps;
pub(crate) use variables::Variables;

/// How a command can end otherwise than with a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The shell ends.
    Exit(i32),
    /// The function, or the script read by `.`, ends.
    Return(i32),
    /// So many loops end.
    Break(u32),
    /// So many loops less one end, the next goes on.
    Continue(u32),
    /// The line that a person typed ends.
    Abandon(i32),
}

/// A command's status, or the reason that its surroundings end too.
pub(crate) type Outcome = Result<i32, Flow>;

/// A shell. A clone of it is a subshell.
#[derive(Clone)]
pub(crate) struct Shell {
    /// `$0`.
    pub(crate) name: String,
    pub(crate) vars: Variables,
    /// `$1`, `$2`, …
    pub(crate) args: Vec<String>,
    /// `$?`.
    pub(crate) status: i32,
    /// Kept by the shell itself: WASI processes have no working directory to change.
    pub(crate) cwd: PathBuf,
    pub(crate) fds: Descriptors,
    functions: BTreeMap<String, Rc<ast::FunctionBody>>,
    options: Options,
    traps: Traps,
    jobs: Vec<Job>,
    /// In so many loops of the running function.
    loops: u32,
    /// In so many conditions, where `set -e` doesn't count.
    conditions: u32,
    /// In so many functions or scripts read by `.`, where `return` may be used.
    returnable: u32,
    is_subshell: bool,
    /// A person types the lines.
    is_interactive: bool,
    /// Status of the last command substitution, for `x=$(false)`.
    substitution: Option<i32>,
}

impl Shell {
    /// A shell with the program's own environment.
    pub(crate) fn from_environment() -> Shell {
        let mut vars = Variables::from_environment();
        // The node hands the container's working directory over in PWD: WASI itself has no notion of it.
        let cwd = vars.value("PWD").filter(|dir| dir.starts_with('/')).map_or_else(current_dir, PathBuf::from);
        // No name is read-only yet.
        let _ = vars.set("PWD", cwd.to_string_lossy().into_owned());
        Shell {
            name: "sh".to_owned(),
            vars,
            args: Vec::new(),
            status: 0,
            cwd,
            fds: Descriptors::standard(),
            functions: BTreeMap::new(),
            options: Options::default(),
            traps: Traps::default(),
            jobs: Vec::new(),
            loops: 0,
            conditions: 0,
            returnable: 0,
            is_subshell: false,
            is_interactive: false,
            substitution: None,
        }
    }

    /// Runs the program: an applet, or `sh` with its arguments. The answer is the exit code.
    pub(crate) fn main(&mut self, args: &[String]) -> i32 {
        let outcome = self.run_program(args);
        self.finish(outcome)
    }

    /// Runs a program by its arguments: `sh`, an applet, or a script in a file. Functions and builtins don't count.
    pub(crate) fn run_program(&mut self, args: &[String]) -> Outcome {
        let Some(path) = args.first() else { return Ok(0) };
        let name = program_name(path);
        if name == "sh" {
            return sh::run(self, args);
        }
        if let Some(applet) = applets::find(name) {
            let status = applets::run(applet, self, args);
            self.deliver_signals()?;
            // Other systems would end the writer; here it is part of the shell.
            return if status == applets::CLOSED { Err(Flow::Exit(status)) } else { Ok(status) };
        }
        self.run_script_file(args)
    }

    /// A copy that can change nothing of this shell, as a child process couldn't.
    pub(crate) fn subshell(&self) -> Shell {
        let mut copy = self.clone();
        copy.is_subshell = true;
        copy.traps.reset_for_subshell();
        copy.jobs.clear();
        copy
    }

    /// Runs `body` in a subshell and answers with its status.
    pub(crate) fn in_subshell(&mut self, body: impl FnOnce(&mut Shell) -> Outcome) -> Outcome {
        let mut subshell = self.subshell();
        let outcome = body(&mut subshell);
        let status = subshell.finish(outcome);
        // The signal that ended the subshell is this shell's to answer as well.
        self.deliver_signals()?;
        Ok(status)
    }

    /// Ends a run: the EXIT trap, then the exit code.
    fn finish(&mut self, outcome: Outcome) -> i32 {
        let status = match outcome {
            Ok(status) | Err(Flow::Exit(status) | Flow::Return(status) | Flow::Abandon(status)) => status,
            Err(Flow::Break(_) | Flow::Continue(_)) => 0,
        };
        let status = self.run_exit_trap(status);
        self.flush();
        status
    }

    /// Parses and runs a script text.
    pub(crate) fn run_text(&mut self, text: &str) -> Outcome {
        match parse(text) {
            Ok(program) => self.run_program_text(&program),
            Err(mistake) => Err(self.fatal(&mistake.message)),
        }
    }

    fn run_program_text(&mut self, program: &ast::Program) -> Outcome {
        let mut status = 0;
        for commands in &program.complete_commands {
            status = self.run_list(commands)?;
        }
        Ok(status)
    }

    /// A path as the shell's working directory makes it.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.cwd.join(path)
    }

    /// Writes a message to the error output.
    pub(crate) fn complain(&self, message: &str) {
        self.flush();
        // There is no other place to complain to when this fails.
        let _ = writeln!(self.fds.stream(2), "{}: {message}", self.name);
    }

    /// An error that ends a shell that isn't interactive; POSIX: syntax and expansion errors.
    pub(crate) fn fatal(&self, message: &str) -> Flow {
        self.complain(message);
        if self.is_interactive { Flow::Abandon(2) } else { Flow::Exit(2) }
    }

    fn flush(&self) {
        let _ = Stream::Stdout.flush();
    }
}

/// Why a text is no script.
struct Mistake {
    message: String,
    /// More text may make it one.
    is_incomplete: bool,
}

fn parse(text: &str) -> Result<ast::Program, Mistake> {
    brush_parser::Parser::new(text.as_bytes(), &parser_options()).parse_program().map_err(|error| {
        let is_incomplete = match &error {
            ParseError::ParsingAtEndOfInput => true,
            ParseError::Tokenizing { inner, .. } => inner.is_incomplete(),
            ParseError::ParsingNear(_) => false,
        };
        let message = error.to_string();
        let prefix = if message.starts_with("syntax error") { "" } else { "syntax error: " };
        Mistake { message: format!("{prefix}{message}"), is_incomplete }
    })
}

/// How scripts are read: as POSIX has it, with braces expanded, which people write in manifests as well.
fn parser_options() -> ParserOptions {
    ParserOptions { sh_mode: true, posix_mode: true, enable_extended_globbing: false, ..ParserOptions::default() }
}

/// How words are read: with the forms of `${ }` that busybox' shell has beside POSIX'.
fn word_options() -> ParserOptions {
    ParserOptions { sh_mode: false, ..parser_options() }
}

fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// The name that a program goes by: `/bin/sleep` is `sleep`, and the names of other shells are `sh`.
pub(crate) fn program_name(path: &str) -> &str {
    let is_usual_place = |dir: &str| matches!(dir, "/bin" | "/sbin" | "/usr/bin" | "/usr/sbin" | "/usr/local/bin" | "");
    let name = match path.rsplit_once('/') {
        None => path,
        Some((dir, name)) if is_usual_place(dir) => name,
        Some(_) => return path,
    };
    if matches!(name, "ash" | "dash" | "bash") { "sh" } else { name }
}
