//! Builtins: the commands that steer the shell.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use husk_guest::Signal;

use super::command::Found;
use super::state_builtins::{export, getopts, local, read, readonly, set, shift, unset};
use super::trap::Condition;
use super::{Flow, Outcome, Shell};

/// A builtin command.
pub(super) struct Builtin {
    name: &'static str,
    pub(super) run: fn(&mut Shell, &[String]) -> Outcome,
    /// POSIX' special builtins: assignments before them stay.
    pub(super) is_special: bool,
}

const fn special(name: &'static str, run: fn(&mut Shell, &[String]) -> Outcome) -> Builtin {
    Builtin { name, run, is_special: true }
}

const fn regular(name: &'static str, run: fn(&mut Shell, &[String]) -> Outcome) -> Builtin {
    Builtin { name, run, is_special: false }
}

static BUILTINS: &[Builtin] = &[
    special(":", |_, _| Ok(0)),
    special(".", source),
    special("source", source),
    special("break", |shell, args| leave_loops(shell, args, Flow::Break)),
    special("continue", |shell, args| leave_loops(shell, args, Flow::Continue)),
    special("eval", |shell, args| shell.run_text(&args[1..].join(" "))),
    // With redirections and programs it is run where simple commands are.
    special("exec", |_, _| Ok(0)),
    special("exit", exit),
    special("export", export),
    special("readonly", readonly),
    special("return", return_),
    special("set", set),
    special("shift", shift),
    special("trap", trap),
    special("unset", unset),
    regular("cd", cd),
    regular("command", command),
    regular("getopts", getopts),
    regular("jobs", |_, _| Ok(0)),
    regular("kill", kill),
    regular("local", local),
    regular("pwd", pwd),
    regular("read", read),
    regular("type", |shell, args| describe(shell, &args[1..], true)),
    regular("umask", |_, _| Ok(0)),
    regular("wait", |shell, args| Ok(shell.wait_for_jobs(&args[1..]))),
];

pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

/// Complains in a builtin's name.
pub(super) fn failed(shell: &Shell, args: &[String], message: &str) -> i32 {
    shell.complain(&format!("{}: {message}", args[0]));
    1
}

fn source(shell: &mut Shell, args: &[String]) -> Outcome {
    let Some(file) = args.get(1) else { return Ok(failed(shell, args, "needs a file")) };
    let text = match std::fs::read_to_string(shell.path(file)) {
        Ok(text) => text,
        Err(error) => return Err(shell.fatal(&format!("can't open {file}: {}", super::redirect::plain(&error)))),
    };
    shell.returnable += 1;
    let outcome = shell.run_text(&text);
    shell.returnable -= 1;
    match outcome {
        Err(Flow::Return(status)) => Ok(status),
        outcome => outcome,
    }
}

fn leave_loops(shell: &mut Shell, args: &[String], flow: fn(u32) -> Flow) -> Outcome {
    let Ok(count @ 1..) = args.get(1).map_or(Ok(1), |count| count.parse::<u32>()) else {
        return Err(shell.fatal(&format!("{}: bad number: {}", args[0], args[1])));
    };
    match count.min(shell.loops) {
        0 => Ok(0),
        loops => Err(flow(loops)),
    }
}

fn exit(shell: &mut Shell, args: &[String]) -> Outcome {
    Err(Flow::Exit(status_argument(shell, args)?))
}

fn return_(shell: &mut Shell, args: &[String]) -> Outcome {
    let status = status_argument(shell, args)?;
    Err(if shell.returnable > 0 { Flow::Return(status) } else { Flow::Exit(status) })
}

fn status_argument(shell: &Shell, args: &[String]) -> Outcome {
    match args.get(1).map(|status| status.parse::<i32>()) {
        None => Ok(shell.status),
        Some(Ok(status)) => Ok(status & 0xff),
        Some(Err(_)) => Err(shell.fatal(&format!("{}: bad number: {}", args[0], args[1]))),
    }
}

fn trap(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut operands = &args[1..];
    if operands.first().is_some_and(|arg| arg == "--") {
        operands = &operands[1..];
    }
    let Some((action, conditions)) = operands.split_first() else {
        let lines: Vec<String> = shell.traps.lines().collect();
        for line in lines {
            // A closed output is no reason to fail.
            let _ = writeln!(shell.fds.stream(1), "{line}");
        }
        return Ok(0);
    };
    // `trap TERM` alone resets, and so does `trap - TERM`.
    let resets = action == "-" || conditions.is_empty();
    let mut status = 0;
    for name in if conditions.is_empty() { operands } else { conditions } {
        match Condition::parse(name) {
            Some(condition) if resets => shell.traps.reset(condition),
            Some(condition) => shell.traps.set(condition, action.clone()),
            // KILL can't be trapped; scripts list it out of habit, and other shells take it.
            None if matches!(
                name.trim_start_matches("SIG"),
                "KILL" | "9" | "STOP" | "PIPE" | "13" | "ALRM" | "ABRT" | "CHLD"
            ) => {}
            None => status = failed(shell, args, &format!("{name}: invalid signal specification")),
        }
    }
    Ok(status)
}

