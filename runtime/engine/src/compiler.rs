//! Compiling in a process of its own, which has bounds: a module can be made so that it takes the compiler hours or all memory, and no
//! thread that compiles can be stopped (TERM-04).
//!
//! The module comes in by standard input, its code goes out by standard output, and what is wrong with it by standard error.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, Rlimit, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::engine::{EngineConfig, Metering, wasmtime_config};
use crate::image::{ImageError, ModuleFile};
use crate::split;
use crate::threads::NICE;

/// How modules are compiled in processes of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// The program that does so: it gives the word that follows its arguments to [`compile_as_told`].
    pub program: PathBuf,
    /// Its arguments before that.
    pub arguments: Vec<OsString>,
    /// Bytes of memory that one module may take.
    pub memory: u64,
    /// Time of a processor that one module may take.
    pub time: Duration,
}

/// What one process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    memory: u64,
    seconds: u64,
    metering: Metering,
    stack: usize,
    memory_reservation: Option<u64>,
}

/// The module is not valid.
const INVALID: u8 = 1;
/// There was no memory for it.
const NO_MEMORY: u8 = 2;
/// Neither, but it can't be compiled now.
const FAILED: u8 = 3;

/// Bytes of code of one module.
const MAX_CODE: u64 = 1 << 30;
/// Bytes that are read of what a process says.
const MAX_WORDS: u64 = 16 << 10;

impl Job {
    fn to_word(self) -> String {
        let Self { memory, seconds, metering, stack, memory_reservation } = self;
        let reservation = memory_reservation.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
        format!("{memory},{seconds},{metering:?},{stack},{reservation}")
    }

    fn of_word(word: &str) -> Option<Self> {
        let parts: Vec<&str> = word.split(',').collect();
        let &[memory, seconds, metering, stack, reservation] = parts.as_slice() else { return None };
        let memory_reservation = if reservation == "-" { None } else { Some(reservation.parse().ok()?) };
        Some(Self {
            memory: memory.parse().ok()?,
            seconds: seconds.parse().ok()?,
            metering: [Metering::Fuel, Metering::Epochs].into_iter().find(|known| format!("{known:?}") == metering)?,
            stack: stack.parse().ok()?,
            memory_reservation,
        })
    }

    /// What follows is bounded, less important than what else the node does, and ends with who ordered it.
    fn bound_this_process(&self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // As guests, which it would starve beside otherwise.
        let _ = rustix::process::nice(NICE);
        // Where there is too little memory it is this that goes, before any pod and the agent.
        let _ = fs::write("/proc/self/oom_score_adj", "1000");
        let bounds = [
            (Resource::Data, self.memory, self.memory),
            (Resource::Fsize, MAX_CODE, MAX_CODE),
            // First a signal that says what it is for.
            (Resource::Cpu, self.seconds, self.seconds + 1),
            (Resource::Core, 0, 0),
        ];
        for (resource, current, maximum) in bounds {
            let before = rustix::process::getrlimit(resource);
            let lower = |bound: u64, before: Option<u64>| Some(before.map_or(bound, |before| before.min(bound)));
            let limit = Rlimit { current: lower(current, before.maximum), maximum: lower(maximum, before.maximum) };
            rustix::process::setrlimit(resource, limit)?;
        }
        Ok(())
    }
}

/// Compiles the module of standard input as this word says, within its bounds. What a program does that is started as a [`Compiler`].
#[must_use = "it is how the process ends"]
pub fn compile_as_told(word: &str) -> ExitCode {
    let (code, words) = match Job::of_word(word) {
        None => (FAILED, "it is started by an agent, to compile a module; use `husk run` or `husk check`".to_owned()),
        Some(job) => match compile(&job) {
            Ok(()) => return ExitCode::SUCCESS,
            Err((code, words)) => (code, words),
        },
    };
    let _ = io::stderr().write_all(words.as_bytes());
    ExitCode::from(code)
}

fn compile(job: &Job) -> Result<(), (u8, String)> {
    let failed = |error: io::Error| (FAILED, error.to_string());
    job.bound_this_process().map_err(failed)?;
    let mut module = Vec::new();
    io::stdin().lock().read_to_end(&mut module).map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => (NO_MEMORY, error.to_string()),
        _ => failed(error),
    })?;
    let Job { metering, stack, memory_reservation, .. } = *job;
    let config = EngineConfig { metering, stack, memory_reservation, ..EngineConfig::default() };
    let engine = wasmtime::Engine::new(&wasmtime_config(&config)).map_err(|error| (FAILED, format!("{error:#}")))?;
    let code = precompiled(&engine, &module).map_err(|error| {
        (if error.is::<wasmtime::OutOfMemory>() { NO_MEMORY } else { INVALID }, error.root_cause().to_string())
    })?;
    let mut out = io::stdout().lock();
    out.write_all(&code).and_then(|()| out.flush()).map_err(failed)
}

