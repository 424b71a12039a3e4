//! Builtins that change variables, arguments and options.

use std::io::Write;

use super::builtins::failed;
use super::variables::is_name;
use super::{Outcome, Shell};

pub(super) fn export(shell: &mut Shell, args: &[String]) -> Outcome {
    let operands: Vec<&String> = args[1..].iter().filter(|arg| *arg != "-p").collect();
    if operands.is_empty() {
        let lines: Vec<String> =
            shell.vars.exported().map(|(name, value)| format!("export {name}={}", quoted(value))).collect();
        return print(shell, &lines);
    }
    declare(shell, args, &operands, |shell, name| shell.vars.export(name))
}

pub(super) fn readonly(shell: &mut Shell, args: &[String]) -> Outcome {
    let operands: Vec<&String> = args[1..].iter().filter(|arg| *arg != "-p").collect();
    declare(shell, args, &operands, |shell, name| shell.vars.make_readonly(name))
}

pub(super) fn local(shell: &mut Shell, args: &[String]) -> Outcome {
    for arg in &args[1..] {
        let (name, value) = arg.split_once('=').map_or((arg.as_str(), None), |(name, value)| (name, Some(value)));
        if !is_name(name) {
            return Ok(failed(shell, args, &format!("{name}: bad variable name")));
        }
        if !shell.vars.make_local(name) {
            return Ok(failed(shell, args, "not in a function"));
        }
        if let Some(value) = value {
            shell.assign(name, value.to_owned())?;
        }
    }
    Ok(0)
}

/// `NAME` or `NAME=VALUE` for each operand, then what makes the declaration.
fn declare(shell: &mut Shell, args: &[String], operands: &[&String], mark: fn(&mut Shell, &str)) -> Outcome {
    for operand in operands {
        let (name, value) =
            operand.split_once('=').map_or((operand.as_str(), None), |(name, value)| (name, Some(value)));
        if !is_name(name) {
            return Ok(failed(shell, args, &format!("{name}: bad variable name")));
        }
        if let Some(value) = value {
            shell.assign(name, value.to_owned())?;
        }
        mark(shell, name);
    }
    Ok(0)
}

pub(super) fn unset(shell: &mut Shell, args: &[String]) -> Outcome {
    let functions_only = args.get(1).is_some_and(|arg| arg == "-f");
    for name in args[1..].iter().filter(|arg| !matches!(arg.as_str(), "-f" | "-v")) {
        if functions_only || (shell.vars.value(name).is_none() && shell.functions.contains_key(name)) {
            shell.functions.remove(name);
        } else if let Err(message) = shell.vars.unset(name) {
            return Ok(failed(shell, args, &message));
        }
    }
    Ok(0)
}

pub(super) fn set(shell: &mut Shell, args: &[String]) -> Outcome {
    if args.len() == 1 {
        let lines: Vec<String> = shell.vars.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        return print(shell, &lines);
    }
    let mut options = shell.options.clone();
    match options.read(&args[1..]) {
        Ok(count) => {
            shell.options = options;
            let mut operands = &args[1 + count..];
            let has_end_of_options = operands.first().is_some_and(|arg| arg == "--");
            if has_end_of_options {
                operands = &operands[1..];
            }
            if has_end_of_options || !operands.is_empty() {
                shell.args = operands.to_vec();
            }
            Ok(0)
        }
        Err(message) => Err(shell.fatal(&format!("set: {message}"))),
    }
}

pub(super) fn shift(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.get(1).map_or(Ok(1), |count| count.parse::<usize>()) {
        Ok(count) if count <= shell.args.len() => {
            shell.args.drain(..count);
            Ok(0)
        }
        Ok(_) => Ok(failed(shell, args, "can't shift that many")),
        Err(_) => Err(shell.fatal(&format!("shift: bad number: {}", args[1]))),
    }
}

