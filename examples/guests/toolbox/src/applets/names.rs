//! `basename` and `dirname`.

use std::io::Write;

use super::{Context, Failure, Status};

/// `basename PATH [SUFFIX]`.
pub(super) fn basename(context: &mut Context<'_>) -> Status {
    let (path, suffix) = match context.operands() {
        [path] => (path, ""),
        [path, suffix] => (path, suffix.as_str()),
        _ => return Err(Failure::from("usage: basename PATH [SUFFIX]".to_owned())),
    };
    let trimmed = path.trim_end_matches('/');
    let name = if trimmed.is_empty() && !path.is_empty() { "/" } else { trimmed.rsplit('/').next().unwrap_or(trimmed) };
    let name = name.strip_suffix(suffix).filter(|short| !short.is_empty()).unwrap_or(name);
    writeln!(context.output, "{name}")?;
    Ok(0)
}

/// `dirname PATH`.
pub(super) fn dirname(context: &mut Context<'_>) -> Status {
    let [path] = context.operands() else { return Err(Failure::from("usage: dirname PATH".to_owned())) };
    let trimmed = path.trim_end_matches('/');
    let dir = match trimmed.rsplit_once('/') {
        None if trimmed.is_empty() && !path.is_empty() => "/",
        None => ".",
        Some((dir, _)) if dir.trim_end_matches('/').is_empty() => "/",
        Some((dir, _)) => dir.trim_end_matches('/'),
    };
    writeln!(context.output, "{dir}")?;
    Ok(0)
}
