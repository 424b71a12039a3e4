//! This program as a compiler: it starts itself for each module, so that one which is made to keep it busy has bounds.

use std::path::{Path, PathBuf};

use husk_agent::AgentConfiguration;
use husk_engine::Compiler;

/// What it is told first when it is started for that.
pub(crate) const VERB: &str = "compile-as-told";

/// The program that runs, even if another one was put in its place meanwhile.
const THIS: &str = "/proc/self/exe";

/// How modules are compiled, as a configuration has it.
pub(crate) fn compiler(configuration: &AgentConfiguration) -> Option<Compiler> {
    // Where it isn't known, this process compiles.
    let program = if Path::new(THIS).exists() { PathBuf::from(THIS) } else { std::env::current_exe().ok()? };
    Some(configuration.compiler(program, vec![VERB.into()]))
}