/// `read [-r] [-p PROMPT] [NAME…]`.
pub(super) fn read(shell: &mut Shell, args: &[String]) -> Outcome {
    let options = match crate::cmdline::parse(&args[1..], "rp:", &[]) {
        Ok(options) => options,
        Err(message) => return Ok(failed(shell, args, &message)),
    };
    if let Some(prompt) = options.value("p") {
        let mut errors = shell.fds.stream(2);
        // The prompt is a courtesy; reading goes on without it.
        let _ = errors.write_all(prompt.as_bytes());
    }
    let mut input = shell.fds.stream(0);
    // A letter, and whether a backslash came before it.
    let mut letters: Vec<(char, bool)> = Vec::new();
    let mut is_complete = false;
    while let Ok(line) = input.read_line() {
        if line.is_empty() {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        is_complete = text.ends_with('\n');
        let mut rest = text.trim_end_matches('\n').chars();
        let mut is_continued = false;
        while let Some(letter) = rest.next() {
            if letter != '\\' || options.has("r") {
                letters.push((letter, false));
                continue;
            }
            match rest.next() {
                Some(escaped) => letters.push((escaped, true)),
                None => is_continued = is_complete,
            }
        }
        if !is_continued {
            break;
        }
    }
    let names = if options.operands.is_empty() { vec!["REPLY"] } else { options.operands.clone() };
    let separators = shell.vars.value("IFS").unwrap_or(" \t\n").to_owned();
    let mut values = split_line(&letters, &separators, names.len()).into_iter();
    for name in names {
        shell.assign(name, values.next().unwrap_or_default())?;
    }
    Ok(i32::from(!is_complete))
}

/// At most `count` fields; the last one takes the rest of the line.
fn split_line(letters: &[(char, bool)], separators: &str, count: usize) -> Vec<String> {
    let is_separator = |(letter, is_escaped): &(char, bool)| !is_escaped && separators.contains(*letter);
    let is_space = |pair: &(char, bool)| is_separator(pair) && pair.0.is_whitespace();
    let skip_space = |letters: &[(char, bool)]| letters.iter().take_while(|pair| is_space(pair)).count();
    let text = |letters: &[(char, bool)]| letters.iter().map(|(letter, _)| *letter).collect::<String>();
    let mut rest = &letters[skip_space(letters)..];
    let mut fields = Vec::new();
    while !rest.is_empty() {
        if fields.len() + 1 == count {
            let trailing = rest.iter().rev().take_while(|pair| is_space(pair)).count();
            fields.push(text(&rest[..rest.len() - trailing]));
            break;
        }
        let end = rest.iter().position(is_separator).unwrap_or(rest.len());
        fields.push(text(&rest[..end]));
        rest = &rest[end..];
        rest = &rest[skip_space(rest)..];
        if rest.first().is_some_and(is_separator) {
            rest = &rest[1..];
            rest = &rest[skip_space(rest)..];
        }
    }
    fields
}

/// `getopts OPTSTRING NAME [ARG…]`.
pub(super) fn getopts(shell: &mut Shell, args: &[String]) -> Outcome {
    let [_, options, name, given @ ..] = args else {
        return Ok(failed(shell, args, "usage: getopts OPTIONS NAME [ARG…]"));
    };
    let given = if given.is_empty() { shell.args.clone() } else { given.to_vec() };
    let index: usize = shell.vars.value("OPTIND").and_then(|index| index.parse().ok()).unwrap_or(1).max(1);
    // How far the letters of one argument have been read.
    let offset: usize = shell.vars.value("_OPTOFFSET").and_then(|offset| offset.parse().ok()).unwrap_or(1);
    let arg = given.get(index - 1).filter(|arg| arg.len() > 1 && arg.starts_with('-') && *arg != "--");
    let Some((arg, letter)) = arg.and_then(|arg| Some((arg, arg[1..].chars().nth(offset - 1)?))) else {
        let is_end = given.get(index - 1).is_some_and(|arg| arg == "--");
        shell.assign("OPTIND", (index + usize::from(is_end)).to_string())?;
        shell.assign(name, "?".to_owned())?;
        return Ok(1);
    };
    let is_silent = options.starts_with(':');
    let takes_value = options.contains(&format!("{letter}:"));
    let is_known = letter != ':' && options.contains(letter);
    let rest: String = arg[1..].chars().skip(offset).collect();
    let (mut next_index, mut next_offset) = if rest.is_empty() { (index + 1, 1) } else { (index, offset + 1) };
    let (mut found, mut value) = (letter.to_string(), None);
    if !is_known {
        found = "?".to_owned();
        value = is_silent.then(|| letter.to_string());
        if !is_silent {
            shell.complain(&format!("illegal option -{letter}"));
        }
    } else if takes_value {
        (next_index, next_offset) = (index + 1, 1);
        value = if rest.is_empty() { given.get(index).cloned() } else { Some(rest.clone()) };
        next_index += usize::from(rest.is_empty());
        if value.is_none() {
            found = if is_silent { ":" } else { "?" }.to_owned();
            value = is_silent.then(|| letter.to_string());
            if !is_silent {
                shell.complain(&format!("no argument for -{letter}"));
            }
        }
    }
    shell.assign("OPTIND", next_index.to_string())?;
    shell.assign("_OPTOFFSET", next_offset.to_string())?;
    shell.assign(name, found)?;
    match value {
        Some(value) => shell.assign("OPTARG", value)?,
        None => shell.vars.unset("OPTARG").map_err(|message| shell.fatal(&message))?,
    }
    Ok(0)
}

fn print(shell: &Shell, lines: &[String]) -> Outcome {
    let mut output = shell.fds.stream(1);
    let written = lines.iter().try_for_each(|line| writeln!(output, "{line}"));
    Ok(i32::from(written.is_err()))
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}
