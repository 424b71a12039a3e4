//! `cargo xtask setup`: makes sure of what the other verbs need.

use std::env;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::guests::Clang;
use crate::run::{cache_dir, run, which};
use crate::sysroot::{self, Compiler};
use crate::toolchain::{BARE_METAL, Source, Toolchain, WASIP1, WASIP2};
use crate::{Verb, debian, no_more};

pub(crate) const VERB: Verb = Verb {
    name: "setup",
    summary: "Make sure of what demo and test need: Wasm targets, C and C++ compilers",
    help: "\
Usage: cargo xtask setup

Can be run again at any time; where nothing is missing it only looks.

Rust targets: wasm32-wasip2, wasm32-wasip1 (guests) and thumbv7em-none-eabi (proof
that the core needs no operating system). Rustup is asked first. Where it can't help,
Debian's packages are taken (rustc-web cargo-web rust-web-src wasi-libc, and a newer
wasi-libc that is unpacked and not installed), and the standard library is built from
their sources: once per target and compiler, one to two minutes each, kept in
~/.cache/husk. Installing packages needs root.

Guests in C: a wasi-sdk if WASI_SDK_PATH names one, else Debian's clang-14, lld-14,
wasi-libc and libclang-rt-14-dev-wasm32. The fuzz targets: any C++ compiler, else
Debian's g++.",
    run: |arguments| {
        no_more(arguments)?;
        everything()
    },
};

/// Lowest minor version of Rust 1.x that the workspace builds with.
const MINOR_VERSION: u32 = 95;

/// What `test` needs.
pub(crate) fn everything() -> Result<()> {
    targets(&[WASIP2, WASIP1, BARE_METAL])?;
    clang()?;
    cxx()
}

/// Makes sure that the targets can be compiled for.
pub(crate) fn targets(targets: &[&str]) -> Result<()> {
    for source in Source::allowed()? {
        let missing = missing(targets)?;
        if missing.is_empty() {
            break;
        }
        let outcome = match source {
            Source::Rustup => by_rustup(&missing),
            Source::Debian => by_debian(&missing),
        };
        if let Err(problem) = outcome {
            eprintln!("setup: {source:?} can't help: {problem:#}");
        }
    }
    let missing = missing(targets)?;
    if !missing.is_empty() {
        bail!(
            "there is no compiler for {0} and none could be installed, for the reasons above.\n\
             On a machine with rustup and a network, `rustup target add {0}` is all that is needed.\n\
             On Debian, as root: apt-get install {1} {2}; then run `cargo xtask setup` again.\n\
             On other distributions, install their Rust standard library for these targets.",
            missing.join(" "),
            debian::RUST_PACKAGES.join(" "),
            debian::LIBC_PACKAGES.join(" "),
        );
    }
    for target in targets {
        if let Some(toolchain) = Toolchain::find(target)? {
            eprintln!("setup: {target}: {}", toolchain.origin());
        }
    }
    Ok(())
}

fn missing<'a>(targets: &[&'a str]) -> Result<Vec<&'a str>> {
    let mut missing = Vec::new();
    for target in targets {
        if Toolchain::find(target)?.is_none() {
            missing.push(*target);
        }
    }
    Ok(missing)
}

fn by_rustup(targets: &[&str]) -> Result<()> {
    let rustup = which("rustup").context("there is no rustup on the PATH")?;
    eprintln!("setup: rustup target add {}", targets.join(" "));
    // One by one: a target that rustup does not have must not keep the others away.
    let outcomes: Vec<_> =
        targets.iter().map(|target| run(Command::new(&rustup).args(["target", "add", target]))).collect();
    outcomes.into_iter().collect()
}

fn by_debian(targets: &[&str]) -> Result<()> {
    if !debian::is_debian() {
        bail!("this is not Debian or a relative of it");
    }
    debian::install(debian::RUST_PACKAGES)?;
    let compiler = Compiler::find()?.context("the packages are installed, but the compiler is not under /usr")?;
    if compiler.minor().is_none_or(|minor| minor < MINOR_VERSION) {
        bail!("its compiler is {}, and 1.{MINOR_VERSION} is needed; are the security updates on?", compiler.release());
    }
    for target in targets {
        eprintln!(
            "setup: building Rust's standard library for {target} with rustc {} (a minute or two, once)",
            compiler.release()
        );
        match *target {
            WASIP2 => {
                let scratch = cache_dir()?.join(format!("apt-{}", std::process::id()));
                let outcome = debian::newer_wasi_libc(&scratch)
                    .and_then(|libc| sysroot::build(&compiler, target, Some(&libc.join(WASIP2))));
                let _ = fs::remove_dir_all(&scratch);
                outcome?;
            }
            WASIP1 => {
                debian::install(debian::LIBC_PACKAGES)?;
                sysroot::build(&compiler, target, Some("/usr/lib/wasm32-wasi".as_ref()))?;
            }
            _ => sysroot::build(&compiler, target, None)?,
        }
    }
    Ok(())
}

/// Makes sure that guests in C can be compiled.
pub(crate) fn clang() -> Result<()> {
    if Clang::find().is_none() {
        let remedy = || {
            anyhow!(
                "no C compiler for Wasm. On Debian, as root: apt-get install {}. Elsewhere: unpack a wasi-sdk and name \
                 its folder in WASI_SDK_PATH",
                debian::C_PACKAGES.join(" ")
            )
        };
        if !debian::is_debian() {
            return Err(remedy());
        }
        debian::install(debian::C_PACKAGES).with_context(remedy)?;
    }
    let clang = Clang::find().context("clang, wasm-ld or wasi-libc is not where Debian puts it")?;
    eprintln!("setup: C for Wasm: {}", clang.program.display());
    Ok(())
}

/// Makes sure that libFuzzer can be compiled: only the fuzz targets need that.
pub(crate) fn cxx() -> Result<()> {
    let remedy =
        || anyhow!("no C++ compiler, and libFuzzer is written in C++. On Debian, as root: apt-get install g++");
    if env::var_os("CXX").is_some() || which("c++").is_some() {
        return Ok(());
    }
    if !debian::is_debian() {
        return Err(remedy());
    }
    debian::install(debian::CXX_PACKAGES).with_context(remedy)
}
