//! Simple commands: assignments, redirections, and what the first word stands for.

use std::path::PathBuf;
use std::rc::Rc;

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem as Item, FunctionBody, IoRedirect,
    SimpleCommand,
};

use super::builtins::{self, Builtin};
use super::{Flow, Outcome, Shell, program_name};
use crate::applets;

/// Functions may call each other so deep. A little more than twice that would overflow a module's stack, which is no error
/// that a script's author can make sense of.
const MAX_DEPTH: u32 = 100;

/// What a command's first word stands for.
pub(super) enum Found {
    Function(Rc<FunctionBody>),
    Builtin(&'static Builtin),
    Program,
}

/// The parts of a simple command, expanded where they must be before it runs.
#[derive(Default)]
struct Parts<'a> {
    assignments: Vec<&'a Assignment>,
    words: Vec<String>,
    redirects: Vec<&'a IoRedirect>,
}

impl Shell {
    pub(super) fn run_simple(&mut self, command: &SimpleCommand) -> Outcome {
        self.substitution = None;
        let parts = self.parts(command)?;
        if self.options.xtrace && !parts.words.is_empty() {
            self.trace(&parts.words);
        }
        let Some(name) = parts.words.first().cloned() else {
            return self.with_redirects(parts.redirects, |shell| {
                for assignment in parts.assignments {
                    let (name, value) = shell.expand_assignment(assignment)?;
                    if shell.options.xtrace {
                        shell.trace(&[format!("{name}={value}")]);
                    }
                    shell.assign(&name, value)?;
                }
                Ok(shell.substitution.unwrap_or(0))
            });
        };
        if name == "exec" {
            return self.exec(&parts);
        }
        let found = self.find(&name);
        let keeps_assignments = matches!(&found, Found::Builtin(builtin) if builtin.is_special);
        self.with_redirects(parts.redirects, |shell| {
            let mut saved = Vec::new();
            for assignment in parts.assignments {
                let (name, value) = shell.expand_assignment(assignment)?;
                saved.push(shell.vars.save(&name));
                shell.assign(&name, value)?;
                shell.vars.export(&name);
            }
            let outcome = shell.run_found(&found, &parts.words);
            if !keeps_assignments {
                for variable in saved.into_iter().rev() {
                    shell.vars.restore(variable);
                }
            }
            outcome
        })
    }

    /// Runs a command by its words, as `command`, `eval` and applets like `env` do.
    pub(crate) fn run_words(&mut self, words: &[String], with_functions: bool) -> Outcome {
        let Some(name) = words.first() else { return Ok(0) };
        let found = match self.find(name) {
            Found::Function(_) if !with_functions => builtins::find(name).map_or(Found::Program, Found::Builtin),
            found => found,
        };
        self.run_found(&found, words)
    }

    pub(super) fn find(&self, name: &str) -> Found {
        if let Some(body) = self.functions.get(name) {
            return Found::Function(Rc::clone(body));
        }
        builtins::find(name).map_or(Found::Program, Found::Builtin)
    }

