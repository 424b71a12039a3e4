//! Writes the files of a volume so that who reads them sees all of the old ones or all of the new ones.
//!
//! The layout is upstream's, and programs that watch for changes rely on it: the files are in a folder named for the time, `..data`
//! is a link to that folder, and what the user sees are links through `..data`. A change makes a new folder and puts a new link in
//! the place of `..data` by one rename.
//!
//! ```text
//! ..2026_11_30_05_44_45.123456789/   app.yaml, certs/ca.pem
//! ..data -> ..2026_11_30_05_44_45.123456789
//! app.yaml -> ..data/app.yaml
//! certs -> ..data/certs
//! ```

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path};

use super::files::{Collected, File};
use crate::users::VolumeOwner;

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";

/// Makes the folder's files these, if they aren't. Only the node writes there.
pub(super) fn write(folder: &Path, files: &Collected, owner: VolumeOwner) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let old = fs::read_link(folder.join(DATA)).ok().map(OsString::from);
    let wanted = |file: &File| File { mode: mode_for(file.mode, owner), ..file.clone() };
    let files: Collected = files.iter().map(|(path, file)| (path.clone(), wanted(file))).collect();
    if old.as_ref().is_some_and(|old| is_same(&folder.join(old), &files)) {
        link(folder, &files)?;
        return Ok(());
    }
    let name = new_folder(folder)?;
    fill(&folder.join(&name), &files, owner)?;
    let _ = fs::remove_file(folder.join(NEW_DATA));
    symlink(&name, folder.join(NEW_DATA))?;
    fs::rename(folder.join(NEW_DATA), folder.join(DATA))?;
    link(folder, &files)?;
    sweep(folder, &name)
}

/// A group that may use the volume can read what is in it.
fn mode_for(mode: u32, owner: VolumeOwner) -> u32 {
    if owner.has_group() { mode | 0o440 } else { mode }
}

/// Names the folder for the time; two changes at the same time are told apart.
fn new_folder(folder: &Path) -> io::Result<String> {
    loop {
        let name = jiff::Timestamp::now().strftime("..%Y_%m_%d_%H_%M_%S.%9f").to_string();
        match fs::create_dir(folder.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
    }
}

fn fill(folder: &Path, files: &Collected, owner: VolumeOwner) -> io::Result<()> {
    for (path, File { bytes, mode, user }) in files {
        let path = checked(path)?;
        let target = folder.join(path);
        if let Some(above) = target.parent() {
            fs::create_dir_all(above)?;
        }
        // Nobody but the node reads it before it is what it shall be.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
        file.write_all(bytes)?;
        owner.give(&target, *user)?;
        file.set_permissions(Permissions::from_mode(*mode))?;
    }
    Ok(())
}

/// Validation lets no other path through; nothing is written elsewhere all the same.
fn checked(path: &str) -> io::Result<&Path> {
    let path = Path::new(path);
    let mut parts = path.components();
    let good = parts.clone().next().is_some() && parts.all(|part| matches!(part, Component::Normal(_)));
    let reserved = path.as_os_str().as_bytes().starts_with(b"..");
    if good && !reserved { Ok(path) } else { Err(io::Error::other(format!("{path:?} is no path in a volume"))) }
}

fn is_same(folder: &Path, files: &Collected) -> bool {
    let Ok(there) = walk(folder, Path::new("")) else { return false };
    there.len() == files.len()
        && files.iter().all(|(path, file)| there.contains(path) && holds(&folder.join(path), file))
}

/// Files below a folder, by their path in it.
fn walk(folder: &Path, rest: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder.join(rest))? {
        let entry = entry?;
        let path = rest.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(walk(folder, &path)?);
        } else {
            found.insert(path.display().to_string());
        }
    }
    Ok(found)
}

fn holds(path: &Path, file: &File) -> bool {
    let Ok(mut open) = fs::File::open(path) else { return false };
    let same_size = open
        .metadata()
        .is_ok_and(|about| about.len() == file.bytes.len() as u64 && about.permissions().mode() & 0o777 == file.mode);
    let mut bytes = Vec::with_capacity(file.bytes.len());
    same_size && open.read_to_end(&mut bytes).is_ok() && bytes == file.bytes
}

