//! What an ephemeral container sees of the container that it looks into, beside its volumes and its environment (EPH-04).
//!
//! Files, as far as there is such a thing for a guest: `/proc/1` is the target's process, there while it runs, and
//! `/var/log/containers/NAME.log` is its output as it is written, in the form that a node of Kubernetes has it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use husk_engine::{Line, Mount};
use jiff::Timestamp;

use crate::logs::Output;
use crate::process::Process;

/// A longer file is begun anew, with the lines that the node still has.
const MOST_BYTES: u64 = 8 << 20;
/// So many lines are written at once.
const BATCH: usize = 1000;
/// A kernel keeps no more of a name.
const LONGEST_COMMAND: usize = 15;

/// The files of one ephemeral container. They go when this is dropped.
#[derive(Debug)]
pub(crate) struct TargetView {
    folder: PathBuf,
    target: String,
    process: Process,
    output: Output,
}

/// What is to be brought up to date.
enum News {
    /// These lines came.
    Lines(Vec<Line>),
    /// The process has begun or ended.
    Process,
}

impl TargetView {
    /// Makes the files in a folder of the pod.
    pub(crate) fn make(folder: PathBuf, target: &str, process: Process, output: Output) -> io::Result<Self> {
        let view = Self { folder, target: target.to_owned(), process, output };
        // What a crash of the node left is no longer so.
        match fs::remove_dir_all(&view.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir_all(view.proc())?;
        fs::create_dir_all(view.logs())?;
        view.begin_log(&[])?;
        view.show_process()?;
        Ok(view)
    }

    /// Where the container sees them, but for places that it has something else in.
    pub(crate) fn mounts(&self, others: &[Mount]) -> Vec<Mount> {
        let places = [(self.proc(), "/proc"), (self.logs(), "/var/log/containers")];
        let is_free = |place: &str| others.iter().all(|mount| !Path::new(place).starts_with(&mount.guest));
        places
            .into_iter()
            .filter(|(_, place)| is_free(place))
            .map(|(path, place)| Mount::new(path, place, true))
            .collect()
    }

    /// Keeps them up to date for as long as it is asked to.
    pub(crate) async fn keep(self) {
        let mut lines = self.output.log.follow();
        let mut instances = self.output.instances.subscribe();
        instances.mark_changed();
        let mut is_closed = false;
        let view = std::sync::Arc::new(self);
        loop {
            let news = tokio::select! {
                line = lines.next(), if !is_closed => {
                    is_closed = line.is_none();
                    let mut batch = Vec::from_iter(line);
                    while batch.len() < BATCH
                        && let Ok(Some(line)) = tokio::time::timeout(Duration::ZERO, lines.next()).await
                    {
                        batch.push(line);
                    }
                    News::Lines(batch)
                }
                changed = instances.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // The next instance opens it again.
                    is_closed = false;
                    News::Process
                }
            };
            let view = view.clone();
            let done =
                tokio::task::spawn_blocking(move || view.write(&news).map_err(|error| (error, view.folder.clone())));
            if let Ok(Err((error, folder))) = done.await {
                tracing::debug!(folder = %folder.display(), %error, "a debugger's view of its target");
            }
        }
    }

    fn write(&self, news: &News) -> io::Result<()> {
        match news {
            News::Lines(lines) => self.append(lines),
            News::Process => self.show_process(),
        }
    }

    fn proc(&self) -> PathBuf {
        self.folder.join("proc")
    }

    fn logs(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn log(&self) -> PathBuf {
        self.logs().join(format!("{}.log", self.target))
    }

    /// The process is there if it runs.
    fn show_process(&self) -> io::Result<()> {
        let folder = self.proc().join("1");
        let runs = self.output.instances.borrow().running().is_some();
        match (runs, folder.exists()) {
            (true, false) => self.write_process(&folder),
            (false, true) => fs::remove_dir_all(folder),
            _ => Ok(()),
        }
    }

    fn write_process(&self, folder: &Path) -> io::Result<()> {
        let Process { command, args, env } = &self.process;
        let words: Vec<&str> = command.iter().chain(args).map(String::as_str).collect();
        let words = if words.is_empty() { vec![self.target.as_str()] } else { words };
        let name = words[0].rsplit('/').next().unwrap_or_default();
        let name: String = name.chars().take(LONGEST_COMMAND).collect();
        let ended = |texts: &mut dyn Iterator<Item = String>| texts.fold(String::new(), |all, text| all + &text + "\0");
        let unready = folder.with_extension("new");
        fs::create_dir_all(&unready)?;
        fs::write(unready.join("cmdline"), ended(&mut words.iter().map(|word| (*word).to_owned())))?;
        fs::write(unready.join("environ"), ended(&mut env.iter().map(|(name, value)| format!("{name}={value}"))))?;
        fs::write(unready.join("comm"), format!("{name}\n"))?;
        fs::write(unready.join("status"), format!("Name:\t{name}\nState:\tR (running)\nPid:\t1\nPPid:\t0\n"))?;
        // Who sees it sees all of it.
        fs::rename(unready, folder)
    }

    fn append(&self, lines: &[Line]) -> io::Result<()> {
        let mut file = File::options().append(true).open(self.log())?;
        if file.metadata()?.len() > MOST_BYTES {
            let last = lines.last().map_or(0, |line| line.seq);
            let known: Vec<Line> = self.output.log.lines().into_iter().filter(|line| line.seq <= last).collect();
            return self.begin_log(&known);
        }
        file.write_all(written(lines).as_bytes())
    }

    fn begin_log(&self, lines: &[Line]) -> io::Result<()> {
        fs::write(self.log(), written(lines))
    }
}

impl Drop for TargetView {
    fn drop(&mut self) {
        // What is left goes with the pod.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// As container runtimes write logs: time, stream, whether the line ends here, text.
fn written(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let time = Timestamp::try_from(line.time).unwrap_or(Timestamp::UNIX_EPOCH);
        let tag = if line.partial { 'P' } else { 'F' };
        // A String takes everything.
        let _ = writeln!(text, "{time} {} {tag} {}", line.stream.name(), line.text);
    }
    text
}
