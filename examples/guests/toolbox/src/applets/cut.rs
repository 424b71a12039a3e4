//! `cut`.

use std::io::Write;
use std::ops::RangeInclusive;

use super::{Context, Failure, Status};
use crate::cmdline;

/// `cut (-f LIST [-d LETTER] [-s] | -c LIST | -b LIST) [FILE…]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "f:d:c:b:s", &[])?;
    let delimiter = options.value("d").unwrap_or("\t");
    let (list, by_field) = match (options.value("f"), options.value("c").or(options.value("b"))) {
        (Some(list), None) => (ranges(list)?, true),
        (None, Some(list)) => (ranges(list)?, false),
        _ => return Err(Failure::from("usage: cut (-f LIST [-d LETTER] | -c LIST) [FILE…]".to_owned())),
    };
    let is_chosen = |index: usize| list.iter().any(|range| range.contains(&(index + 1)));
    context.for_each_file(&options.operands, |context, _, bytes| {
        for line in String::from_utf8_lossy(&bytes).lines() {
            let cut = if !by_field {
                line.chars().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, letter)| letter).collect()
            } else if line.contains(delimiter) {
                let fields = line.split(delimiter).enumerate().filter(|(index, _)| is_chosen(*index));
                fields.map(|(_, field)| field).collect::<Vec<_>>().join(delimiter)
            } else if options.has("s") {
                continue;
            } else {
                line.to_owned()
            };
            writeln!(context.output, "{cut}")?;
        }
        Ok(())
    })
}

/// `1,3-5,7-`.
fn ranges(list: &str) -> Result<Vec<RangeInclusive<usize>>, String> {
    let number = |text: &str, default: usize| match text {
        "" => Some(default),
        text => text.parse().ok().filter(|number| *number > 0),
    };
    list.split(',')
        .map(|part| {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first, 1), number(last, usize::MAX)),
                None => (number(part, 0), number(part, 0)),
            };
            first.zip(last).filter(|_| !matches!(part, "" | "-")).map(|(first, last)| first..=last)
        })
        .map(|range| range.ok_or_else(|| format!("invalid list '{list}'")))
        .collect()
}