/// Makes what the user sees: a link for each name at the top, and no other.
fn link(folder: &Path, files: &Collected) -> io::Result<()> {
    let top = |path: &String| Path::new(path).components().next().map(|part| part.as_os_str().to_owned());
    let names: BTreeSet<OsString> = files.keys().filter_map(top).collect();
    for name in &names {
        match symlink(Path::new(DATA).join(name), folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !is_own(&name) && !names.contains(&name) {
            fs::remove_file(folder.join(name))?;
        }
    }
    Ok(())
}

/// Removes folders of earlier times, also those that a power cut left half made.
fn sweep(folder: &Path, current: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && is_own(&entry.file_name()) && entry.file_name() != current {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Made by this writer for itself.
fn is_own(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"..")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn files(entries: &[(&str, &str)]) -> Collected {
        let file = |text: &str| File { bytes: text.into(), mode: 0o644, user: None };
        entries.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("there")
            .flatten()
            .map(|entry| entry.file_name().display().to_string())
            .filter(|name| !name.starts_with("..2"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_layout_is_upstream_s() {
        let folder = tempfile::tempdir().expect("a folder");
        let volume = folder.path().join("v");
        write(&volume, &files(&[("a", "1"), ("d/e/f", "2")]), VolumeOwner::default()).expect("written");
        assert_eq!(names(&volume), ["..data", "a", "d"]);
        let data = fs::read_link(volume.join(DATA)).expect("a link");
        assert!(data.to_str().expect("text").starts_with("..20") && data.is_relative());
        assert_eq!(fs::read_link(volume.join("a")).expect("a link"), Path::new("..data/a"));
        assert_eq!(fs::read_to_string(volume.join("d/e/f")).expect("a file"), "2");

        write(&volume, &files(&[("a", "1"), ("d/e/f", "2")]), VolumeOwner::default()).expect("written");
        assert_eq!(fs::read_link(volume.join(DATA)).expect("a link"), data, "nothing has changed");

        // What a power cut left behind.
        fs::create_dir(volume.join("..2020_01_01_00_00_00.000000000")).expect("made");
        symlink("..2020_01_01_00_00_00.000000000", volume.join(NEW_DATA)).expect("linked");
        write(&volume, &files(&[("a", "3"), ("g", "4")]), VolumeOwner::default()).expect("written");
        assert_eq!(names(&volume), ["..data", "a", "g"]);
        let own =
            fs::read_dir(&volume).expect("there").flatten().filter(|e| e.path().is_dir() && !e.path().is_symlink());
        assert_eq!(own.count(), 1);
        assert!(write(&volume, &files(&[("../out", "5")]), VolumeOwner::default()).is_err());
        assert!(!folder.path().join("out").exists());
    }

    #[test]
    fn readers_see_all_of_the_old_or_all_of_the_new() {
        let folder = tempfile::tempdir().expect("a folder");
        let volume = folder.path();
        let version = |n: usize| (0..20).map(|file| (format!("f{file}"), n.to_string())).collect::<Vec<_>>();
        let write_version = |n: usize| {
            let entries = version(n);
            let entries: Vec<_> = entries.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            write(volume, &files(&entries), VolumeOwner::default()).expect("written");
        };
        write_version(0);
        let done = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = BTreeSet::new();
                while !done.load(Ordering::Relaxed) {
                    // Whoever follows the link once sees one state of things, and at the visible names there is always a file.
                    let data = volume.join(fs::read_link(volume.join(DATA)).expect("always there"));
                    let texts: Result<BTreeSet<String>, _> =
                        (0..20).map(|file| fs::read_to_string(data.join(format!("f{file}")))).collect();
                    if let Ok(texts) = texts {
                        assert_eq!(texts.len(), 1, "{texts:?}");
                        seen.extend(texts);
                    }
                }
                seen
            });
            (1..200).for_each(write_version);
            done.store(true, Ordering::Relaxed);
            reader.join().expect("no mixture")
        });
        assert!(!seen.is_empty());
    }
}
