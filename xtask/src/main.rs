//! The tasks of this repository: `cargo xtask VERB`. One verb, one file.

mod bench;
mod conformance;
mod debian;
mod demo;
mod fuzz;
mod guests;
mod mutants;
mod run;
mod setup;
mod sim;
mod sysroot;
mod test;
mod tests_run;
mod toolchain;
mod vectors;

use std::process::ExitCode;

use anyhow::{Result, bail};
use pico_args::Arguments;

/// One verb: what the help says about it and what it does.
struct Verb {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    run: fn(Arguments) -> Result<()>,
}

/// In the order in which somebody new to the repository needs them.
const VERBS: &[Verb] = &[
    demo::VERB,
    test::VERB,
    setup::VERB,
    guests::VERB,
    vectors::VERB,
    sim::VERB,
    conformance::VERB,
    fuzz::VERB,
    mutants::VERB,
    bench::VERB,
];

const ABOUT: &str = "\
Tasks of the Husk repository.

New here? `cargo xtask demo` fetches what is missing, builds everything and runs a
pod (init container, sidecar, app) through its whole life. `cargo xtask test` does
all that CI does.

Usage: cargo xtask VERB [OPTIONS]
";

const AFTER: &str = "
`cargo xtask VERB --help` says more about one of them.

Environment:
  CARGO_TARGET_DIR   where builds go; guests end up in its folder guests/ (default: target)
  XDG_CACHE_HOME     where Rust's standard library for Wasm is kept, if Husk had to build it (default: ~/.cache)
  HUSK_TOOLCHAIN     rustup or debian: take the Wasm targets from there only (default: rustup, then debian)
  WASI_SDK_PATH      a wasi-sdk for the guests in C (default: the distribution's clang and wasi-libc)";

fn main() -> ExitCode {
    let mut arguments = Arguments::from_env();
    match dispatch(&mut arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &mut Arguments) -> Result<()> {
    let name = arguments.subcommand()?;
    let asks_for_help = arguments.contains(["-h", "--help"]);
    let Some(name) = name.filter(|name| name != "help") else {
        print_help();
        return Ok(());
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        bail!("there is no verb {name:?}; `cargo xtask --help` lists them");
    };
    if asks_for_help {
        println!("{}\n\n{}", verb.summary, verb.help.trim_end());
        return Ok(());
    }
    (verb.run)(std::mem::replace(arguments, Arguments::from_vec(Vec::new())))
}

fn print_help() {
    println!("{ABOUT}\nVerbs:");
    for verb in VERBS {
        println!("  {:<12} {}", verb.name, verb.summary);
    }
    println!("{AFTER}");
}

/// Refuses arguments that a verb did not ask for: a misspelt option must not be ignored in silence.
fn no_more(arguments: Arguments) -> Result<()> {
    match arguments.finish().as_slice() {
        [] => Ok(()),
        [first, ..] => bail!("unexpected argument {first:?}; add --help to see what is possible"),
    }
}