/// `kill`. The shell is process 1, and the only one: applets run in it, and other containers are out of reach.
fn kill(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut signal = Some(Signal::Term);
    let mut targets = args[1..].iter();
    let mut ids = Vec::new();
    while let Some(arg) = targets.next() {
        let name = match arg.as_str() {
            "-l" => {
                let names: Vec<&str> = Signal::ALL.iter().map(|signal| signal.name()).collect();
                let _ = writeln!(shell.fds.stream(1), "{}", names.join(" "));
                return Ok(0);
            }
            "-s" | "-n" => targets.next().map(String::as_str),
            "--" => continue,
            arg => arg.strip_prefix('-').filter(|_| ids.is_empty()),
        };
        let Some(name) = name else {
            ids.push(arg.as_str());
            continue;
        };
        signal = match (name, Condition::parse(name)) {
            (_, Some(Condition::Signal(signal))) => Some(signal),
            (_, Some(Condition::Exit)) => None,
            ("9" | "KILL" | "SIGKILL", None) => {
                if targets.clone().any(|id| id == "1") {
                    return Err(Flow::Exit(137));
                }
                Some(Signal::Term)
            }
            _ => return Ok(failed(shell, args, &format!("{name}: invalid signal specification"))),
        };
    }
    if ids.is_empty() {
        shell.complain("kill: usage: kill [-s SIGNAL | -SIGNAL] ID…");
        return Ok(2);
    }
    let mut status = 0;
    for id in ids {
        let job = id.trim_start_matches('%').parse::<u32>().ok();
        match (job, signal) {
            (Some(1), None) => {}
            (Some(1), Some(signal)) => shell.traps.raise(signal),
            (Some(job), None) if shell.has_job(job) => {}
            (Some(job), Some(_)) if shell.end_job(job) => {}
            _ => status = failed(shell, args, &format!("({id}): No such process")),
        }
    }
    Ok(status)
}

fn cd(shell: &mut Shell, args: &[String]) -> Outcome {
    let target = match args.get(1).map(String::as_str) {
        None => shell.vars.value("HOME").unwrap_or("/").to_owned(),
        Some("-") => shell.vars.value("OLDPWD").unwrap_or("/").to_owned(),
        Some(dir) => dir.to_owned(),
    };
    let dir = normalised(&shell.path(&target));
    if !dir.is_dir() {
        let reason = if dir.exists() { "Not a directory" } else { "No such file or directory" };
        return Ok(failed(shell, args, &format!("can't cd to {target}: {reason}")));
    }
    let old = std::mem::replace(&mut shell.cwd, dir);
    shell.assign("OLDPWD", old.to_string_lossy().into_owned())?;
    shell.assign("PWD", shell.cwd.to_string_lossy().into_owned())?;
    if args.get(1).is_some_and(|arg| arg == "-") {
        return pwd(shell, args);
    }
    Ok(0)
}

fn pwd(shell: &mut Shell, _args: &[String]) -> Outcome {
    let written = writeln!(shell.fds.stream(1), "{}", shell.cwd.display());
    Ok(i32::from(written.is_err()))
}

/// `command NAME…` runs past functions; `command -v` says what a name stands for.
fn command(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.get(1).map(String::as_str) {
        Some("-v") => describe(shell, &args[2..], false),
        Some("-V") => describe(shell, &args[2..], true),
        Some("-p") => shell.run_words(&args[2..], false),
        _ => shell.run_words(&args[1..], false),
    }
}

fn describe(shell: &mut Shell, names: &[String], at_length: bool) -> Outcome {
    let mut status = 0;
    for name in names {
        let line = match shell.find(name) {
            Found::Function(_) if at_length => format!("{name} is a function"),
            Found::Builtin(_) if at_length => format!("{name} is a shell builtin"),
            Found::Program if !shell.has_program(name) => {
                status = 127;
                if at_length {
                    shell.complain(&format!("{name}: not found"));
                }
                continue;
            }
            Found::Program if at_length => format!("{name} is a program"),
            _ => name.clone(),
        };
        let _ = writeln!(shell.fds.stream(1), "{line}");
    }
    Ok(status)
}

/// The path without `.` and `..`, as the shell's own idea of where it is.
fn normalised(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}
