//! `env`, `printenv`, `which`.

use std::io::Write;

use super::{Context, Failure, Status};
use crate::cmdline;
use crate::shell::program_name;

/// `env [-i] [-u NAME] [NAME=VALUE…] [COMMAND…]`.
pub(super) fn env(context: &mut Context<'_>) -> Status {
    let mut words = context.operands();
    let mut inner = context.shell.subshell();
    while let Some((first, rest)) = words.split_first() {
        match (first.as_str(), rest) {
            ("-i" | "-", _) => inner.vars.clear(),
            ("-u", [name, ..]) => inner.vars.unset(name)?,
            _ => match first.split_once('=') {
                Some((name, value)) => {
                    inner.vars.set(name, value.to_owned())?;
                    inner.vars.export(name);
                }
                None => break,
            },
        }
        words = if first == "-u" { &rest[1..] } else { rest };
    }
    if words.is_empty() {
        for (name, value) in inner.vars.exported() {
            writeln!(context.output, "{name}={value}")?;
        }
        return Ok(0);
    }
    inner.in_subshell(|shell| shell.run_program(words)).map_err(|_| Failure::Interrupted(inner.status))
}

/// `printenv [NAME…]`.
pub(super) fn printenv(context: &mut Context<'_>) -> Status {
    let names = context.operands();
    let mut status = 0;
    for (name, value) in context.shell.vars.exported().filter(|_| names.is_empty()) {
        writeln!(context.output, "{name}={value}")?;
    }
    for name in names {
        match context.shell.vars.exported().find(|(known, _)| known == name) {
            Some((_, value)) => writeln!(context.output, "{value}")?,
            None => status = 1,
        }
    }
    Ok(status)
}

/// `which NAME…`.
pub(super) fn which(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "a", &[])?;
    let mut status = 0;
    for name in options.operands {
        let short = program_name(name);
        if short == "sh" || super::find(short).is_some() {
            writeln!(context.output, "/bin/{short}")?;
        } else {
            status = 1;
        }
    }
    Ok(status)
}
