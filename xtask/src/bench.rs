//! `cargo xtask bench`: what a release build costs in time and memory, from outside.
//!
//! Everything is measured through the command line, as a user would see it. Programs that are compared take turns within
//! one run, so that a busy machine slows all of them.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;
use serde_json::Value;

use crate::run::{cargo, run_quietly, target_dir, which};
use crate::toolchain::{WASIP1, WASIP2};
use crate::{Verb, guests, no_more, setup};

pub(crate) const VERB: Verb = Verb {
    name: "bench",
    summary: "Measure starts, memory per pod and the cost of fuel, with a release build",
    help: "\
Usage: cargo xtask bench [--rounds N] [--pods N,N,...] [--husk PROGRAM] [--wasmtime PROGRAM]

Builds husk as it is released (this takes long) unless --husk names a program. Compares with
wasmtime's own command line if it is on the PATH or named by --wasmtime
(`cargo install wasmtime-cli` builds it).

  start    from the start of `husk run` to the first output of the guest, with the
           module compiled already (warm) and not (cold)
  run      a whole run of a module that says hello and ends
  compute  a module that computes, with fuel (as husk always does) and without
  memory   resident memory per idle pod

  --rounds N     how often each time is taken; the median is shown (default 15)
  --pods N,...   how many idle pods (default 1,100,1000)",
    run: bench,
};

/// Says hello by WASI preview 1 and ends.
const HELLO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hello\n")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 6))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"#;

/// Two hundred million steps of a random number generator, and no call.
const COMPUTE: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start") (local $left i32) (local $x i64)
    (local.set $left (i32.const 200000000))
    (local.set $x (i64.const 88172645463325252))
    (loop $again
      (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
      (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
      (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))
    (i64.store (i32.const 0) (local.get $x))))
"#;

/// Fuel that no guest here uses up.
const PLENTY: &str = "fuel=9000000000000000000";

struct Bench {
    husk: PathBuf,
    wasmtime: Option<PathBuf>,
    rounds: usize,
    /// Manifests, modules and caches; new for each run.
    scratch: PathBuf,
}

fn bench(mut arguments: Arguments) -> Result<()> {
    let rounds = arguments.opt_value_from_str("--rounds")?.unwrap_or(15).max(1);
    let pods: String = arguments.opt_value_from_str("--pods")?.unwrap_or_else(|| "1,100,1000".to_owned());
    let pods: Vec<usize> = pods.split(',').map(str::parse).collect::<Result<_, _>>().context("--pods")?;
    let husk = arguments.opt_value_from_str("--husk")?;
    let wasmtime = arguments.opt_value_from_str("--wasmtime")?.or_else(|| which("wasmtime"));
    no_more(arguments)?;

    setup::targets(&[WASIP2, WASIP1])?;
    guests::build_all_rust()?;
    let husk: PathBuf = match husk {
        Some(husk) => husk,
        None => {
            eprintln!("bench: building husk as it is released");
            run_quietly(cargo().args(["build", "--release", "--workspace", "--bin", "husk"]))?;
            target_dir().join("release/husk")
        }
    };
    let scratch = env::temp_dir().join(format!("husk-bench-{}", std::process::id()));
    let bench = Bench { husk, wasmtime, rounds, scratch };
    let outcome = bench.all(&pods);
    let _ = fs::remove_dir_all(&bench.scratch);
    outcome
}

impl Bench {
    fn all(&self, pods: &[usize]) -> Result<()> {
        fs::create_dir_all(&self.scratch)?;
        let size = fs::metadata(&self.husk).with_context(|| format!("no program {}", self.husk.display()))?.len();
        println!("husk: {} ({:.1} MB)", self.husk.display(), size as f64 / 1e6);
        match &self.wasmtime {
            Some(wasmtime) => println!("wasmtime: {}", wasmtime.display()),
            None => println!("wasmtime: not on the PATH, so there is nothing to compare with"),
        }
        println!("{:<44} {:>9} {:>9} {:>9}", "milliseconds", "median", "least", "most");
        self.times()?;
        println!("{:<44} {:>9} {:>9} {:>9}", "idle pods", "MB", "kB/pod", "ready, s");
        self.memory(pods)
    }

