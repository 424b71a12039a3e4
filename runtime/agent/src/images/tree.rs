//! The digest of a folder, by which damage to the files of an image is seen.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::digest::Digest;

/// Names, kinds and contents of all that is in a folder, whatever the order on disk.
pub(crate) fn digest(folder: &Path) -> io::Result<Digest> {
    let mut text = Vec::new();
    describe(folder, folder, &mut text)?;
    Ok(Digest::of(&text))
}

fn describe(root: &Path, folder: &Path, text: &mut Vec<u8>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = path.strip_prefix(root).unwrap_or(&path);
        let (mark, content): (u8, Vec<u8>) = match (kind.is_dir(), kind.is_symlink()) {
            (true, _) => (b'd', Vec::new()),
            (_, true) => (b'l', fs::read_link(&path)?.as_os_str().as_bytes().to_vec()),
            _ => (b'f', Digest::of_file(&path)?.hex().into_bytes()),
        };
        text.push(mark);
        for part in [name.as_os_str().as_bytes(), &content] {
            // Hashed, so that no name can look like what follows it.
            text.extend_from_slice(&Sha256::digest(part));
        }
        if kind.is_dir() {
            describe(root, &path, text)?;
        }
    }
    Ok(())
}
