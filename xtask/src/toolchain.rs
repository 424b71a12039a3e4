//! Which compiler makes code for a target, and how to call it.
//!
//! Rustup's, if it has the target. Else the distribution's compiler together with a standard library that
//! [`sysroot`] has built. Looking for them changes nothing and takes a few milliseconds.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Result, bail};

use crate::run::{cargo, output, root};
use crate::sysroot::{self, Compiler};

/// Guests that are WASI components.
pub(crate) const WASIP2: &str = "wasm32-wasip2";
/// Guests that are core modules.
pub(crate) const WASIP1: &str = "wasm32-wasip1";
/// A microcontroller: nothing but `core` and `alloc` exists there.
pub(crate) const BARE_METAL: &str = "thumbv7em-none-eabi";

/// Where the targets may come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Rustup,
    Debian,
}

impl Source {
    /// The sources to ask, in order.
    pub(crate) fn allowed() -> Result<&'static [Self]> {
        match env::var("HUSK_TOOLCHAIN").as_deref() {
            Err(_) | Ok("") => Ok(&[Self::Rustup, Self::Debian]),
            Ok("rustup") => Ok(&[Self::Rustup]),
            Ok("debian") => Ok(&[Self::Debian]),
            Ok(other) => bail!("HUSK_TOOLCHAIN is {other:?}; it can be rustup or debian, or be left unset"),
        }
    }
}

/// A way to compile for a target.
pub(crate) enum Toolchain {
    /// The compiler in use knows the target.
    InUse,
    /// Another compiler, with a standard library of ours.
    Distribution { compiler: Compiler, sysroot: PathBuf },
}

impl Toolchain {
    /// Looks for what is installed already.
    pub(crate) fn find(target: &str) -> Result<Option<Self>> {
        for source in Source::allowed()? {
            let found = match source {
                Source::Rustup => has_target(&sysroot_in_use()?, target).then_some(Self::InUse),
                Source::Debian => Compiler::find()?.and_then(|compiler| {
                    let sysroot = sysroot::path(&compiler).ok()?;
                    has_target(&sysroot, target).then_some(Self::Distribution { compiler, sysroot })
                }),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// As [`find`](Self::find), for verbs that can't do without.
    pub(crate) fn require(target: &str) -> Result<Self> {
        match Self::find(target)? {
            Some(toolchain) => Ok(toolchain),
            None => bail!("no compiler for {target}; `cargo xtask setup` installs one"),
        }
    }

    /// A cargo command, still without arguments, whose `--target TARGET` works.
    pub(crate) fn cargo(&self, target: &str) -> Command {
        match self {
            Self::InUse => cargo(),
            Self::Distribution { compiler, sysroot } => {
                let mut command = Command::new(&compiler.cargo);
                let mut flags = OsString::from("--sysroot=");
                flags.push(sysroot);
                let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase().replace('-', "_"));
                // The flags are for the target alone: build scripts keep the compiler's own library.
                command.current_dir(root()).env("RUSTC", &compiler.rustc).env(variable, flags).env_remove("RUSTFLAGS");
                command
            }
        }
    }

    /// For people: where it comes from.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::InUse => "the Rust in use".to_owned(),
            Self::Distribution { compiler, sysroot } => {
                format!("{} with {}", compiler.rustc.display(), sysroot.display())
            }
        }
    }
}

/// The library folder of the `rustc` that cargo calls.
pub(crate) fn sysroot_in_use() -> Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = PathBuf::from(output(Command::new(rustc).args(["--print", "sysroot"]))?);
    Ok(FOUND.get_or_init(|| sysroot).clone())
}

/// Whether there is a standard library for the target.
fn has_target(sysroot: &Path, target: &str) -> bool {
    let libraries = sysroot.join("lib/rustlib").join(target).join("lib");
    let Ok(entries) = libraries.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("libcore-")
    })
}
