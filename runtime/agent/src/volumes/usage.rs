//! How much a volume takes of its disk (RES-06). Guests write to it meanwhile, and choose how wide and how deep it is: what the walk
//! holds in memory and open is bounded whatever they do.

use std::collections::{HashSet, VecDeque};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags};

use super::memory::is_in_memory;

/// Folders that are held open at once. Those above are let go, and found again from below.
const MOST_OPEN: usize = 32;
/// Files with several names that are remembered; beyond them each name counts.
const MOST_LINKED: usize = 1 << 18;

/// What a file in memory takes at least, and each more name of it: a tmpfs counts no bytes for either.
const IN_MEMORY: u64 = 1 << 10;

/// A folder, and no link that a guest put in its place.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Bytes that a volume takes. Links are not followed, and a file with several names counts once. It isn't looked further once they are
/// more than `most`.
pub(super) fn usage(volume: &Path, most: u64) -> io::Result<u64> {
    let mut walk = Walk::new(volume)?;
    while walk.bytes <= most && walk.step().is_some() {}
    Ok(walk.bytes)
}

/// A walk from folder to folder, the deepest first.
struct Walk {
    /// The folder where the walk is, and some of those above it.
    open: VecDeque<Folder>,
    /// Those above them.
    left: Vec<Left>,
    /// Files with several names that were counted.
    linked: HashSet<u64>,
    /// What each name counts at least.
    least: u64,
    bytes: u64,
}

/// A folder that is being read.
struct Folder {
    entries: Dir,
    /// Where the next entry is.
    at: i64,
}

/// A folder to come back to.
struct Left {
    /// Which it was.
    number: Number,
    /// Where its next entry is.
    at: i64,
}

/// Device and inode.
type Number = (u32, u32, u64);

impl Walk {
    fn new(volume: &Path) -> io::Result<Self> {
        let top = rustix::fs::openat(CWD, volume, FOLDER, Mode::empty())?;
        let least = if is_in_memory(&top)? { IN_MEMORY } else { 0 };
        let open = VecDeque::from([Folder::new(top)?]);
        Ok(Self { open, left: Vec::new(), linked: HashSet::new(), least, bytes: 0 })
    }

    /// Looks at one entry. None at the end.
    fn step(&mut self) -> Option<()> {
        let folder = self.open.back_mut()?;
        match folder.entries.read() {
            Some(Ok(entry)) => {
                folder.at = entry.offset();
                if let Some(below) = self.count(entry.file_name()) {
                    self.descend(below);
                }
            }
            // What can't be read is not what the rest is to be spared for.
            Some(Err(_)) | None => self.ascend(),
        }
        Some(())
    }

    /// Counts an entry of the folder where the walk is. A folder is returned, to be looked into.
    fn count(&mut self, name: &CStr) -> Option<Folder> {
        if [c".", c".."].contains(&name) {
            return None;
        }
        let folder = self.open.back()?.entries.fd().ok()?;
        // Otherwise it is gone meanwhile.
        let about = about(folder, name).ok()?;
        let is_folder = FileType::from_raw_mode(about.stx_mode.into()) == FileType::Directory;
        let is_known =
            !is_folder && about.stx_nlink > 1 && self.linked.len() < MOST_LINKED && !self.linked.insert(about.stx_ino);
        let bytes = if is_known { 0 } else { about.stx_blocks.saturating_mul(512) };
        self.bytes = self.bytes.saturating_add(bytes.max(self.least));
        if !is_folder {
            return None;
        }
        Folder::new(rustix::fs::openat(folder, name, FOLDER, Mode::empty()).ok()?).ok()
    }

    fn descend(&mut self, below: Folder) {
        self.open.push_back(below);
        if self.open.len() > MOST_OPEN
            && let Some(highest) = self.open.pop_front()
            && let Ok(number) = highest.number()
        {
            self.left.push(Left { number, at: highest.at });
        }
    }

    /// Who moves a folder while it is looked into hides what above it isn't counted yet, as from everybody who counts.
    fn ascend(&mut self) {
        let done = self.open.pop_back();
        if self.open.is_empty()
            && let (Some(done), Some(above)) = (done, self.left.pop())
        {
            self.open.extend(above.from(&done));
        }
    }
}

impl Folder {
    fn new(folder: OwnedFd) -> io::Result<Self> {
        Ok(Self { entries: Dir::new(folder)?, at: 0 })
    }

