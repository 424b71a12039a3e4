//! Ways into a volume. Guests write to volumes while the node looks, so every step stays inside, whatever links and `..` they put in
//! its way: links are followed as long as they lead to something in the same volume, and an attempt to leave it is an error.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _, PermissionsExt as _};
use rustix::fs::{Mode, OFlags};

use crate::users::VolumeOwner;

/// Bytes of a file that is read as text.
const MAX_TEXT: u64 = 1 << 20;

/// A folder that is there, and no link that a guest put in its place.
const MADE: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder or file inside a volume, held open. A folder is made if nothing is there and `maker` says whose it is to be: it is as open
/// as the volume itself.
pub(super) fn open(volume: &Path, path: &str, maker: Option<VolumeOwner>) -> io::Result<OwnedFd> {
    let path = Path::new(path);
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(io::Error::other("it must be a relative path without `..`"));
    }
    let root = Dir::open_ambient_dir(volume, ambient_authority())?;
    let only_path = i32::try_from(OFlags::PATH.bits()).map_err(io::Error::other)?;
    let open = || root.open_with(path, OpenOptions::new().read(true).custom_flags(only_path)).map(OwnedFd::from);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match maker {
            Some(owner) => {
                make(&root, path, owner)?;
                open()
            }
            None => Err(io::Error::other("there is no such file")),
        },
        opened => opened,
    }
}

/// Makes a folder and those above it.
fn make(root: &Dir, path: &Path, owner: VolumeOwner) -> io::Result<()> {
    let mode = root.dir_metadata()?.permissions().mode() & 0o7777;
    let mut below = PathBuf::new();
    for part in path.components() {
        below.push(part);
        match root.create_dir(&below) {
            Ok(()) => {
                let above =
                    root.open_dir(below.parent().filter(|above| *above != Path::new("")).unwrap_or(Path::new(".")))?;
                let made = rustix::fs::openat(&above, part.as_os_str(), MADE, Mode::empty())?;
                owner.give_open(&made)?;
                rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Text of a file inside a volume.
pub(super) fn read_text(volume: &Path, path: &str) -> Option<String> {
    let root = Dir::open_ambient_dir(volume, ambient_authority()).ok()?;
    // Opening what isn't a file must not wait for anything.
    let no_wait = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = root.open_with(path, OpenOptions::new().read(true).custom_flags(no_wait)).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MAX_TEXT {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_TEXT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn place(open: &OwnedFd) -> PathBuf {
        fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).expect("open")
    }

    #[test]
    fn links_are_followed_inside_and_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (volume, outside) = (folder.path().join("v"), folder.path().join("outside"));
        fs::create_dir_all(volume.join("real/deep")).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("secret"), "s").expect("written");
        symlink("real", volume.join("link")).expect("linked");
        symlink("../outside", volume.join("out")).expect("linked");
        symlink(&outside, volume.join("absolute")).expect("linked");
        symlink("loop", volume.join("loop")).expect("linked");
        assert_eq!(
            place(&open(&volume, "link/deep", Some(VolumeOwner::default())).expect("inside")),
            volume.join("real/deep")
        );
        assert_eq!(
            place(&open(&volume, "link/new/er", Some(VolumeOwner::default())).expect("made")),
            volume.join("real/new/er")
        );
        for path in ["out", "out/new", "absolute", "absolute/new", "loop", "../outside", "/", "real/../../outside", ""]
        {
            let opened = open(&volume, path, Some(VolumeOwner::default()));
            assert!(opened.is_err() || place(&opened.expect("open")).starts_with(&volume), "{path}");
        }
        assert!(open(&volume, "none", None).is_err() && !volume.join("none").exists());
        assert_eq!(fs::read_dir(&outside).expect("there").count(), 1);
        assert_eq!(read_text(&volume, "out/secret"), None);
        assert_eq!(read_text(&volume, "../outside/secret"), None);
        fs::hard_link(outside.join("secret"), volume.join("hard")).expect("by the host");
        assert_eq!(read_text(&volume, "hard").as_deref(), Some("s"), "it is a file of the volume as well");
    }

    #[test]
    fn a_guest_that_swaps_folders_and_links_leads_nobody_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let (volume, outside) = (folder.path().join("v"), folder.path().join("outside"));
        fs::create_dir_all(volume.join("real/b")).expect("made");
        fs::create_dir_all(outside.join("b")).expect("made");
        fs::write(outside.join("b/env"), "secret").expect("written");
        fs::write(volume.join("real/b/env"), "own").expect("written");
        symlink("../outside", volume.join("trap")).expect("linked");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // As a guest can: by renames inside the volume.
                let path = |name: &str| volume.join(name);
                while !done.load(Ordering::Relaxed) {
                    for (from, to) in [("real", "a"), ("a", "real"), ("trap", "a"), ("a", "trap")] {
                        let _ = fs::rename(path(from), path(to));
                    }
                }
            });
            for _ in 0..3000 {
                if let Ok(opened) = open(&volume, "a/b/made", Some(VolumeOwner::default())) {
                    assert!(place(&opened).starts_with(&volume), "{:?}", place(&opened));
                }
                let text = read_text(&volume, "a/b/env");
                assert!(text.is_none() || text.as_deref() == Some("own"), "{text:?}");
                let _ = super::super::usage::usage(&volume, u64::MAX);
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(!outside.join("b/made").exists());
    }
}
