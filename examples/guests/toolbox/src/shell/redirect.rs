//! Redirections.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::rc::Rc;

use brush_parser::ast::{IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect};

use super::{Flow, Outcome, Shell};
use crate::stream::Stream;

impl Shell {
    /// Runs `body` with the descriptors that the redirections make, and puts the old ones back.
    pub(super) fn with_redirects<'a>(
        &mut self,
        redirects: impl IntoIterator<Item = &'a IoRedirect>,
        body: impl FnOnce(&mut Shell) -> Outcome,
    ) -> Outcome {
        let mut redirects = redirects.into_iter().peekable();
        if redirects.peek().is_none() {
            let outcome = body(self);
            self.flush();
            return outcome;
        }
        let saved = self.fds.clone();
        let outcome = match self.redirect(redirects) {
            Ok(Ok(())) => body(self),
            Ok(Err(message)) => {
                self.complain(&message);
                Ok(1)
            }
            Err(flow) => Err(flow),
        };
        self.flush();
        self.fds = saved;
        outcome
    }

    /// Changes the descriptors; the inner error is a file that can't be opened.
    pub(super) fn redirect<'a>(
        &mut self,
        redirects: impl IntoIterator<Item = &'a IoRedirect>,
    ) -> Result<Result<(), String>, Flow> {
        for redirect in redirects {
            let done = match redirect {
                IoRedirect::File(number, kind, target) => self.redirect_file(*number, kind, target)?,
                IoRedirect::HereDocument(number, document) => {
                    let text = match document.requires_expansion {
                        true => self.expand_document(&document.doc.value)?,
                        false => document.doc.value.clone(),
                    };
                    self.fds.open(number.unwrap_or(0), Stream::source(text.into_bytes()));
                    Ok(())
                }
                IoRedirect::HereString(number, word) => {
                    let text = self.expand_text(&word.value)?;
                    self.fds.open(number.unwrap_or(0), Stream::source(format!("{text}\n").into_bytes()));
                    Ok(())
                }
                IoRedirect::OutputAndError(word, appends) => {
                    let path = self.expand_text(&word.value)?;
                    let kind = if *appends { Kind::Append } else { Kind::Write };
                    self.open_file(&path, &kind).map(|stream| {
                        self.fds.open(1, stream.clone());
                        self.fds.open(2, stream);
                    })
                }
            };
            if done.is_err() {
                return Ok(done);
            }
        }
        Ok(Ok(()))
    }

    fn redirect_file(&mut self, number: Option<i32>, kind: &Kind, target: &Target) -> Result<Result<(), String>, Flow> {
        let number = number.unwrap_or(match kind {
            Kind::Read | Kind::ReadAndWrite | Kind::DuplicateInput => 0,
            Kind::Write | Kind::Append | Kind::Clobber | Kind::DuplicateOutput => 1,
        });
        let from = match target {
            Target::Filename(word) => {
                let path = self.expand_text(&word.value)?;
                return Ok(self.open_file(&path, kind).map(|stream| self.fds.open(number, stream)));
            }
            Target::Fd(from) => from.to_string(),
            Target::Duplicate(word) => self.expand_text(&word.value)?,
            Target::ProcessSubstitution(..) => return Err(self.fatal("<( ) is bash's, not POSIX'")),
        };
        if from == "-" {
            self.fds.close(number);
            return Ok(Ok(()));
        }
        match from.parse() {
            Ok(from) if self.fds.is_open(from) => {
                self.fds.open(number, self.fds.stream(from));
                Ok(Ok(()))
            }
            _ => Ok(Err(format!("{from}: bad file descriptor"))),
        }
    }

    fn open_file(&self, path: &str, kind: &Kind) -> Result<Stream, String> {
        // A container's files need not include the devices that scripts expect.
        match path {
            "/dev/null" => return Ok(Stream::Null),
            "/dev/stdin" | "/proc/self/fd/0" => return Ok(self.fds.stream(0)),
            "/dev/stdout" | "/proc/self/fd/1" => return Ok(self.fds.stream(1)),
            "/dev/stderr" | "/proc/self/fd/2" => return Ok(self.fds.stream(2)),
            "/proc/1/fd/1" => return Ok(Stream::Stdout),
            "/proc/1/fd/2" => return Ok(Stream::Stderr),
            _ => {}
        }
        let full = self.path(path);
        let opened = match kind {
            Kind::Read | Kind::DuplicateInput => File::open(&full),
            Kind::Write | Kind::Clobber | Kind::DuplicateOutput => File::create(&full),
            Kind::Append => OpenOptions::new().append(true).create(true).open(&full),
            Kind::ReadAndWrite => OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&full),
        };
        let file = opened.map_err(|error| format!("can't open {path}: {}", plain(&error)))?;
        Ok(match kind {
            Kind::Read | Kind::DuplicateInput | Kind::ReadAndWrite => {
                Stream::Input(Rc::new(RefCell::new(BufReader::new(file))))
            }
            Kind::Write | Kind::Clobber | Kind::DuplicateOutput | Kind::Append => Stream::Output(Rc::new(file)),
        })
    }
}

/// An error's text without Rust's `(os error 44)`.
pub(crate) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "Is a directory".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}
