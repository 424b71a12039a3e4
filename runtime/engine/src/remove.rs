//! Removing what guests have written. They choose how deep it is: a removal that calls itself for each folder below, as that of the
//! standard library, ends for want of open files or of stack.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

/// Folders that are looked into below each other; what is deeper is moved up first.
const DEEP: usize = 32;
/// So often it is looked again for what somebody else still makes there.
const MOST_ROUNDS: u32 = 8;

/// A folder, and no link that a guest put in its place.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a folder with all that is in it, however deep. Links are removed and not followed. What can't be removed keeps nothing else
/// from it; the error is the first one.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    remove_tree_in(CWD, folder)
}

/// The same of a folder in one that is open.
pub fn remove_tree_in(place: impl AsFd, folder: &Path) -> io::Result<()> {
    let top = open(&place, folder)?;
    remove(top.as_fd(), || rustix::fs::unlinkat(&place, folder, AtFlags::REMOVEDIR))
}

/// Removes what is in a folder, and then itself, with `unlink`.
fn remove(top: BorrowedFd<'_>, mut unlink: impl FnMut() -> Result<(), Errno>) -> io::Result<()> {
    let mut removal = Removal { top, moved: 0, removed: 0, error: None };
    let mut rounds = 0;
    loop {
        let moved = removal.moved;
        (removal.removed, removal.error) = (0, None);
        removal.clear(top, 1);
        // Each time something is moved up there is less below.
        rounds += u32::from(removal.moved == moved);
        match unlink() {
            Ok(()) => return Ok(()),
            // There is what was moved up, or what somebody else still makes.
            Err(Errno::NOTEMPTY | Errno::EXIST) if removal.removed > 0 && rounds < MOST_ROUNDS => {}
            Err(error) => return Err(removal.error.unwrap_or(error).into()),
        }
    }
}

/// A folder of the engine's own, which goes with all that guests have put into it when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one with a name that begins so.
    pub(crate) fn new(prefix: &str, place: &Path) -> io::Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix(prefix).tempdir_in(place)?.keep()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.0.display(), %error, "can't remove what a container has left");
        }
    }
}

struct Removal<'a> {
    top: BorrowedFd<'a>,
    /// Folders that were moved up, which names them.
    moved: u64,
    /// What this round has removed or moved.
    removed: u64,
    /// The first of this round.
    error: Option<Errno>,
}

impl Removal<'_> {
    /// Removes what is in a folder.
    fn clear(&mut self, folder: BorrowedFd<'_>, depth: usize) {
        let entries = match Dir::read_from(folder) {
            Ok(entries) => entries,
            Err(error) => return self.failed(error),
        };
        for entry in entries {
            let done = entry.and_then(|entry| match entry.file_name() {
                name if [c".", c".."].contains(&name) => Ok(()),
                name => self.remove(folder, name, depth),
            });
            if let Err(error) = done {
                self.failed(error);
            }
        }
    }

    fn remove(&mut self, folder: BorrowedFd<'_>, name: &CStr, depth: usize) -> Result<(), Errno> {
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(Errno::NOENT) => return Ok(()),
            done => return done.map(|()| self.removed += 1),
        }
        if depth == DEEP {
            self.moved += 1;
            rustix::fs::renameat(folder, name, self.top, format!("deep-{}", self.moved))?;
        } else {
            let below = open(folder, name)?;
            self.clear(below.as_fd(), depth + 1);
            drop(below);
            rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?;
        }
        self.removed += 1;
        Ok(())
    }

    fn failed(&mut self, error: Errno) {
        self.error.get_or_insert(error);
    }
}

fn open(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, FOLDER, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn however_deep_it_is_nothing_is_left_and_links_are_not_followed() {
        let place = tempfile::tempdir().expect("a folder");
        let (tree, outside) = (place.path().join("tree"), place.path().join("outside"));
        fs::create_dir_all(tree.join("deep-1/x")).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("kept"), "k").expect("written");
        symlink("../outside", tree.join("link")).expect("linked");
        let mut folder = open(CWD, &tree).expect("open");
        // So deep that a removal that calls itself can't have all of them open.
        for _ in 0..5000 {
            for name in [c"deeper", c"empty"] {
                rustix::fs::mkdirat(&folder, name, Mode::RWXU).expect("made");
            }
            rustix::fs::symlinkat(c"/", &folder, c"up").expect("linked");
            folder = open(&folder, c"deeper").expect("open");
        }
        remove_tree(&tree).expect("removed");
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).expect("kept"), "k");
        assert_eq!(remove_tree(&tree).expect_err("gone").kind(), io::ErrorKind::NotFound);
    }
    #[test]
    fn it_gives_up_where_files_are_made_faster_than_they_are_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let top = open(CWD, place.path()).expect("open");
        let mut made = 0;
        let mut unlink = || {
            made += 1;
            assert!(made < 100, "it goes on for ever");
            fs::write(place.path().join("new"), "").expect("written");
            rustix::fs::unlinkat(CWD, place.path(), AtFlags::REMOVEDIR)
        };
        assert_eq!(
            remove(top.as_fd(), &mut unlink).expect_err("it is not empty").kind(),
            io::ErrorKind::DirectoryNotEmpty
        );
        // Once nobody does so any more all of it goes.
        remove_tree(place.path()).expect("removed");
    }
}
