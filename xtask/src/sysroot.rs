//! Rust's standard library for targets for which nobody offers it ready-made.
//!
//! Built once per target and compiler from the sources that the distribution ships, and kept in the cache in the
//! shape of a compiler's own library folder. Later builds only say `--sysroot`; they need neither `-Z build-std` nor
//! linker flags, since the C library and the linkers are in the places where the compiler looks for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::run::{cache_dir, output, run};
use crate::toolchain::sysroot_in_use;

/// Part of the key: grows when the way in which the library is built changes.
const RECIPE: u32 = 2;

/// The distribution's compiler, with the sources of its standard library.
pub(crate) struct Compiler {
    pub(crate) rustc: PathBuf,
    pub(crate) cargo: PathBuf,
    /// `rustc -vV`: names the exact compiler.
    version: String,
}

impl Compiler {
    /// The compiler under `/usr`, if it can build a standard library.
    pub(crate) fn find() -> Result<Option<Self>> {
        let (rustc, cargo) = (PathBuf::from("/usr/bin/rustc"), PathBuf::from("/usr/bin/cargo"));
        let sources = Path::new("/usr/lib/rustlib/src/rust/library/std/Cargo.toml");
        if !rustc.is_file() || !cargo.is_file() || !sources.is_file() {
            return Ok(None);
        }
        let version = output(Command::new(&rustc).arg("-vV"))?;
        Ok(Some(Self { rustc, cargo, version }))
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.version.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The release, for people: `1.96.0`.
    pub(crate) fn release(&self) -> &str {
        self.field("release").unwrap_or("unknown")
    }

    /// Minor version of the release.
    pub(crate) fn minor(&self) -> Option<u32> {
        self.release().split('.').nth(1)?.parse().ok()
    }

    fn key(&self) -> String {
        // FNV-1a: the same in every build of this tool, unlike the hash of the standard library.
        let hash =
            self.version.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        format!("{}-{hash:08x}-r{RECIPE}", self.release())
    }
}

/// The folder to give to this compiler as its `--sysroot`, whether it exists or not.
pub(crate) fn path(compiler: &Compiler) -> Result<PathBuf> {
    Ok(cache_dir()?.join("sysroot").join(compiler.key()))
}

/// Builds the library for a target. `libc` is the folder with the C library to link, for targets that have one.
///
/// Whoever looks for the library sees all of it or nothing: it is moved to its place when it is complete.
pub(crate) fn build(compiler: &Compiler, target: &str, libc: Option<&Path>) -> Result<()> {
    let begun = Instant::now();
    let sysroot = path(compiler)?;
    let place = sysroot.join("lib/rustlib").join(target);
    let stage = sysroot.join(format!("stage-{target}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&stage);
    let outcome = build_in(&stage, compiler, target, libc).and_then(|built| {
        fs::create_dir_all(sysroot.join("lib/rustlib"))?;
        // What is there is incomplete, or else nobody would have asked for it.
        let _ = fs::remove_dir_all(&place);
        fs::rename(&built, &place).with_context(|| format!("could not move the library to {}", place.display()))
    });
    let _ = fs::remove_dir_all(&stage);
    outcome?;
    link_linkers(compiler, &sysroot)?;
    eprintln!("setup: built in {:.0} s, kept in {}", begun.elapsed().as_secs_f32(), place.display());
    Ok(())
}

fn build_in(stage: &Path, compiler: &Compiler, target: &str, libc: Option<&Path>) -> Result<PathBuf> {
    let seed = stage.join("seed");
    fs::create_dir_all(&seed).with_context(|| format!("could not create {}", seed.display()))?;
    // An empty crate: what is wanted are its dependencies.
    fs::write(seed.join("Cargo.toml"), "[package]\nname = \"seed\"\nedition = \"2024\"\n[lib]\npath = \"seed.rs\"\n")?;
    fs::write(seed.join("seed.rs"), "#![no_std]\n")?;

    let (crates, features) = match libc {
        Some(_) => ("std,panic_abort,proc_macro", "panic-unwind"),
        // Without an operating system nobody else brings memcpy.
        None => ("core,alloc", "compiler-builtins-mem"),
    };
    let mut cargo = Command::new(&compiler.cargo);
    cargo.current_dir(&seed).args(["build", "--release", "--target", target]);
    cargo.arg(format!("-Zbuild-std={crates}")).arg(format!("-Zbuild-std-features={features}"));
    cargo.arg("--target-dir").arg(stage.join("target"));
    cargo.env("RUSTC", &compiler.rustc).env("RUSTC_BOOTSTRAP", "1").env("CARGO_INCREMENTAL", "0");
    for variable in ["CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "RUSTC_WRAPPER"] {
        cargo.env_remove(variable);
    }
    // Guests are linked with link-time optimisation, which reads bitcode.
    cargo.env("RUSTFLAGS", "-Cembed-bitcode=yes");
    run(&mut cargo)?;

    let library = stage.join("library");
    let rlibs = library.join("lib");
    fs::create_dir_all(&rlibs)?;
    for file in files(&stage.join("target").join(target).join("release/deps"))? {
        let name = file_name(&file);
        if name.ends_with(".rlib") && !name.starts_with("libseed-") {
            fs::copy(&file, rlibs.join(name))?;
        }
    }
    if let Some(libc) = libc {
        let own = rlibs.join("self-contained");
        fs::create_dir_all(&own)?;
        for file in files(libc)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "a" || e == "o")) {
            fs::copy(&file, own.join(file_name(&file)))?;
        }
        if !own.join("crt1-command.o").is_file() {
            bail!("{} is no WASI C library: there is no crt1-command.o in it", libc.display());
        }
    }
    Ok(library)
}

/// Offers the linkers of the Rust in use to the distribution's compiler, which comes without.
fn link_linkers(compiler: &Compiler, sysroot: &Path) -> Result<()> {
    let host = compiler.field("host").context("`rustc -vV` names no host")?;
    let theirs = sysroot_in_use()?.join("lib/rustlib").join(host).join("bin");
    if !theirs.join("rust-lld").is_file() {
        bail!("no rust-lld in {}: install Rust with rustup, its linkers are needed for Wasm", theirs.display());
    }
    let ours = sysroot.join("lib/rustlib").join(host);
    fs::create_dir_all(&ours)?;
    let _ = fs::remove_file(ours.join("bin"));
    symlink(&theirs, ours.join("bin")).with_context(|| format!("could not link to {}", theirs.display()))
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = dir.read_dir().with_context(|| format!("could not read {}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
