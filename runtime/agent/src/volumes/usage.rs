//! How much a volume takes of its disk (RES-06). Guests write to it meanwhile, choose how wide and how deep it is, and move its folders
//! about: what the walk holds open is bounded whatever they do, and of folders above each other it holds only the names in memory, which
//! is less than each takes itself.

use std::collections::{HashSet, VecDeque};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Statx, StatxFlags};

use super::memory::is_in_memory;

/// Folders that are held open at once. Those above are let go, and found again from below, or else from the top.
const MOST_OPEN: usize = 32;
/// Files with several names that are remembered; beyond them each name counts.
const MOST_LINKED: usize = 1 << 18;
/// Folders that are opened in one walk to find again where it was: seconds.
const MOST_AGAIN: u32 = 1 << 21;

/// What a file in memory takes at least, and each more name of it: a tmpfs counts no bytes for either.
const IN_MEMORY: u64 = 1 << 10;

/// A folder, and no link that a guest put in its place.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a folder takes of its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskUse {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Files, folders and the like.
    pub(crate) inodes: u64,
}

impl DiskUse {
    /// Of a folder with all that is in it, as far as it is there. Takes as long as there are files.
    pub(crate) fn of(folder: &Path) -> Self {
        let Ok(mut walk) = Walk::new(folder) else { return Self::default() };
        while walk.step().is_some() {}
        Self { bytes: walk.bytes, inodes: walk.inodes }
    }
}

impl std::ops::AddAssign for DiskUse {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.inodes = self.inodes.saturating_add(other.inodes);
    }
}

/// Bytes that a volume takes. Links are not followed, and a file with several names counts once. It isn't looked further once they are
/// more than `most`.
pub(super) fn usage(volume: &Path, most: u64) -> io::Result<u64> {
    let mut walk = Walk::new(volume)?;
    while walk.bytes <= most && walk.step().is_some() {}
    Ok(walk.bytes)
}

/// A walk from folder to folder, the deepest first.
struct Walk {
    top: OwnedFd,
    /// The folder where the walk is, and some of those above it.
    open: VecDeque<Folder>,
    /// Those above them.
    left: Vec<Left>,
    /// Files with several names that were counted.
    linked: HashSet<u64>,
    /// What each name counts at least.
    least: u64,
    /// Folders that may be opened to find again where it was.
    again: u32,
    bytes: u64,
    inodes: u64,
}

/// A folder that is being read.
struct Folder {
    name: CString,
    entries: Dir,
    /// Where the next entry is.
    at: i64,
}

/// A folder to come back to.
struct Left {
    /// In the one above it.
    name: CString,
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
        let open = VecDeque::from([Folder::new(&top, c".")?]);
        Ok(Self { top, open, left: Vec::new(), linked: HashSet::new(), least, again: MOST_AGAIN, bytes: 0, inodes: 0 })
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
        self.inodes += u64::from(!is_known);
        if !is_folder {
            return None;
        }
        Folder::new(folder, name).ok()
    }

    fn descend(&mut self, below: Folder) {
        self.open.push_back(below);
        if self.open.len() > MOST_OPEN
            && let Some(highest) = self.open.pop_front()
            && let Ok(number) = highest.number()
        {
            self.left.push(Left { name: highest.name, number, at: highest.at });
        }
    }

    fn ascend(&mut self) {
        let done = self.open.pop_back();
        if !self.open.is_empty() {
            return;
        }
        let (Some(done), Some(above)) = (done, self.left.last()) else { return };
        match above.open_above(&done) {
            Some(folder) => self.open.extend(self.left.pop().and_then(|above| above.read_on(folder))),
            // It was moved away, or removed.
            None => self.descend_again(),
        }
    }

    /// Goes from the top to where the walk was, or as far as all is still in its place: only what is below a folder that was moved is
    /// overlooked, as by everybody who counts.
    fn descend_again(&mut self) {
        let mut found = VecDeque::new();
        let mut depth = 0;
        for left in &self.left {
            let Some(again) = self.again.checked_sub(1) else {
                // Nobody but who wants to keep it from being measured moves so much: it counts as too much.
                self.bytes = u64::MAX;
                return self.left.clear();
            };
            self.again = again;
            let above = found.back().unwrap_or(&self.top);
            let Some(folder) = left.open_in(above) else { break };
            found.push_back(folder);
            depth += 1;
            if found.len() > MOST_OPEN {
                found.pop_front();
            }
        }
        self.left.truncate(depth);
        let found_again = self.left.split_off(depth - found.len());
        self.open = found.into_iter().zip(found_again).filter_map(|(folder, left)| left.read_on(folder)).collect();
    }
}

