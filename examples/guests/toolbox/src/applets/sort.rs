//! `sort` and `uniq`.

use std::cmp::Ordering;
use std::io::Write;

use super::{Context, Status};
use crate::cmdline::{self, Parsed};

/// `sort [-nrufb] [-k FIELD] [-t LETTER] [-o FILE] [FILE…]`.
pub(super) fn sort(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "nrufbsk:t:o:", &[])?;
    let key = options.value("k").map(key).transpose()?;
    let mut lines: Vec<String> = Vec::new();
    let status = context.for_each_file(&options.operands, |_, _, bytes| {
        lines.extend(String::from_utf8_lossy(&bytes).lines().map(str::to_owned));
        Ok(())
    })?;
    let by_key = |a: &String, b: &String| compare(part(a, key, &options), part(b, key, &options), &options);
    // Lines with equal keys are in the order of the whole lines, unless asked to stay as they come.
    lines.sort_by(|a, b| {
        let ordering = by_key(a, b);
        let ordering = if ordering.is_eq() && !options.has("s") && !options.has("u") { a.cmp(b) } else { ordering };
        if options.has("r") { ordering.reverse() } else { ordering }
    });
    if options.has("u") {
        lines.dedup_by(|a, b| by_key(a, b).is_eq());
    }
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    match options.value("o") {
        Some(file) => std::fs::write(context.shell.path(file), text)?,
        None => context.output.write_all(text.as_bytes())?,
    }
    Ok(status)
}

/// First and last field of a key, from 1.
fn key(text: &str) -> Result<(usize, usize), String> {
    let field = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok().filter(|field| *field > 0)
    };
    let (first, last) = text.split_once(',').map_or((text, None), |(first, last)| (first, Some(last)));
    let last = last.map_or(Some(usize::MAX), field);
    field(first).zip(last).ok_or_else(|| format!("-k {text}: needs the number of a field"))
}

fn part<'a>(line: &'a str, key: Option<(usize, usize)>, options: &Parsed<'_>) -> &'a str {
    let Some((first, last)) = key else { return line };
    let fields: Vec<&str> = match options.value("t") {
        Some(separator) => line.split(separator).collect(),
        None => line.split_whitespace().collect(),
    };
    let Some(from) = fields.get(first - 1) else { return "" };
    let to = fields[(last.min(fields.len())).max(first) - 1];
    // Fields are parts of the line, so where they lie in it can be told from their addresses.
    let offset = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
    &line[offset(from)..offset(to) + to.len()]
}

fn compare(a: &str, b: &str, options: &Parsed<'_>) -> Ordering {
    if options.has("n") {
        return number(a).total_cmp(&number(b));
    }
    if options.has("f") {
        return a.to_lowercase().cmp(&b.to_lowercase());
    }
    a.cmp(b)
}

fn number(text: &str) -> f64 {
    let text = text.trim_start();
    let is_part =
        |(index, letter): (usize, char)| letter.is_ascii_digit() || letter == '.' || (index == 0 && letter == '-');
    let end = text.char_indices().find(|pair| !is_part(*pair)).map_or(text.len(), |(index, _)| index);
    text[..end].parse().unwrap_or(0.0)
}

/// `uniq [-cdu] [FILE]`.
pub(super) fn uniq(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "cdui", &[])?;
    let text = context.read(options.operands.first().unwrap_or(&"-"))?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_same = |next: &&str| if options.has("i") { next.eq_ignore_ascii_case(line) } else { *next == line };
        let mut count = 1;
        while lines.next_if(is_same).is_some() {
            count += 1;
        }
        if (options.has("d") && count == 1) || (options.has("u") && count > 1) {
            continue;
        }
        match options.has("c") {
            true => writeln!(context.output, "{count:7} {line}")?,
            false => writeln!(context.output, "{line}")?,
        }
    }
    Ok(0)
}
