//! What a file descriptor of the shell stands for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::rc::Rc;

/// Where bytes come from or go to. Clones share the position, as duplicated descriptors do.
#[derive(Clone)]
pub(crate) enum Stream {
    /// Nothing to read; what is written is gone.
    Null,
    /// The container's input.
    Stdin,
    /// The container's output.
    Stdout,
    /// The container's error output.
    Stderr,
    /// A file opened for reading.
    Input(Rc<RefCell<BufReader<File>>>),
    /// A file opened for writing.
    Output(Rc<File>),
    /// The data of a pipeline's stage before this one, or of a here-document.
    Source(Rc<RefCell<Data>>),
    /// Output that is kept for a pipeline's next stage or a command substitution.
    Sink(Rc<RefCell<Vec<u8>>>),
    /// A stage that takes each line as it comes.
    Live(Rc<dyn LineSink>),
}

/// Bytes to read.
pub(crate) struct Data {
    bytes: Cursor<Vec<u8>>,
    was_read_to_end: bool,
}

impl Data {
    fn noting_the_end(&mut self, read: impl FnOnce(&mut Cursor<Vec<u8>>) -> io::Result<usize>) -> io::Result<usize> {
        let count = read(&mut self.bytes)?;
        self.was_read_to_end |= count == 0;
        Ok(count)
    }
}

/// What takes lines as they are written.
pub(crate) trait LineSink {
    /// Takes bytes, which need not be whole lines.
    fn take(&self, bytes: &[u8]) -> io::Result<()>;
}

impl Stream {
    /// A stream that reads these bytes.
    pub(crate) fn source(bytes: Vec<u8>) -> Stream {
        Stream::Source(Rc::new(RefCell::new(Data { bytes: Cursor::new(bytes), was_read_to_end: false })))
    }

    /// Whether a reader of a source has been told that there is no more.
    pub(crate) fn was_read_to_end(&self) -> bool {
        matches!(self, Stream::Source(data) if data.borrow().was_read_to_end)
    }

    /// Reads one line with its line end; an empty answer is the end of the data.
    pub(crate) fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        match self {
            Stream::Stdin => io::stdin().lock().read_until(b'\n', &mut line)?,
            Stream::Input(file) => file.borrow_mut().read_until(b'\n', &mut line)?,
            Stream::Source(data) => data.borrow_mut().noting_the_end(|bytes| bytes.read_until(b'\n', &mut line))?,
            Stream::Null => 0,
            Stream::Stdout | Stream::Stderr | Stream::Output(_) | Stream::Sink(_) | Stream::Live(_) => {
                return Err(not_open_for("reading"));
            }
        };
        Ok(line)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Stdin => io::stdin().lock().read(buffer),
            Stream::Input(file) => file.borrow_mut().read(buffer),
            Stream::Source(data) => data.borrow_mut().noting_the_end(|bytes| bytes.read(buffer)),
            Stream::Null => Ok(0),
            Stream::Stdout | Stream::Stderr | Stream::Output(_) | Stream::Sink(_) | Stream::Live(_) => {
                Err(not_open_for("reading"))
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Stdout => io::stdout().write(bytes),
            Stream::Stderr => io::stderr().write(bytes),
            Stream::Output(file) => (&**file).write(bytes),
            Stream::Sink(sink) => sink.borrow_mut().write(bytes),
            Stream::Live(sink) => sink.take(bytes).map(|()| bytes.len()),
            Stream::Null => Ok(bytes.len()),
            Stream::Stdin | Stream::Input(_) | Stream::Source(_) => Err(not_open_for("writing")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Stdout => io::stdout().flush(),
            Stream::Stderr => io::stderr().flush(),
            _ => Ok(()),
        }
    }
}

fn not_open_for(what: &str) -> io::Error {
    io::Error::other(format!("bad file descriptor: not open for {what}"))
}

/// The open descriptors, by number.
#[derive(Clone)]
pub(crate) struct Descriptors(BTreeMap<i32, Stream>);

impl Descriptors {
    /// The three that a container starts with.
    pub(crate) fn standard() -> Descriptors {
        Descriptors(BTreeMap::from([(0, Stream::Stdin), (1, Stream::Stdout), (2, Stream::Stderr)]))
    }

    /// What `number` stands for; a closed one reads and writes nothing.
    pub(crate) fn stream(&self, number: i32) -> Stream {
        self.0.get(&number).cloned().unwrap_or(Stream::Null)
    }

    pub(crate) fn is_open(&self, number: i32) -> bool {
        self.0.contains_key(&number)
    }

    pub(crate) fn open(&mut self, number: i32, stream: Stream) {
        self.0.insert(number, stream);
    }

    pub(crate) fn close(&mut self, number: i32) {
        self.0.remove(&number);
    }
}
