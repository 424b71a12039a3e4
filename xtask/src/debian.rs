//! What Debian offers where rustup has nothing: packages, and single packages of a newer suite.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::run::{line, output, run, which};

/// Debian's security updates carry a recent compiler for Firefox; its sources include the standard library.
pub(crate) const RUST_PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src"];
/// The C library of WASI preview 1.
pub(crate) const LIBC_PACKAGES: &[&str] = &["wasi-libc"];
/// What guests in C need.
pub(crate) const C_PACKAGES: &[&str] = &["clang-14", "lld-14", "wasi-libc", "libclang-rt-14-dev-wasm32"];
/// What libFuzzer needs.
pub(crate) const CXX_PACKAGES: &[&str] = &["g++"];

/// Waits for another apt instead of giving up at once.
const WAIT_FOR_LOCK: &str = "DPkg::Lock::Timeout=300";
/// The suite in which wasi-libc knows WASI preview 2.
const NEWER_SUITE: &str = "sid";

/// Whether Debian's tools are there at all.
pub(crate) fn is_debian() -> bool {
    Path::new("/etc/debian_version").exists() && which("apt-get").is_some()
}

/// Makes sure that packages are installed.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if output(Command::new("id").arg("-u"))? != "0" {
        bail!("packages are missing and only root can install them: sudo apt-get install {names}");
    }
    eprintln!("setup: installing Debian packages: {names}");
    // A source that is out of reach may have nothing to do with us: the installation shows whether it matters.
    let _ = apt(&["-qq", "update"]);
    let mut install = vec!["-qq", "-o", "Dpkg::Use-Pty=0", "install", "--yes", "--no-install-recommends"];
    install.extend(&missing);
    apt(&install).with_context(|| {
        format!(
            "could not install {names}. Is there a network, and is this Debian 12 or newer with its security \
             updates among the apt sources?"
        )
    })
}

/// The folder with the libraries of WASI preview 2, from a newer suite, without touching what is installed.
///
/// Everything happens in `scratch`; only the machine's own apt sources say where packages come from.
pub(crate) fn newer_wasi_libc(scratch: &Path) -> Result<PathBuf> {
    let source = newer_source().context("no entry for Debian itself was found among the apt sources")?;
    fs::create_dir_all(scratch.join("lists/partial"))?;
    fs::create_dir_all(scratch.join("archives/partial"))?;
    fs::write(scratch.join("status"), "")?;
    fs::write(scratch.join("newer.list"), source)?;
    let option = |name: &str, path: &str| format!("{name}={}", scratch.join(path).display());
    let private = [
        option("Dir::Etc::SourceList", "newer.list"),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        "Dir::Etc::PreferencesParts=/dev/null".to_owned(),
        option("Dir::State::Lists", "lists"),
        option("Dir::State::Status", "status"),
        option("Dir::Cache", ""),
        option("Dir::Cache::Archives", "archives"),
        "APT::Sandbox::User=root".to_owned(),
        "Acquire::Languages=none".to_owned(),
    ];
    let private = || private.iter().flat_map(|option| ["-o", option]);

    eprintln!("setup: fetching a newer wasi-libc ({NEWER_SUITE}; unpacked into the cache, not installed)");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        let status = command.current_dir(scratch).args(private()).args(arguments).status();
        status.is_ok_and(|status| status.success())
    };
    if !apt(&["-qq", "update"]) || !apt(&["-qq", "download", "wasi-libc"]) {
        bail!("could not fetch wasi-libc from {NEWER_SUITE}. Is there a network?");
    }
    let package = (scratch.read_dir()?.flatten().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get downloaded no package")?;
    let unpacked = scratch.join("unpacked");
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
    Ok(unpacked.join("usr/lib"))
}

/// `apt-get`, patient with an `apt-get update` of somebody else, which the lock option does not cover.
fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(["-o", WAIT_FOR_LOCK]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    for _ in 0..30 {
        let output = command.output().context("could not start apt-get")?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        if !message.contains("Could not get lock") {
            bail!("`{}` failed ({}):\n{}", line(&command), output.status, message.trim());
        }
        eprintln!("setup: waiting for another apt");
        thread::sleep(Duration::from_secs(10));
    }
    bail!("another apt did not finish within five minutes")
}

fn is_installed(package: &str) -> bool {
    let query = output(Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]));
    query.is_ok_and(|status| status == "installed")
}

/// The machine's own source for Debian, as a line for the newer suite.
fn newer_source() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?.trim_matches('"').to_owned();
    let parts = fs::read_dir("/etc/apt/sources.list.d").ok();
    let parts = parts.into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(PathBuf::from("/etc/apt/sources.list")).chain(parts).find_map(|file| {
        let text = fs::read_to_string(&file).ok()?;
        match file.extension()?.to_str()? {
            "list" => from_one_line_style(&text, &suite),
            "sources" => from_deb822_style(&text, &suite),
            _ => None,
        }
    })
}

/// `deb [options] URI SUITE COMPONENT…`
fn from_one_line_style(text: &str, suite: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim();
        let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((options, rest)) => (format!("[{options}] "), rest),
            None => (String::new(), rest),
        };
        let mut words = rest.split_whitespace();
        let (uri, its_suite) = (words.next()?, words.next()?);
        (its_suite == suite && words.any(|component| component == "main"))
            .then(|| format!("deb {options}{uri} {NEWER_SUITE} main\n"))
    })
}

/// Paragraphs of `Field: value` lines.
fn from_deb822_style(text: &str, suite: &str) -> Option<String> {
    text.split("\n\n").find_map(|paragraph| {
        let field =
            |name: &str| paragraph.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()));
        let has = |name, word: &str| field(name).is_some_and(|value| value.split_whitespace().any(|w| w == word));
        if !has("Types", "deb") || !has("Suites", suite) || !has("Components", "main") {
            return None;
        }
        let uri = field("URIs")?.split_whitespace().next()?;
        // A key that is written out in the paragraph (it begins with an empty line) can't be named on one line.
        let key = field("Signed-By").filter(|key| key.starts_with('/'));
        let options = key.map(|key| format!("[signed-by={key}] ")).unwrap_or_default();
        Some(format!("deb {options}{uri} {NEWER_SUITE} main\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_suite_comes_from_where_this_one_comes_from() {
        let line = "# a comment\ndeb mirror:/x bookworm-security main\ndeb [arch=amd64] mirror:/debian bookworm main non-free\n";
        let expected = "deb [arch=amd64] mirror:/debian sid main\n";
        assert_eq!(from_one_line_style(line, "bookworm").as_deref(), Some(expected));
        assert_eq!(from_one_line_style("deb mirror:/other stable main", "bookworm"), None);
    }

    #[test]
    fn deb822_paragraphs_are_told_apart() {
        let text = "Types: deb\nURIs: mirror:/security\nSuites: bookworm-security\nComponents: main\n\n\
                    Types: deb\n# a comment\nURIs: mirror:/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\
                    Signed-By: /usr/share/keyrings/key.gpg\n";
        let expected = "deb [signed-by=/usr/share/keyrings/key.gpg] mirror:/debian sid main\n";
        assert_eq!(from_deb822_style(text, "bookworm").as_deref(), Some(expected));
    }
}