impl Folder {
    fn new(above: impl AsFd, name: &CStr) -> io::Result<Self> {
        let folder = rustix::fs::openat(above, name, FOLDER, Mode::empty())?;
        Ok(Self { name: name.to_owned(), entries: Dir::new(folder)?, at: 0 })
    }

    fn number(&self) -> io::Result<Number> {
        number(self.entries.fd()?)
    }
}

impl Left {
    /// The same folder again, found from one that is in it.
    fn open_above(&self, below: &Folder) -> Option<OwnedFd> {
        self.open(below.entries.fd().ok()?, c"..")
    }

    /// The same, found in the one above it.
    fn open_in(&self, above: impl AsFd) -> Option<OwnedFd> {
        self.open(above, &self.name)
    }

    /// None if another one is there.
    fn open(&self, from: impl AsFd, name: &CStr) -> Option<OwnedFd> {
        let folder = rustix::fs::openat(from, name, FOLDER, Mode::empty()).ok()?;
        number(&folder).is_ok_and(|number| number == self.number).then_some(folder)
    }

    fn read_on(self, folder: OwnedFd) -> Option<Folder> {
        let mut entries = Dir::new(folder).ok()?;
        entries.seek(self.at).ok()?;
        Some(Folder { name: self.name, entries, at: self.at })
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
    /// A chain of folders with two files beside each of them, in which the walk is at the deepest.
    fn at_the_deepest(volume: &Path) -> Walk {
        let mut folder = volume.to_owned();
        for n in 0..DEEP {
            // Some are read before the folder and some after it, as the disk has it.
            let write = |name: String| fs::write(folder.join(name), vec![7; 64 << 10]).expect("written");
            write(format!("a{n}"));
            fs::create_dir(folder.join("d")).expect("made");
            write(format!("z{n}"));
            folder.push("d");
        }
        let mut walk = Walk::new(volume).expect("begun");
        while walk.left.len() + walk.open.len() <= DEEP {
            walk.step().expect("there is more");
        }
        walk
    }

    const DEEP: usize = 100;

    /// The folder that is so deep in the chain.
    fn chain(volume: &Path, depth: usize) -> std::path::PathBuf {
        volume.join("d/".repeat(depth))
    }

    #[test]
    fn a_folder_that_is_moved_meanwhile_hides_nothing_but_what_is_in_it() {
        // Of the deepest that are held open the highest is moved, from which those above are found; and one far above it as well.
        for (moved, hidden) in
            [(&[DEEP + 1 - MOST_OPEN][..], 0), (&[DEEP + 1 - MOST_OPEN, 40], DEEP + 1 - MOST_OPEN - 40)]
        {
            let place = tempfile::tempdir().expect("a folder");
            let volume = place.path().join("v");
            fs::create_dir(&volume).expect("made");
            let mut walk = at_the_deepest(&volume);
            for depth in moved {
                fs::rename(chain(&volume, *depth), place.path().join(depth.to_string())).expect("moved");
            }
            while walk.step().is_some() {}
            let files = u64::try_from(DEEP - hidden).expect("few") * 2 * FILE;
            assert!(walk.bytes >= files, "{} {files}", walk.bytes);
        }
    }

    #[test]
    fn who_moves_folders_about_without_end_has_too_much() {
        let volume = tempfile::tempdir().expect("a folder");
        let mut walk = at_the_deepest(volume.path());
        walk.again = 10;
        fs::rename(chain(volume.path(), DEEP + 1 - MOST_OPEN), volume.path().join("moved")).expect("moved");
        while walk.step().is_some() {}
        assert_eq!(walk.bytes, u64::MAX);
    }
}
