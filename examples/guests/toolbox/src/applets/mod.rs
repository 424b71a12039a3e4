//! The commands beside the shell: each a function of its arguments and its three streams.

mod cut;
mod date;
mod echo;
mod env;
mod files;
mod grep;
mod head;
mod identity;
mod listing;
mod names;
mod net;
mod pattern;
mod sed;
pub(crate) mod sleep;
mod sort;
mod tail;
mod test;
mod text;
mod tr;
mod wget;

use std::io::{self, Read, Write};

use crate::shell::Shell;
use crate::stream::Stream;

/// What an applet works with.
pub(crate) struct Context<'a> {
    /// The arguments, the name first.
    pub(crate) args: &'a [String],
    pub(crate) input: Stream,
    pub(crate) output: Stream,
    pub(crate) shell: &'a mut Shell,
}

impl<'a> Context<'a> {
    /// The arguments without the name.
    fn operands(&self) -> &'a [String] {
        &self.args[1..]
    }

    /// Says what is wrong in the applet's name.
    fn complain(&self, message: impl std::fmt::Display) {
        // Order matters to who reads both: what was written before comes first.
        let _ = self.output.clone().flush();
        let _ = writeln!(self.shell.fds.stream(2), "{}: {message}", self.args[0]);
    }

    /// Everything in a file, or in the input when the name is `-`.
    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, name: &str) -> io::Result<Stream> {
        if matches!(name, "-" | "/dev/stdin") {
            return Ok(self.input.clone());
        }
        if name == "/dev/null" {
            return Ok(Stream::Null);
        }
        let path = self.shell.path(name);
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = std::fs::File::open(path)?;
        Ok(Stream::Input(std::rc::Rc::new(std::cell::RefCell::new(io::BufReader::new(file)))))
    }

    /// Calls `each` with the contents of every file named, or of the input when none is. Status 1 if one can't be read.
    fn for_each_file(
        &mut self,
        names: &[&str],
        mut each: impl FnMut(&mut Context<'_>, &str, Vec<u8>) -> io::Result<()>,
    ) -> Result<i32, Failure> {
        let mut status = 0;
        for name in if names.is_empty() { &["-"] } else { names } {
            match self.read(name) {
                Ok(bytes) => each(self, name, bytes)?,
                Err(error) => {
                    self.complain(format_args!("{name}: {}", plain(&error)));
                    status = 1;
                }
            }
        }
        Ok(status)
    }
}

/// Why an applet fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It says why and ends with this status.
    Message(i32, String),
    /// A signal ended it; the status says which.
    Interrupted(i32),
    /// Nobody reads its output any more.
    Closed,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Message(1, plain(&error)),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(1, message)
    }
}

pub(crate) use crate::shell::plain;

/// How an applet ends.
pub(crate) type Status = Result<i32, Failure>;

/// An applet.
pub(crate) type Applet = fn(&mut Context<'_>) -> Status;

/// All applets, sorted by name. `sh` is the shell itself.
static APPLETS: &[(&str, Applet)] = &[
    ("[", test::run),
    ("basename", names::basename),
    ("cat", text::cat),
    ("cp", files::cp),
    ("cut", cut::run),
    ("date", date::run),
    ("dirname", names::dirname),
    ("echo", echo::echo),
    ("egrep", grep::run),
    ("env", env::env),
    ("false", |_| Ok(1)),
    ("fgrep", grep::run),
    ("grep", grep::run),
    ("head", head::run),
    ("hostname", identity::hostname),
    ("id", identity::id),
    ("kill", builtin),
    ("ls", listing::run),
    ("mkdir", files::mkdir),
    ("mv", files::mv),
    ("nslookup", net::nslookup),
    ("printenv", env::printenv),
    ("printf", echo::printf),
    ("pwd", builtin),
    ("rm", files::rm),
    ("rmdir", files::rmdir),
    ("sed", sed::run),
    ("seq", text::seq),
    ("sleep", sleep::run),
    ("sort", sort::sort),
    ("tail", tail::run),
    ("tee", text::tee),
    ("test", test::run),
    ("touch", files::touch),
    ("tr", tr::run),
    ("true", |_| Ok(0)),
    ("uname", identity::uname),
    ("uniq", sort::uniq),
    ("wc", text::wc),
    ("wget", wget::run),
    ("which", env::which),
    ("whoami", identity::whoami),
];

/// The applet of this name.
pub(crate) fn find(name: &str) -> Option<Applet> {
    APPLETS.binary_search_by_key(&name, |(name, _)| name).ok().map(|index| APPLETS[index].1)
}

/// The names of all applets.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    APPLETS.iter().map(|(name, _)| *name).chain(["sh"])
}

/// What SIGPIPE makes of a process that writes to a pipe without a reader.
pub(crate) const CLOSED: i32 = 141;

/// Runs an applet in the shell and answers with its status.
pub(crate) fn run(applet: Applet, shell: &mut Shell, args: &[String]) -> i32 {
    let (input, output) = (shell.fds.stream(0), shell.fds.stream(1));
    let mut context = Context { args, input, output, shell };
    let outcome = applet(&mut context);
    let flushed = context.output.flush();
    match outcome {
        Ok(status) if flushed.is_ok() => status,
        Ok(status) => status.max(1),
        Err(Failure::Interrupted(status)) => status,
        Err(Failure::Closed) => CLOSED,
        Err(Failure::Message(status, message)) => {
            context.complain(message);
            status
        }
    }
}

/// What is a builtin of the shell as well, called as a program.
fn builtin(context: &mut Context<'_>) -> Status {
    match context.shell.run_words(context.args, false) {
        Ok(status) => Ok(status),
        Err(_) => Err(Failure::Interrupted(context.shell.status)),
    }
}
