//! `touch`, `mkdir`, `rm`, `rmdir`, `cp`, `mv`.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Context, Failure, Status, plain};
use crate::cmdline::{self, Parsed};

/// `touch [-c] FILE…`.
pub(super) fn touch(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "cam", &[("no-create", 'c')])?;
    each(context, &options, |options, path| {
        if options.has("c") && !path.exists() {
            return Ok(());
        }
        if path.is_dir() {
            return Ok(());
        }
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        match file.set_modified(SystemTime::now()) {
            // Not every host lets a guest set times. That the file exists is what most ask for.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            done => done,
        }
    })
}

/// `mkdir [-p] DIR…`.
pub(super) fn mkdir(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "pm:", &[("parents", 'p')])?;
    each(context, &options, |options, path| match options.has("p") {
        true => fs::create_dir_all(path),
        false => fs::create_dir(path),
    })
}

/// `rm [-rf] FILE…`.
pub(super) fn rm(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "rRf", &[("recursive", 'r'), ("force", 'f')])?;
    if options.operands.is_empty() && options.has("f") {
        return Ok(0);
    }
    each(context, &options, |options, path| {
        let removed = match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() && (options.has("r") || options.has("R")) => fs::remove_dir_all(path),
            Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if options.has("f") && error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    })
}

/// `rmdir DIR…`.
pub(super) fn rmdir(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "", &[])?;
    each(context, &options, |_, path| fs::remove_dir(path))
}

/// `cp [-r] FROM… TO`.
pub(super) fn cp(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "rRafpv", &[("recursive", 'r')])?;
    let recurses = ["r", "R", "a"].iter().any(|flag| options.has(flag));
    each_pair(context, &options, |from, to| copy(from, to, recurses))
}

/// `mv FROM… TO`.
pub(super) fn mv(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "fv", &[])?;
    each_pair(context, &options, |from, to| match fs::rename(from, to) {
        // Another volume: copy, then remove.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(from, to, true)?;
            if from.is_dir() { fs::remove_dir_all(from) } else { fs::remove_file(from) }
        }
        done => done,
    })
}

fn copy(from: &Path, to: &Path, recurses: bool) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    if !recurses {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The entries are listed before the copy begins: a directory can be copied into itself.
    let entries: Vec<_> = fs::read_dir(from)?.collect::<io::Result<_>>()?;
    fs::create_dir_all(to)?;
    entries.iter().try_for_each(|entry| copy(&entry.path(), &to.join(entry.file_name()), true))
}

/// Does something to each operand, and says which ones fail.
fn each(context: &mut Context<'_>, options: &Parsed<'_>, act: impl Fn(&Parsed<'_>, &Path) -> io::Result<()>) -> Status {
    if options.operands.is_empty() {
        return Err(Failure::from("missing operand".to_owned()));
    }
    let mut status = 0;
    for name in &options.operands {
        if let Err(error) = act(options, &context.shell.path(name)) {
            context.complain(format_args!("{name}: {}", plain(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// Does something with each source and its place at the target.
fn each_pair(context: &mut Context<'_>, options: &Parsed<'_>, act: impl Fn(&Path, &Path) -> io::Result<()>) -> Status {
    let [sources @ .., target] = &options.operands[..] else { return Err(Failure::from("missing operand".to_owned())) };
    let target_path = context.shell.path(target);
    if sources.is_empty() || (sources.len() > 1 && !target_path.is_dir()) {
        return Err(Failure::from(format!("{target}: not a directory")));
    }
    let mut status = 0;
    for source in sources {
        let from = context.shell.path(source);
        let to = match from.file_name() {
            Some(name) if target_path.is_dir() => target_path.join(name),
            _ => PathBuf::from(&target_path),
        };
        if let Err(error) = act(&from, &to) {
            context.complain(format_args!("{source}: {}", plain(&error)));
            status = 1;
        }
    }
    Ok(status)
}
