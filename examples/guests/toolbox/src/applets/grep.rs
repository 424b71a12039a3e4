//! `grep`.

use std::io::Write;

use regex_lite::Regex;

use super::{Context, Failure, Status, pattern, plain};
use crate::cmdline;

/// `grep [-EFivnclqowxhHs] [-m COUNT] [-e PATTERN…] [PATTERN] [FILE…]`; lines are written as they come.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let usage = |message: String| Failure::Message(2, message);
    let options = cmdline::parse(context.operands(), "EFGivnclqowxhHse:m:", &[("quiet", 'q')]).map_err(usage)?;
    let name = context.args[0].rsplit('/').next().unwrap_or_default();
    let is_fixed = options.has("F") || name == "fgrep";
    let is_extended = options.has("E") || is_fixed || name == "egrep";
    let mut operands = options.operands.clone();
    let mut patterns: Vec<&str> = options.values("e").collect();
    if patterns.is_empty() {
        if operands.is_empty() {
            return Err(usage("usage: grep [OPTIONS] PATTERN [FILE…]".to_owned()));
        }
        patterns.push(operands.remove(0));
    }
    let regexes = patterns
        .iter()
        .flat_map(|pattern| pattern.lines().chain(pattern.is_empty().then_some("")))
        .map(|pattern| {
            let pattern = if is_fixed { pattern::literal(pattern) } else { pattern.to_owned() };
            let group = |pattern: String| if is_extended { format!("({pattern})") } else { format!("\\({pattern}\\)") };
            let pattern = match (options.has("x"), options.has("w")) {
                (true, _) => format!("^{}$", group(pattern)),
                (false, true) => format!("\\b{}\\b", group(pattern)),
                (false, false) => pattern,
            };
            pattern::compile(&pattern, is_extended, options.has("i"))
        })
        .collect::<Result<Vec<Regex>, String>>()
        .map_err(usage)?;
    let most = match options.value("m").map(str::parse) {
        None => usize::MAX,
        Some(Ok(most)) => most,
        Some(Err(_)) => return Err(usage("-m: needs a number".to_owned())),
    };
    let shows_names = (operands.len() > 1 || options.has("H")) && !options.has("h");
    let mut has_match = false;
    let mut has_error = false;
    for name in if operands.is_empty() { vec!["-"] } else { operands } {
        let mut file = match context.open(name) {
            Ok(file) => file,
            Err(error) => {
                has_error = true;
                if !options.has("s") {
                    context.complain(format_args!("{name}: {}", plain(&error)));
                }
                continue;
            }
        };
        let prefix = if shows_names { format!("{name}:") } else { String::new() };
        let (mut number, mut count) = (0, 0);
        while count < most {
            let bytes = file.read_line()?;
            if bytes.is_empty() {
                break;
            }
            number += 1;
            let line = String::from_utf8_lossy(&bytes);
            let line = line.strip_suffix('\n').unwrap_or(&line);
            if regexes.iter().any(|regex| regex.is_match(line)) == options.has("v") {
                continue;
            }
            count += 1;
            if options.has("q") {
                return Ok(0);
            }
            if options.has("c") || options.has("l") {
                continue;
            }
            let place = if options.has("n") { format!("{prefix}{number}:") } else { prefix.clone() };
            if options.has("o") && !options.has("v") {
                for found in regexes.iter().flat_map(|regex| regex.find_iter(line)).filter(|found| !found.is_empty()) {
                    writeln!(context.output, "{place}{}", found.as_str())?;
                }
            } else {
                writeln!(context.output, "{place}{line}")?;
            }
        }
        has_match |= count > 0;
        if options.has("l") && count > 0 {
            writeln!(context.output, "{name}")?;
        } else if options.has("c") && !options.has("l") {
            writeln!(context.output, "{prefix}{count}")?;
        }
    }
    Ok(if has_error { 2 } else { i32::from(!has_match) })
}