    fn times(&self) -> Result<()> {
        let hello = self.manifest("hello", HELLO)?;
        let compute = self.manifest("compute", COMPUTE)?;
        let warm = self.scratch.join("warm");
        let cold = self.scratch.join("cold");
        for manifest in [&hello, &compute] {
            whole(&mut self.husk_run(manifest, &warm))?;
        }
        let mut rows = vec![
            Row::new("start, cold: to the guest's first output"),
            Row::new("start, warm: to the guest's first output"),
            Row::new("run hello, warm: husk run"),
            Row::new("compute, with fuel: husk run"),
        ];
        if self.wasmtime.is_some() {
            rows.push(Row::new("run hello: wasmtime run (compiles)"));
            rows.push(Row::new("run hello: wasmtime run (compiled before)"));
            rows.push(Row::new("compute, with fuel: wasmtime run"));
            rows.push(Row::new("compute, without fuel: wasmtime run"));
        }
        let compiled = self.compiled_by_wasmtime()?;
        for round in 0..self.rounds {
            let _ = fs::remove_dir_all(&cold);
            rows[0].took(first_output(&mut self.husk_run(&hello, &cold))?);
            rows[1].took(first_output(&mut self.husk_run(&hello, &warm))?);
            rows[2].took(whole(&mut self.husk_run(&hello, &warm))?);
            // It takes long enough for a few rounds to do.
            let computes = round < 5;
            if computes {
                rows[3].took(whole(&mut self.husk_run(&compute, &warm))?);
            }
            if let Some(wasmtime) = &self.wasmtime {
                let run = |options: &[&str], module: &Path| {
                    let mut command = Command::new(wasmtime);
                    command.arg("run").args(options).arg(module);
                    whole(&mut command)
                };
                rows[4].took(run(&[], &self.scratch.join("hello.wat"))?);
                rows[5].took(run(&["--allow-precompiled"], &compiled)?);
                if computes {
                    rows[6].took(run(&["-W", PLENTY], &self.scratch.join("compute.wat"))?);
                    rows[7].took(run(&[], &self.scratch.join("compute.wat"))?);
                }
            }
        }
        for row in &mut rows {
            row.print();
        }
        Ok(())
    }

