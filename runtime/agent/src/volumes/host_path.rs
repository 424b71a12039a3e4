//! `hostPath`: a folder or file of the machine.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::HostPathVolumeSource;

use super::Wrong;

/// The path, after what `type` asks for is made.
pub(super) fn make(source: &HostPathVolumeSource) -> Result<PathBuf, Wrong> {
    let path = PathBuf::from(&source.path);
    let made = match kind(source) {
        "DirectoryOrCreate" if !path.exists() => fs::create_dir_all(&path),
        "FileOrCreate" if !path.exists() => File::create_new(&path).map(drop),
        _ => Ok(()),
    };
    match made {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(("hostPath.path", format!("can't make {}: {error}", path.display()))),
    }
    check(source)
}

/// The path, if what is there is what `type` asks for, or can be made.
pub(super) fn check(source: &HostPathVolumeSource) -> Result<PathBuf, Wrong> {
    let path = PathBuf::from(&source.path);
    let about = fs::metadata(&path);
    let failed = |what: &str| Err(("hostPath.path", format!("hostPath type check failed: {} {what}", path.display())));
    match (kind(source), about) {
        ("DirectoryOrCreate" | "FileOrCreate", Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(path),
        ("" | "Directory" | "DirectoryOrCreate", Ok(about)) if about.is_dir() => Ok(path),
        ("" | "File" | "FileOrCreate", Ok(about)) if about.is_file() => Ok(path),
        ("Directory" | "DirectoryOrCreate", Ok(_)) => failed("is not a directory"),
        ("File" | "FileOrCreate", Ok(_)) => failed("is not a file"),
        ("", Ok(_)) => failed("is neither a folder nor a file: WASI mounts nothing else"),
        ("" | "Directory", Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            failed("does not exist on this machine: make it, or say type: DirectoryOrCreate")
        }
        ("File", Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            failed("does not exist on this machine: make it, or say type: FileOrCreate")
        }
        ("" | "Directory" | "DirectoryOrCreate" | "File" | "FileOrCreate", Err(error)) => failed(&error.to_string()),
        (other, _) => {
            let message = format!("{other} is not supported: WASI mounts folders and files only");
            Err(("hostPath.type", message))
        }
    }
}

fn kind(source: &HostPathVolumeSource) -> &str {
    source.type_.as_deref().unwrap_or_default()
}
