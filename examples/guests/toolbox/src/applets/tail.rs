//! `tail`, also of files that grow.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::head::with_option_letter;
use super::{Context, Failure, Status, plain};
use crate::cmdline;

/// How often a followed file is looked at.
const PERIOD: Duration = Duration::from_millis(250);

/// Where the output begins.
#[derive(Clone, Copy)]
enum Start {
    LastLines(usize),
    FromLine(usize),
    LastBytes(usize),
    FromByte(usize),
}

/// A file that is followed.
struct Followed<'a> {
    name: &'a str,
    path: PathBuf,
    /// None: it does not exist now.
    position: Option<u64>,
}

/// `tail [-n [+]LINES | -c [+]BYTES] [-f | -F] [-s SECONDS] [-q] [FILE…]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let args: Vec<String> = context.operands().iter().map(|arg| with_option_letter(arg)).collect();
    let options = cmdline::parse(&args, "n:c:fFqvs:", &[("follow", 'f'), ("lines", 'n')])?;
    let start = start(options.value("n"), options.value("c"))?;
    let period = match options.value("s").map(str::parse::<f64>) {
        None => PERIOD,
        Some(Ok(seconds)) => Duration::try_from_secs_f64(seconds).map_err(|error| format!("-s: {error}"))?,
        Some(Err(_)) => return Err(Failure::from("-s: needs a number of seconds".to_owned())),
    };
    let follows = options.has("f") || options.has("F");
    let names = if options.operands.is_empty() { vec!["-"] } else { options.operands.clone() };
    let has_headings = names.len() > 1 && !options.has("q");
    let mut status = 0;
    let mut followed = Vec::new();
    let mut shown = None;
    for name in &names {
        let bytes = context.read(name);
        if let Err(error) = &bytes {
            context.complain(format_args!("{name}: {}", plain(error)));
            status = 1;
        }
        let position = bytes.as_ref().ok().map(|bytes| bytes.len() as u64);
        if let Ok(bytes) = &bytes {
            heading(context, name, has_headings, &mut shown)?;
            context.output.write_all(&bytes[begin(bytes, start)..])?;
            context.output.flush()?;
        }
        // With -F a file that isn't there yet is waited for.
        if follows && *name != "-" && (position.is_some() || options.has("F")) {
            followed.push(Followed { name, path: context.shell.path(name), position });
        }
    }
    while !followed.is_empty() {
        // A device has no end to wait for: nothing but a signal ends this.
        let pause = if names == ["/dev/null"] { None } else { Some(period) };
        context.shell.pause(pause).map_err(Failure::Interrupted)?;
        for file in &mut followed {
            let news = file.news(options.has("F"))?;
            if !news.is_empty() {
                heading(context, file.name, has_headings, &mut shown)?;
                context.output.write_all(&news)?;
                context.output.flush()?;
            }
        }
    }
    Ok(status)
}

impl Followed<'_> {
    /// What was added since the last look. A file that got shorter begins anew.
    fn news(&mut self, by_name: bool) -> io::Result<Vec<u8>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(_) if by_name => {
                self.position = None;
                return Ok(Vec::new());
            }
            // Removed: other systems would still see it; no more can come.
            Err(_) => return Ok(Vec::new()),
        };
        let length = file.metadata()?.len();
        let position = self.position.filter(|position| *position <= length).unwrap_or(0);
        if length == position {
            self.position = Some(position);
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(position))?;
        let mut news = Vec::new();
        file.read_to_end(&mut news)?;
        self.position = Some(position + news.len() as u64);
        Ok(news)
    }
}

fn heading<'a>(
    context: &mut Context<'_>,
    name: &'a str,
    has_headings: bool,
    shown: &mut Option<&'a str>,
) -> io::Result<()> {
    if has_headings && *shown != Some(name) {
        let gap = if shown.is_some() { "\n" } else { "" };
        writeln!(context.output, "{gap}==> {name} <==")?;
        *shown = Some(name);
    }
    Ok(())
}

/// A way to begin, by the number that was given.
type StartOf = fn(usize) -> Start;

fn start(lines: Option<&str>, bytes: Option<&str>) -> Result<Start, String> {
    let (text, kinds): (&str, [StartOf; 2]) = match bytes {
        Some(bytes) => (bytes, [Start::FromByte, Start::LastBytes]),
        None => (lines.unwrap_or("10"), [Start::FromLine, Start::LastLines]),
    };
    let kind = kinds[usize::from(!text.starts_with('+'))];
    text.trim_start_matches(['+', '-']).parse().map(kind).map_err(|_| format!("invalid number '{text}'"))
}

fn begin(bytes: &[u8], start: Start) -> usize {
    let line_starts =
        || std::iter::once(0).chain(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1));
    match start {
        Start::LastBytes(count) => bytes.len().saturating_sub(count),
        Start::FromByte(first) => first.saturating_sub(1).min(bytes.len()),
        Start::FromLine(first) => line_starts().nth(first.saturating_sub(1)).unwrap_or(bytes.len()),
        Start::LastLines(count) => {
            let starts: Vec<usize> = line_starts().filter(|at| *at < bytes.len()).collect();
            starts.len().checked_sub(count).map_or(0, |index| starts.get(index).copied().unwrap_or(bytes.len()))
        }
    }
}