    /// A pod with one container that runs a module.
    fn manifest(&self, name: &str, module: &str) -> Result<PathBuf> {
        fs::write(self.scratch.join(format!("{name}.wat")), module)?;
        let manifest = self.scratch.join(format!("{name}.yaml"));
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n  containers:\n  \
             - {{name: {name}, image: ./{name}.wat}}\n"
        );
        fs::write(&manifest, pod)?;
        Ok(manifest)
    }

    fn husk_run(&self, manifest: &Path, cache: &Path) -> Command {
        let mut command = Command::new(&self.husk);
        command.arg("run").arg(manifest).args(["-o", "json", "--cache-dir"]).arg(cache);
        command.env("HUSK_IMAGES", guests::dir());
        command
    }

    fn compiled_by_wasmtime(&self) -> Result<PathBuf> {
        let compiled = self.scratch.join("hello.cwasm");
        if let Some(wasmtime) = &self.wasmtime {
            let mut compile = Command::new(wasmtime);
            whole(compile.arg("compile").arg(self.scratch.join("hello.wat")).arg("-o").arg(&compiled))?;
        }
        Ok(compiled)
    }

    fn memory(&self, numbers: &[usize]) -> Result<()> {
        // What compiling takes must not be taken for what a pod takes.
        self.idle(1)?;
        let mut first: Option<(usize, u64)> = None;
        for &number in numbers {
            let (kilobytes, ready) = self.idle(number).with_context(|| format!("{number} idle pods"))?;
            // What the program itself takes is in the first figure; the others are counted from there.
            let each = match first {
                Some((fewer, less)) if number > fewer => {
                    kilobytes.saturating_sub(less) as f64 / (number - fewer) as f64
                }
                _ => kilobytes as f64 / number.max(1) as f64,
            };
            first.get_or_insert((number, kilobytes));
            let megabytes = kilobytes as f64 / 1000.0;
            println!("{number:<44} {megabytes:>9.1} {each:>9.1} {:>9.2}", ready.as_secs_f64());
        }
        Ok(())
    }

    /// Resident memory with so many idle pods, and the time until all were running.
    fn idle(&self, number: usize) -> Result<(u64, Duration)> {
        let manifest = self.scratch.join(format!("idle-{number}.yaml"));
        fs::write(&manifest, (0..number).map(idle_pod).collect::<String>())?;
        let begun = Instant::now();
        let mut husk = self.husk_run(&manifest, &self.scratch.join("warm")).stdout(Stdio::piped()).spawn()?;
        let outcome = all_running(&mut husk, number).and_then(|ready| {
            let took = ready.duration_since(begun);
            resident_kilobytes(husk.id()).map(|kilobytes| (kilobytes, took))
        });
        let _ = husk.kill();
        let _ = husk.wait();
        outcome
    }
}

fn idle_pod(number: usize) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: idle-{number}}}\nspec:\n  containers:\n  \
         - {{name: idle, image: pause}}\n"
    )
}

/// Reads what `husk run -o json` says until so many pods are running, and says when that was.
fn all_running(husk: &mut Child, number: usize) -> Result<Instant> {
    let stdout = husk.stdout.take().context("no output to read")?;
    let mut running = std::collections::BTreeSet::new();
    for line in BufReader::new(stdout).lines() {
        let happened: Value = serde_json::from_str(&line?).context("a line of husk's is no JSON")?;
        if happened["type"] == "status" && happened["status"]["phase"] == "Running" {
            running.insert(happened["pod"].to_string());
        }
        if running.len() == number {
            let ready = Instant::now();
            // Let the last one come to rest before its memory is looked at.
            std::thread::sleep(Duration::from_millis(500));
            return Ok(ready);
        }
    }
    bail!("husk ended when only {} were running", running.len())
}

fn resident_kilobytes(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("memory is only known on Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the process has ended")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// How long a command takes from start to end.
fn whole(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let output = command.output().with_context(|| format!("could not start {command:?}"))?;
    let took = begun.elapsed();
    if !output.status.success() {
        bail!("{command:?} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(took)
}

/// How long it takes until the guest has said something.
fn first_output(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("could not start {command:?}"))?;
    let mut lines = BufReader::new(child.stdout.take().context("no output to read")?);
    let mut line = String::new();
    let mut took = None;
    while took.is_none() && lines.read_line(&mut line)? > 0 {
        took = line.contains(r#""type":"log""#).then(|| begun.elapsed());
        line.clear();
    }
    // It is let end by itself, and must not wait for a reader.
    let _ = lines.read_to_string(&mut line);
    child.wait()?;
    took.with_context(|| format!("the guest said nothing: {command:?}"))
}

/// One line of the table.
struct Row {
    name: &'static str,
    times: Vec<Duration>,
}

impl Row {
    fn new(name: &'static str) -> Self {
        Self { name, times: Vec::new() }
    }

    fn took(&mut self, time: Duration) {
        self.times.push(time);
    }

    fn print(&mut self) {
        self.times.sort();
        let at = |place: usize| self.times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
        let (middle, last) = (self.times.len() / 2, self.times.len().saturating_sub(1));
        println!("{:<44} {:>9.1} {:>9.1} {:>9.1}", self.name, at(middle), at(0), at(last));
    }
}
