//! `cat`, `tee`, `wc`, `seq`.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::rc::Rc;

use super::{Context, Failure, Status, plain};
use crate::cmdline;
use crate::stream::Stream;

/// `cat [-n] [FILE…]`; what is read is written at once, so that it can be followed.
pub(super) fn cat(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "nu", &[])?;
    let names = if options.operands.is_empty() { vec!["-"] } else { options.operands.clone() };
    let (mut status, mut number) = (0, 0);
    for name in names {
        let copied = context.open(name).and_then(|mut file| match options.has("n") {
            true => copy_numbered(&mut file, &mut context.output, &mut number),
            false => copy(&mut file, &mut context.output),
        });
        if let Err(error) = copied {
            context.complain(format_args!("{name}: {}", plain(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// Copies all that can be read, as it comes.
fn copy(from: &mut Stream, to: &mut Stream) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
        to.flush()?;
    }
}

fn copy_numbered(from: &mut Stream, to: &mut Stream, number: &mut u64) -> io::Result<()> {
    loop {
        let line = from.read_line()?;
        if line.is_empty() {
            return Ok(());
        }
        *number += 1;
        write!(to, "{number:6}\t")?;
        to.write_all(&line)?;
    }
}

/// `tee [-a] [FILE…]`.
pub(super) fn tee(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "ai", &[])?;
    let mut status = 0;
    let mut outputs = vec![context.output.clone()];
    for name in &options.operands {
        let path = context.shell.path(name);
        let opened = match options.has("a") {
            true => OpenOptions::new().append(true).create(true).open(path),
            false => std::fs::File::create(path),
        };
        match opened {
            Ok(file) => outputs.push(Stream::Output(Rc::new(file))),
            Err(error) => {
                context.complain(format_args!("{name}: {}", plain(&error)));
                status = 1;
            }
        }
    }
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = context.input.read(&mut buffer)?;
        if count == 0 {
            return Ok(status);
        }
        for output in &mut outputs {
            output.write_all(&buffer[..count])?;
        }
    }
}

/// `wc [-lwcm] [FILE…]`.
pub(super) fn wc(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "lwcm", &[])?;
    let shows_all = !["l", "w", "c", "m"].iter().any(|flag| options.has(flag));
    let names = options.operands.clone();
    let mut total = [0; 4];
    let print = |context: &mut Context<'_>, counts: &[usize; 4], name: &str| {
        let columns: Vec<String> = [("l", 0), ("w", 1), ("m", 2), ("c", 3)]
            .into_iter()
            .filter(|(flag, _)| options.has(flag) || (shows_all && *flag != "m"))
            .map(|(_, index)| counts[index].to_string())
            .collect();
        // One number stands alone, several are in columns.
        let numbers = match &columns[..] {
            [only] => only.clone(),
            several => several.iter().map(|number| format!("{number:>9}")).collect::<Vec<_>>().join(" "),
        };
        let name = if names.is_empty() { String::new() } else { format!(" {name}") };
        writeln!(context.output, "{numbers}{name}")
    };
    let status = context.for_each_file(&options.operands, |context, name, bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let counts = [lines, text.split_whitespace().count(), text.chars().count(), bytes.len()];
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        print(context, &counts, name)
    })?;
    if names.len() > 1 {
        print(context, &total, "total")?;
    }
    Ok(status)
}

/// `seq [-s SEPARATOR] [-w] [FIRST [STEP]] LAST`.
pub(super) fn seq(context: &mut Context<'_>) -> Status {
    // Negative numbers look like options: these come first, and only as separate words.
    let (mut separator, mut pads, mut rest) = ("\n".to_owned(), false, context.operands());
    loop {
        match rest {
            [flag, value, more @ ..] if flag == "-s" => (separator, rest) = (value.clone(), more),
            [flag, more @ ..] if flag == "-w" => (pads, rest) = (true, more),
            [flag, more @ ..] if flag.len() > 2 && flag.starts_with("-s") => {
                (separator, rest) = (flag[2..].to_owned(), more)
            }
            _ => break,
        }
    }
    let number = |text: &String| text.parse::<f64>().map_err(|_| format!("invalid number '{text}'"));
    let (first, step, last) = match rest {
        [last] => (1.0, 1.0, number(last)?),
        [first, last] => (number(first)?, 1.0, number(last)?),
        [first, step, last] => (number(first)?, number(step)?, number(last)?),
        _ => return Err(Failure::from("usage: seq [-s SEPARATOR] [-w] [FIRST [STEP]] LAST".to_owned())),
    };
    if step == 0.0 {
        return Err(Failure::from("the step must not be 0".to_owned()));
    }
    let decimals =
        rest.iter().map(|text| text.split_once('.').map_or(0, |(_, digits)| digits.len())).max().unwrap_or(0);
    let width = if pads { rest.iter().map(String::len).max().unwrap_or(0) } else { 0 };
    let count = ((last - first) / step + 1e-9).floor();
    let mut index = 0.0;
    while index <= count {
        let lead = if index == 0.0 { "" } else { &separator };
        write!(context.output, "{lead}{:0width$.decimals$}", first + index * step)?;
        index += 1.0;
    }
    if count >= 0.0 {
        writeln!(context.output)?;
    }
    Ok(0)
}
