//! Whole commands, side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::sample::Sample;
use crate::run::{cargo, line as line_of, output, run, target_dir, which};

/// Containers that run one after the other in the pod that measures a container's life.
const IN_A_ROW: usize = 100;

/// Runtimes of Linux containers, which need root, with what they need to run where no systemd keeps the cgroups.
const OCI_RUNTIMES: &[(&str, &[&str])] = &[("crun", &["--cgroup-manager=disabled"]), ("runc", &[])];

/// Measures and prints.
pub(super) fn measure(husk: &Path, runs: usize) -> Result<()> {
    let folder = target_dir().join("bench");
    fs::create_dir_all(&folder)?;
    let guests = target_dir().join("guests");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text)?;
        Ok::<_, anyhow::Error>(path)
    };
    // It imports nothing of Husk's, so that wasmtime can run it, too.
    let crasher = guests.join("crasher.wasm");
    let hello = write("hello.yaml", pod("hello", "", &container("app", &crasher, "[crasher, log, '1']")))?;
    let row: String = (0..IN_A_ROW).map(|n| container(&format!("i{n}"), &crasher, "[crasher, exit, '0']")).collect();
    let row = write("row.yaml", pod("row", &row, &container("app", &crasher, "[crasher, exit, '0']")))?;

    let cache = folder.join("cache");
    let husk_run = |manifest: &Path, warm: bool| {
        if !warm && cache.exists() {
            fs::remove_dir_all(&cache)?;
        }
        let mut command = Command::new(husk);
        command.arg("run").arg(manifest).args(["-o", "json", "--cache-dir"]).arg(&cache);
        Ok::<_, anyhow::Error>(command)
    };
    println!("whole commands, {runs} runs each");
    let cold = Sample::of(runs.min(5), || husk_run(&hello, false))?;
    println!("  husk run, cold (compiles)   {cold}");
    let warm = Sample::of(runs, || husk_run(&hello, true))?;
    println!("  husk run, warm              {warm}");
    let times = |other: &Sample| other.median().as_secs_f64() / warm.median().as_secs_f64();
    let of_wasmtime = wasmtime().and_then(|wasmtime| {
        Sample::of(runs, || {
            let mut command = Command::new(&wasmtime);
            command.args(["run", "-C", "cache=y"]).arg(&crasher).args(["log", "1"]);
            Ok(command)
        })
    });
    match of_wasmtime {
        Ok(sample) => println!("  wasmtime run, its cache     {sample}, {:.2} of husk", times(&sample)),
        Err(error) => println!("  wasmtime run                does not work here: {error:#}"),
    }
    let bundle = bundle(&folder)?;
    for (runtime, flags) in OCI_RUNTIMES {
        let Some(program) = which(runtime) else {
            println!("  {runtime} run                    not installed: it is in most distributions");
            continue;
        };
        let sample = Sample::of(runs, || {
            let mut command = Command::new(&program);
            command.args(*flags).args(["run", "--bundle"]).arg(&bundle);
            command.arg(format!("husk-bench-{}", std::process::id()));
            Ok(command)
        });
        match sample {
            Ok(sample) => println!("  {runtime} run, echo of the host  {sample}, {:.2} of husk", times(&sample)),
            Err(error) => println!("  {runtime} run                    does not work here: {error:#}"),
        }
    }
    let firsts = (0..runs).map(|_| first_output(husk_run(&hello, true)?)).collect::<Result<Vec<_>>>()?;
    println!("  from apply to first output  {}", Sample::from(firsts));
    husk_run(&row, true)?.stdout(std::process::Stdio::null()).status()?;
    let row = Sample::of(runs.min(5), || husk_run(&row, true))?;
    let each = (row.median().saturating_sub(warm.median())).as_secs_f64() * 1000.0 / IN_A_ROW as f64;
    println!("  {IN_A_ROW} init containers, warm   {row}, {each:.2} ms each");
    Ok(())
}

/// The wasmtime of the line that husk is built on, from the registry.
fn wasmtime() -> Result<PathBuf> {
    let tools = target_dir().join("bench").join("tools");
    let program = tools.join("bin").join("wasmtime");
    if !program.is_file() {
        run(cargo().args(["install", "wasmtime-cli", "--version", "^48", "--locked", "--root"]).arg(&tools))?;
    }
    Ok(program)
}

/// Time from the first event of a pod to the first line that its guest wrote.
fn first_output(mut command: Command) -> Result<Duration> {
    let output = output(&mut command)?;
    let time = |kind: &str| {
        let line = output.lines().find(|line| line.contains(&format!(r#""type":"{kind}""#)));
        let stamp = line.and_then(|line| line.split_once(r#""time":""#)).and_then(|(_, rest)| rest.split_once('Z'));
        let seconds = stamp.and_then(|(stamp, _)| stamp.rsplit_once(':')).and_then(|(_, s)| s.parse::<f64>().ok());
        seconds.with_context(|| format!("no {kind} with a time in the output of {}", line_of(&command)))
    };
    // Only the seconds are read: a run takes less than a minute.
    let took = (time("log")? - time("event")?).rem_euclid(60.0);
    Ok(Duration::from_secs_f64(took))
}

fn pod(name: &str, init: &str, apps: &str) -> String {
    let init = if init.is_empty() { String::new() } else { format!("  initContainers:\n{init}") };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n{init}  containers:\n{apps}"
    )
}

fn container(name: &str, image: &Path, command: &str) -> String {
    format!("  - {{name: {name}, image: '{}', command: {command}}}\n", image.display())
}

/// A container of the host's own files, to be run by an OCI runtime.
fn bundle(folder: &Path) -> Result<PathBuf> {
    let bundle = folder.join("bundle");
    fs::create_dir_all(bundle.join("root"))?;
    let proc = r#"{"destination":"/proc","type":"proc","source":"proc"}"#.to_owned();
    let mounts: Vec<String> = ["/bin", "/lib", "/lib64", "/usr"]
        .iter()
        .filter(|path| Path::new(path).exists())
        .map(|path| format!(r#"{{"destination":"{path}","source":"{path}","options":["rbind","ro"]}}"#))
        .chain([proc])
        .collect();
    let config = format!(
        r#"{{"ociVersion":"1.0.0","root":{{"path":"root"}},"mounts":[{}],"process":{{"terminal":false,"cwd":"/",
"user":{{"uid":0,"gid":0}},"env":["PATH=/bin:/usr/bin"],"args":["/bin/echo","hello"]}},
"linux":{{"namespaces":[{{"type":"pid"}},{{"type":"mount"}},{{"type":"ipc"}},{{"type":"uts"}}]}}}}"#,
        mounts.join(",")
    );
    fs::write(bundle.join("config.json"), config)?;
    Ok(bundle)
}
