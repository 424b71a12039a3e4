//! `ls`.

use std::fs::Metadata;
use std::io::{self, Write};
use std::path::Path;

use super::{Context, Status, date, plain};
use crate::cmdline::{self, Parsed};

/// A line of the listing.
struct Entry {
    name: String,
    meta: io::Result<Metadata>,
}

/// `ls [-1aAdlhrtFR] [FILE…]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "1aAdlhrtFRpSn", &[("all", 'a')])?;
    let names = if options.operands.is_empty() { vec!["."] } else { options.operands.clone() };
    let mut status = 0;
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    for name in &names {
        let meta = context.shell.path(name).symlink_metadata();
        match &meta {
            Ok(found) if found.is_dir() && !options.has("d") => dirs.push((*name).to_owned()),
            Ok(_) => files.push(Entry { name: (*name).to_owned(), meta }),
            Err(error) => {
                context.complain(format_args!("{name}: {}", plain(error)));
                status = 1;
            }
        }
    }
    let has_headings = names.len() > 1 || options.has("R");
    let mut is_first = files.is_empty();
    print(context, &options, files)?;
    // Directories found on the way are shown next, as they would be by a deeper call.
    dirs.reverse();
    while let Some(dir) = dirs.pop() {
        if has_headings {
            let gap = if is_first { "" } else { "\n" };
            writeln!(context.output, "{gap}{dir}:")?;
        }
        is_first = false;
        let path = context.shell.path(&dir);
        let entries = match entries(&path, &options) {
            Ok(entries) => entries,
            Err(error) => {
                context.complain(format_args!("{dir}: {}", plain(&error)));
                status = 1;
                continue;
            }
        };
        if options.has("R") {
            let deeper = entries.iter().filter(|entry| !matches!(entry.name.as_str(), "." | ".."));
            let deeper = deeper.filter(|entry| entry.meta.as_ref().is_ok_and(Metadata::is_dir));
            dirs.extend(deeper.map(|entry| format!("{}/{}", dir.trim_end_matches('/'), entry.name)).rev());
        }
        print(context, &options, entries)?;
    }
    Ok(status)
}

fn entries(path: &Path, options: &Parsed<'_>) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    if options.has("a") {
        entries.extend([".", ".."].map(|name| Entry { name: name.to_owned(), meta: path.join(name).metadata() }));
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') || options.has("a") || options.has("A") {
            entries.push(Entry { name, meta: entry.metadata() });
        }
    }
    Ok(entries)
}

fn print(context: &mut Context<'_>, options: &Parsed<'_>, mut entries: Vec<Entry>) -> io::Result<()> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    if options.has("t") {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.meta.as_ref().ok().and_then(|meta| meta.modified().ok())));
    } else if options.has("S") {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.meta.as_ref().map_or(0, Metadata::len)));
    }
    if options.has("r") {
        entries.reverse();
    }
    for Entry { name, meta } in entries {
        let meta = meta.ok();
        let is_dir = meta.as_ref().is_some_and(Metadata::is_dir);
        let mark = if is_dir && (options.has("F") || options.has("p")) { "/" } else { "" };
        if !options.has("l") && !options.has("n") {
            writeln!(context.output, "{name}{mark}")?;
            continue;
        }
        let kind = match &meta {
            Some(meta) if meta.is_symlink() => "l",
            _ if is_dir => "d",
            _ => "-",
        };
        let size = meta.as_ref().map_or(0, Metadata::len);
        let size = if options.has("h") { human(size) } else { size.to_string() };
        let time = meta.and_then(|meta| meta.modified().ok()).map_or_else(|| "?".to_owned(), date::short);
        // WASI has neither owners nor modes.
        writeln!(context.output, "{kind}rw-rw-rw- 1 root root {size:>9} {time} {name}{mark}")?;
    }
    Ok(())
}

fn human(size: u64) -> String {
    let mut value = size as f64;
    for unit in ["", "K", "M", "G"] {
        if value < 1024.0 {
            return if unit.is_empty() { size.to_string() } else { format!("{value:.1}{unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1}T")
}