/// The code of a module or component, as [`wasmtime::Engine::precompile_module`] gives it.
pub(crate) fn precompiled(engine: &wasmtime::Engine, binary: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let of = |binary: &[u8]| match split::is_component(binary) {
        true => engine.precompile_component(binary),
        false => engine.precompile_module(binary),
    };
    // What is wrong is said of what is in the file.
    let or_its_own = |error| of(binary).err().unwrap_or(error);
    match split::split(binary) {
        Ok(None) => of(binary),
        Ok(Some(pieces)) => of(&pieces).map_err(or_its_own),
        Err(error) => Err(or_its_own(error.into())),
    }
}

impl Compiler {
    /// Has a module compiled, and returns a file with its code. Whoever gives this up ends the process.
    pub(crate) async fn compile(
        &self,
        config: &CodeConfig,
        module: &ModuleFile,
        bytes: Vec<u8>,
    ) -> Result<File, ImageError> {
        let cannot = |error: io::Error| ImageError::compiler(module, &error);
        // In memory: whether there is room for it on the disk is another question.
        let code = memfd_create("code", MemfdFlags::CLOEXEC).map(File::from).map_err(|error| cannot(error.into()))?;
        let job = Job {
            memory: self.memory,
            seconds: self.time.as_secs().max(1),
            metering: config.metering,
            stack: config.stack,
            memory_reservation: config.memory_reservation,
        };
        let mut process = Command::new(&self.program)
            .args(&self.arguments)
            .arg(job.to_word())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(code.try_clone().map_err(cannot)?)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let (stdin, stderr) = (process.stdin.take(), process.stderr.take());
        let give = async move {
            // One that ended before it had read everything says why.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(&bytes).await;
            }
        };
        let hear = async move {
            let mut words = Vec::new();
            if let Some(stderr) = stderr {
                let _ = stderr.take(MAX_WORDS).read_to_end(&mut words).await;
            }
            String::from_utf8_lossy(&words).trim().to_owned()
        };
        let ((), words) = tokio::join!(give, hear);
        let status = process.wait().await.map_err(cannot)?;
        if status.success() { Ok(code) } else { Err(self.why(status, words, job, module)) }
    }

    fn why(&self, status: ExitStatus, words: String, job: Job, module: &ModuleFile) -> ImageError {
        let path = module.path.clone();
        let signal = status.signal().and_then(Signal::from_named_raw);
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        // Where memory can't be had Rust's library says the one and ends the process, and wasmtime the other.
        let has_no_memory = ["memory allocation of", "out-of-memory"].iter().any(|said| words.contains(said));
        let most = match (code, signal) {
            (Some(INVALID), _) => return ImageError::Invalid { path, detail: words },
            (Some(FAILED), _) => return ImageError::Compiler { path, detail: words },
            (Some(NO_MEMORY), _) => format!("{} bytes of memory", job.memory),
            _ if has_no_memory => format!("{} bytes of memory", job.memory),
            (_, Some(Signal::XCPU)) => format!("{} s of a processor", job.seconds),
            (_, Some(Signal::XFSZ)) => format!("{MAX_CODE} bytes of code"),
            (_, Some(Signal::KILL)) => {
                let detail = "the system has ended the compiler, most likely because it has too little memory".into();
                return ImageError::Compiler { path, detail };
            }
            _ => return ImageError::Compiler { path, detail: format!("the compiler ended with {status}: {words}") },
        };
        ImageError::TooCostly { path, most }
    }
}

/// What code is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeConfig {
    pub(crate) metering: Metering,
    pub(crate) stack: usize,
    pub(crate) memory_reservation: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_in_one_word() {
        for (metering, memory_reservation) in [(Metering::Fuel, None), (Metering::Epochs, Some(1 << 20))] {
            let job = Job { memory: 1 << 30, seconds: 300, metering, stack: 1 << 19, memory_reservation };
            assert_eq!(Job::of_word(&job.to_word()), Some(job));
        }
        for word in ["", "1,2,Fuel,5", "1,2,Fuel,5,6,7", "1,2,Air,5,6", "a,2,Fuel,5,6", "1,2,Fuel,5,x"] {
            assert_eq!(Job::of_word(word), None, "{word}");
        }
    }
}
