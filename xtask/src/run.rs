//! Starting other programs, and where things are.

use std::env;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // `cargo xtask` sets the variable at run time: right even after the repository was moved.
    let xtask =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
}

/// Where cargo puts what it builds for this workspace.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Where things are kept that outlive a `cargo clean`.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        Some(dir) => dir,
        None => env::home_dir().context("no home directory: set HOME or XDG_CACHE_HOME")?.join(".cache"),
    };
    Ok(base.join("husk"))
}

/// The cargo that started us, as if a person had started it: `cargo xtask` says things of this package in the environment, and crates whose
/// build scripts read those (ring) would be compiled anew, with all that need them, whenever a person and xtask take turns.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    let of_this_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(of_this_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Builds a program of the workspace, and says where it is.
///
/// As a part of the whole workspace: for its package alone cargo would choose other features for shared dependencies
/// and compile them, wasmtime among them, a second time.
pub(crate) fn build(binary: &str) -> Result<PathBuf> {
    run_quietly(cargo().args(["build", "--workspace", "--bin", binary]))?;
    Ok(target_dir().join("debug").join(binary))
}

/// Builds a program for a run of an hour: optimised, with all its assertions.
pub(crate) fn build_for_long(package: &str, binary: &str) -> Result<PathBuf> {
    run_quietly(cargo().args(["build", "--profile", "long", "--package", package, "--bin", binary]))?;
    Ok(target_dir().join("long").join(binary))
}

/// A program of this name in one of the folders of `PATH`.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Runs a command to its end, with its output on our terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("could not start {}", program(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a command and hands back what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not start {}", program(command)))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", line(command), output.status, message.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Runs a cargo command and passes its messages on, but keeps silent about builds where nothing was to be done.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let colour = if std::io::stderr().is_terminal() { "always" } else { "never" };
    let mut child = command
        .env("CARGO_TERM_COLOR", colour)
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {}", program(command)))?;
    if let Some(stderr) = child.stderr.take() {
        for message in BufReader::new(stderr).lines() {
            let message = message?;
            if !message.contains("Finished") {
                eprintln!("{message}");
            }
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// The command as somebody would type it.
pub(crate) fn line(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program(command)).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn program(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    name.to_string_lossy().into_owned()
}
