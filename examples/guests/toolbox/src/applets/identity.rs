//! `hostname`, `uname`, `id`, `whoami`.

use std::io::Write;

use super::{Context, Status};
use crate::cmdline;

/// `hostname`: what the node gave the pod.
pub(super) fn hostname(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "sfi", &[])?;
    let name = host_name(context);
    let name = if options.has("s") { name.split('.').next().unwrap_or(&name).to_owned() } else { name };
    writeln!(context.output, "{name}")?;
    Ok(0)
}

/// `uname [-asnrmo]`.
pub(super) fn uname(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "asnrvmpo", &[])?;
    let host = host_name(context);
    let fields =
        [("s", "WASI"), ("n", &host), ("r", env!("CARGO_PKG_VERSION")), ("v", "Husk"), ("m", "wasm32"), ("o", "Husk")];
    let has_choice = fields.iter().any(|(flag, _)| options.has(flag)) || options.has("a");
    let shown: Vec<&str> = fields
        .iter()
        .filter(|(flag, _)| options.has("a") || options.has(flag) || (!has_choice && *flag == "s"))
        .map(|(_, value)| *value)
        .collect();
    writeln!(context.output, "{}", shown.join(" "))?;
    Ok(0)
}

/// `id [-u] [-g] [-n]`: WASI has no users; a guest is the only one in its container.
pub(super) fn id(context: &mut Context<'_>) -> Status {
    let options = cmdline::parse(context.operands(), "ugGn", &[])?;
    let has_choice = ["u", "g", "G"].iter().any(|flag| options.has(flag));
    let text = match (has_choice, options.has("n")) {
        (true, true) => "root",
        (true, false) => "0",
        (false, _) => "uid=0(root) gid=0(root)",
    };
    writeln!(context.output, "{text}")?;
    Ok(0)
}

/// `whoami`.
pub(super) fn whoami(context: &mut Context<'_>) -> Status {
    writeln!(context.output, "root")?;
    Ok(0)
}

fn host_name(context: &Context<'_>) -> String {
    if let Some(name) = context.shell.vars.value("HOSTNAME") {
        return name.to_owned();
    }
    let file = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    if file.trim().is_empty() { "localhost".to_owned() } else { file.trim().to_owned() }
}