    fn number(&self) -> io::Result<Number> {
        number(self.entries.fd()?)
    }
}

impl Left {
    /// The same folder again, found from one that is in it.
    fn from(&self, below: &Folder) -> Option<Folder> {
        let folder = rustix::fs::openat(below.entries.fd().ok()?, c"..", FOLDER, Mode::empty()).ok()?;
        let is_same = number(&folder).is_ok_and(|number| number == self.number);
        let mut entries = Dir::new(folder).ok().filter(|_| is_same)?;
        entries.seek(self.at).ok()?;
        Some(Folder { entries, at: self.at })
    }
}

fn number(folder: impl AsFd) -> io::Result<Number> {
    let about = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    Ok((about.stx_dev_major, about.stx_dev_minor, about.stx_ino))
}

fn about(folder: impl AsFd, name: &CStr) -> io::Result<Statx> {
    Ok(rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const FILE: u64 = 64 << 10;

    #[test]
    fn what_a_volume_takes_is_counted_once_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (volume, outside) = (folder.path().join("v"), folder.path().join("outside"));
        fs::create_dir_all(volume.join("a/b")).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("big"), vec![7; 1 << 20]).expect("written");
        symlink("../outside", volume.join("out")).expect("linked");
        let empty = usage(&volume, u64::MAX).expect("measured");
        fs::write(volume.join("a/b/file"), vec![7; 256 << 10]).expect("written");
        fs::hard_link(volume.join("a/b/file"), volume.join("again")).expect("linked");
        let full = usage(&volume, u64::MAX).expect("measured");
        assert!((256 << 10..300 << 10).contains(&(full - empty)), "{empty} {full}");
    }

    #[test]
    fn files_in_memory_that_are_empty_count_as_well() {
        let Ok(volume) = tempfile::tempdir_in("/dev/shm") else { return };
        let is_in_memory = is_in_memory(fs::File::open(volume.path()).expect("open")).expect("looked at");
        for n in 0..100 {
            fs::write(volume.path().join(format!("{n}")), "").expect("written");
            fs::hard_link(volume.path().join("0"), volume.path().join(format!("link-{n}"))).expect("linked");
        }
        assert_eq!(usage(volume.path(), u64::MAX).expect("measured"), if is_in_memory { 200 * IN_MEMORY } else { 0 });
    }

    #[test]
    fn it_is_enough_to_know_that_it_is_too_much() {
        let volume = tempfile::tempdir().expect("a folder");
        for n in 0..100 {
            fs::write(volume.path().join(format!("{n}")), vec![7; 4 << 10]).expect("written");
        }
        assert_eq!(usage(volume.path(), 10 << 10).expect("measured"), 12 << 10);
    }

    #[test]
    fn nothing_is_overlooked_in_many_folders_beside_each_other() {
        let volume = tempfile::tempdir().expect("a folder");
        for n in 0..300 {
            let folder = volume.path().join(format!("{n}/below"));
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("file"), vec![7; 4 << 10]).expect("written");
        }
        let measured = usage(volume.path(), u64::MAX).expect("measured");
        assert!(measured >= 300 * (4 << 10), "{measured}");
    }

    /// Deeper than files may be open, and than a path may be long.
    #[test]
    fn nothing_is_overlooked_in_a_deep_chain_nor_beside_it() {
        let volume = tempfile::tempdir().expect("a folder");
        let mut folder = rustix::fs::openat(CWD, volume.path(), FOLDER, Mode::empty()).expect("open");
        let mut written = 0;
        for level in 0..1500 {
            // What is beside the way is read before or after it, as the disk has it.
            if level % 100 == 0 {
                for name in [c"a", c"z"] {
                    let flags = OFlags::CREATE | OFlags::WRONLY;
                    let file = rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR).expect("made");
                    let bytes = vec![7; usize::try_from(FILE).expect("small")];
                    assert_eq!(rustix::io::write(file, &bytes).expect("written"), bytes.len());
                    written += FILE;
                }
            }
            rustix::fs::mkdirat(&folder, c"deeper", Mode::RWXU).expect("made");
            folder = rustix::fs::openat(&folder, c"deeper", FOLDER, Mode::empty()).expect("open");
        }
        let measured = usage(volume.path(), u64::MAX).expect("measured");
        husk_engine::remove_tree(volume.path()).expect("removed");
        assert!((written..written + 1501 * 4096 + FILE).contains(&measured), "{written} {measured}");
    }
}