    /// Whether a program of this name can be run: an applet, or a script found along PATH.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let short = program_name(name);
        short == "sh" || applets::find(short).is_some() || self.script_file(name).is_some()
    }

    /// Runs a script in a file, in this shell.
    pub(super) fn run_script_file(&mut self, args: &[String]) -> Outcome {
        let Some(path) = self.script_file(&args[0]) else {
            self.complain(&format!("{}: not found", args[0]));
            return Ok(127);
        };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.complain(&format!(
                    "{}: {}",
                    args[0],
                    if path.is_dir() { "Permission denied".to_owned() } else { error.to_string() }
                ));
                return Ok(126);
            }
        };
        if bytes.starts_with(b"\0asm") {
            self.complain(&format!(
                "{}: a Wasm instance can't start another module: give it a container of its own",
                args[0]
            ));
            return Ok(126);
        }
        let Ok(text) = String::from_utf8(bytes) else {
            self.complain(&format!("{}: not executable: not a script", args[0]));
            return Ok(126);
        };
        self.name.clone_from(&args[0]);
        self.args = args[1..].to_vec();
        self.run_text(&text)
    }

    fn run_found(&mut self, found: &Found, words: &[String]) -> Outcome {
        match found {
            Found::Function(body) => self.call_function(body, &words[1..]),
            Found::Builtin(builtin) => (builtin.run)(self, words),
            // An applet can't change the shell's state, so it needs no subshell.
            Found::Program if applets::find(program_name(&words[0])).is_some() => self.run_program(words),
            Found::Program => self.in_subshell(|subshell| {
                subshell.forget_what_is_not_exported();
                subshell.run_program(words)
            }),
        }
    }

    fn call_function(&mut self, FunctionBody(body, redirects): &FunctionBody, args: &[String]) -> Outcome {
        if self.returnable >= MAX_DEPTH {
            return Err(self
                .fatal(&format!("{MAX_DEPTH} functions are running inside each other: one calls itself without end")));
        }
        let saved_args = std::mem::replace(&mut self.args, args.to_vec());
        let saved_loops = std::mem::take(&mut self.loops);
        self.vars.enter_function();
        self.returnable += 1;
        let redirects = redirects.iter().flat_map(|list| &list.0);
        let outcome = self.with_redirects(redirects, |shell| shell.run_compound(body));
        self.returnable -= 1;
        self.vars.leave_function();
        self.loops = saved_loops;
        self.args = saved_args;
        match outcome {
            Err(Flow::Return(status)) => Ok(status),
            outcome => outcome,
        }
    }

    /// `exec`: redirections stay, and a command takes the shell's place.
    fn exec(&mut self, parts: &Parts<'_>) -> Outcome {
        for assignment in &parts.assignments {
            let (name, value) = self.expand_assignment(assignment)?;
            self.assign(&name, value)?;
            self.vars.export(&name);
        }
        if let Err(message) = self.redirect(parts.redirects.iter().copied())? {
            return Err(self.fatal(&message));
        }
        if parts.words.len() < 2 {
            return Ok(0);
        }
        self.forget_what_is_not_exported();
        self.traps.reset_for_exec();
        let status = self.run_program(&parts.words[1..])?;
        Err(Flow::Exit(status))
    }

    fn forget_what_is_not_exported(&mut self) {
        self.vars.retain_exported();
        self.functions.clear();
        self.options = super::Options::default();
        self.args.clear();
        self.conditions = 0;
        self.returnable = 0;
        self.loops = 0;
    }

    fn parts<'a>(&mut self, command: &'a SimpleCommand) -> Result<Parts<'a>, Flow> {
        let mut parts = Parts::default();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, _) => parts.assignments.push(assignment),
                Item::IoRedirect(redirect) => parts.redirects.push(redirect),
                Item::Word(word) => parts.words.extend(self.expand_fields(&word.value)?),
                Item::ProcessSubstitution(..) => return Err(self.no_process_substitution()),
            }
        }
        if let Some(word) = &command.word_or_name {
            parts.words.extend(self.expand_fields(&word.value)?);
        }
        let declares = matches!(parts.words.first().map(String::as_str), Some("export" | "readonly" | "local"));
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                Item::AssignmentWord(assignment, _) if declares => {
                    let (name, value) = self.expand_assignment(assignment)?;
                    parts.words.push(format!("{name}={value}"));
                }
                Item::Word(word) | Item::AssignmentWord(_, word) => {
                    parts.words.extend(self.expand_fields(&word.value)?)
                }
                Item::IoRedirect(redirect) => parts.redirects.push(redirect),
                Item::ProcessSubstitution(..) => return Err(self.no_process_substitution()),
            }
        }
        Ok(parts)
    }

    fn expand_assignment(&mut self, assignment: &Assignment) -> Result<(String, String), Flow> {
        let (AssignmentName::VariableName(name), AssignmentValue::Scalar(value)) =
            (&assignment.name, &assignment.value)
        else {
            return Err(self.fatal("arrays are bash's, not POSIX'"));
        };
        let value = self.expand_text(&value.value)?;
        let old = if assignment.append { self.vars.value(name).unwrap_or_default() } else { "" };
        Ok((name.clone(), format!("{old}{value}")))
    }

    /// Where a script of this name is: along PATH, unless the name has a slash.
    fn script_file(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(self.path(name)).filter(|path| path.exists());
        }
        let path = self.vars.value("PATH").unwrap_or_default();
        path.split(':').map(|dir| self.path(dir).join(name)).find(|path| path.is_file())
    }

    fn trace(&self, words: &[String]) {
        use std::io::Write;
        self.flush();
        // Tracing must not disturb what is traced.
        let _ = writeln!(self.fds.stream(2), "+ {}", words.join(" "));
    }

    fn no_process_substitution(&self) -> Flow {
        self.fatal("<( ) is bash's, not POSIX'")
    }
}
