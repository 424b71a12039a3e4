//! Reading the files of an image: bounded, regular files only, and what is no Wasm is called by what it is.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::{ImageError, unreadable};

/// Bytes of a module. It is read into memory, and compiling takes a multiple of its size.
pub(super) const MAX_MODULE: u64 = 256 << 20;

/// Reads a module; its text form is turned into the binary one.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let bytes = read_bounded(path, MAX_MODULE)?;
    if bytes.starts_with(MAGIC) {
        look_for_truncation(path, &bytes)?;
        return Ok(bytes);
    }
    let is_text =
        path.extension().is_some_and(|extension| extension == "wat") || bytes.trim_ascii_start().starts_with(b"(");
    if !is_text {
        return Err(ImageError::NotWasm { path: path.to_path_buf(), found: describe(&bytes) });
    }
    let text = wat::parse_bytes(&bytes)
        .map_err(|error| ImageError::Text { path: path.to_path_buf(), detail: text_mistake(&error.to_string()) })?;
    Ok(text.into_owned())
}

/// Reads a regular file. Others may have no end, wait for somebody to write, or do something when they are opened.
pub(super) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ImageError> {
    let failed = |error| unreadable(path, error);
    let regular = |metadata: &fs::Metadata| match special(metadata.file_type()) {
        Some(kind) => Err(ImageError::NotAFile { path: path.to_path_buf(), kind }),
        None => Ok(()),
    };
    fs::metadata(path).map_err(failed).and_then(|metadata| regular(&metadata))?;
    let file = open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    // The name may mean something else by now.
    regular(&metadata)?;
    let mut bytes = Vec::new();
    if metadata.len() <= limit {
        // Bounded again: it may grow meanwhile.
        file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    if metadata.len().max(bytes.len() as u64) > limit {
        return Err(ImageError::TooBig { path: path.to_path_buf(), limit });
    }
    Ok(bytes)
}

/// Opens a file for reading without waiting for anybody, should it have become a pipe.
fn open(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Whether a regular file is a module, by its name or its first bytes.
pub(super) fn is_module(path: &Path) -> bool {
    if path.extension().is_some_and(|extension| extension == "wasm" || extension == "wat") {
        return true;
    }
    let mut magic = [0; 4];
    open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic == MAGIC)
}

/// What it is, if it isn't a regular file.
fn special(kind: fs::FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_dir(), "directory"),
        (kind.is_fifo(), "pipe"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device() || kind.is_block_device(), "device"),
    ];
    kinds.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
}

/// The mistake and its place in one line, of a message with the piece of text below it.
fn text_mistake(message: &str) -> String {
    let mut lines = message.lines();
    let mistake = lines.next().unwrap_or_default();
    let mut place =
        lines.find_map(|line| line.trim_start().strip_prefix("-->")).into_iter().flat_map(|at| at.rsplit(':'));
    match (place.next(), place.next()) {
        (Some(column), Some(line)) => format!("line {line}, column {column}: {mistake}"),
        _ => mistake.to_string(),
    }
}

const MAGIC: &[u8] = b"\0asm";

/// What a file is that is no Wasm, for the message.
fn describe(bytes: &[u8]) -> String {
    match bytes {
        [] => "it is empty".into(),
        [0x7f, b'E', b'L', b'F', ..] => "it is a program or precompiled code in ELF format".into(),
        [b'#', b'!', ..] => "it is a script".into(),
        [0x1f, 0x8b, ..] => "it is compressed with gzip".into(),
        [0, ..] if MAGIC.starts_with(bytes) => "it ends in the middle of the magic number".into(),
        _ => {
            let mut found = String::from("it begins with the bytes");
            for byte in bytes.iter().take(4) {
                let _ = write!(found, " {byte:02x}");
            }
            found + ", Wasm begins with 00 61 73 6d"
        }
    }
}

/// Walks the sections, which modules and components have in the same form, so that a file that is cut off is called so.
fn look_for_truncation(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    let truncated = |detail: String| ImageError::Truncated { path: path.to_path_buf(), detail };
    if bytes.len() < 8 {
        return Err(truncated(format!("it ends after {} bytes, within the header", bytes.len())));
    }
    let mut at = 8;
    while at < bytes.len() {
        let section = at;
        at += 1;
        let size = leb128(bytes, &mut at)
            .ok_or_else(|| truncated(format!("it ends within the header of the section at byte {section}")))?;
        let left = bytes.len() - at;
        if size > left {
            return Err(truncated(format!(
                "the section at byte {section} is {size} bytes long, the file has {left} left"
            )));
        }
        at += size;
    }
    Ok(())
}

/// An unsigned LEB128 number of at most 32 bits; none at the end of the file. One that is malformed is left to the validator.
fn leb128(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0usize;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    Some(0)
}
