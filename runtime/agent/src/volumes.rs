//! The volumes of a pod: emptyDir, which lives and dies with it, and hostPath.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use husk_engine::Mount;
use k8s_openapi::api::core::v1::{Container, HostPathVolumeSource, PodSpec, Volume};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// The volumes of one pod, made.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    paths: BTreeMap<String, PathBuf>,
    /// The folders that a container mounts by subPath, held open for its newest instance, the only one that runs.
    held: Mutex<BTreeMap<String, Vec<OwnedFd>>>,
}

/// What is wrong with a volume: field and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeError {
    /// As in `spec.volumes[0].hostPath.path`.
    pub(crate) field: String,
    /// What, and what to do.
    pub(crate) message: String,
}

impl VolumeError {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl Volumes {
    /// Makes the volumes of a pod; emptyDirs under `folder`.
    pub(crate) fn make(spec: &PodSpec, folder: &Path) -> Result<Self, VolumeError> {
        let mut paths = BTreeMap::new();
        for (n, volume) in spec.volumes.iter().flatten().enumerate() {
            let field = format!("spec.volumes[{n}]");
            let path = match kind(volume, &field)? {
                Kind::EmptyDir => {
                    let path = folder.join(&volume.name);
                    fs::create_dir_all(&path)
                        .map_err(|error| VolumeError::new(&field, format!("can't make {}: {error}", path.display())))?;
                    path
                }
                Kind::HostPath(source) => host_path(source, &field, true)?,
            };
            paths.insert(volume.name.clone(), path);
        }
        Ok(Self { paths, held: Mutex::default() })
    }

    /// What `make` would refuse, all of it, without making anything.
    pub(crate) fn check(spec: &PodSpec) -> Vec<VolumeError> {
        let volumes = spec.volumes.iter().flatten().enumerate();
        volumes
            .filter_map(|(n, volume)| {
                let field = format!("spec.volumes[{n}]");
                match kind(volume, &field) {
                    Ok(Kind::EmptyDir) => None,
                    Ok(Kind::HostPath(source)) => host_path(source, &field, false).err(),
                    Err(error) => Some(error),
                }
            })
            .collect()
    }

    /// What a new instance of a container mounts.
    pub(crate) fn mounts(&self, container: &Container) -> Result<Vec<Mount>, VolumeError> {
        let mut held = Vec::new();
        let mounts = container.volume_mounts.iter().flatten().enumerate();
        let mounts = mounts
            .map(|(n, mount)| {
                let field = format!("volumeMounts[{n}]");
                let volume = self.paths.get(&mount.name).ok_or_else(|| {
                    VolumeError::new(format!("{field}.name"), format!("the pod has no volume `{}`", mount.name))
                })?;
                if mount.sub_path_expr.is_some() {
                    return Err(VolumeError::new(format!("{field}.subPathExpr"), "not supported yet: use subPath"));
                }
                let host = match mount.sub_path.as_deref().filter(|path| !path.is_empty()) {
                    Some(path) => {
                        let folder = sub_path(volume, path).map_err(|error| {
                            VolumeError::new(format!("{field}.subPath"), format!("can't use `{path}`: {error}"))
                        })?;
                        // Whatever a guest puts in the place of its name, this is the folder.
                        let host = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
                        held.push(folder);
                        host
                    }
                    None => volume.clone(),
                };
                Ok(Mount { host, guest: mount.mount_path.clone(), read_only: mount.read_only.unwrap_or(false) })
            })
            .collect::<Result<_, _>>()?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(container.name.clone(), held);
        Ok(mounts)
    }
}

enum Kind<'a> {
    EmptyDir,
    HostPath(&'a HostPathVolumeSource),
}

fn kind<'a>(volume: &'a Volume, field: &str) -> Result<Kind<'a>, VolumeError> {
    match (&volume.empty_dir, &volume.host_path) {
        (Some(_), _) => Ok(Kind::EmptyDir),
        (None, Some(source)) => Ok(Kind::HostPath(source)),
        (None, None) => Err(VolumeError::new(
            field,
            format!("volume `{}` is of a kind that is not supported yet: use emptyDir or hostPath", volume.name),
        )),
    }
}

/// The host's folder, as `type` wants it.
fn host_path(source: &HostPathVolumeSource, field: &str, make: bool) -> Result<PathBuf, VolumeError> {
    let path = PathBuf::from(&source.path);
    let bad = |message: String| Err(VolumeError::new(format!("{field}.hostPath.path"), message));
    match source.type_.as_deref().unwrap_or("") {
        "DirectoryOrCreate" => {
            if make && let Err(error) = fs::create_dir_all(&path) {
                return bad(format!("can't make {}: {error}", path.display()));
            }
            if !path.exists() || path.is_dir() {
                return Ok(path);
            }
            bad(format!("{} is not a folder", path.display()))
        }
        // Without a type nothing is checked upstream, and the container's runtime fails on what isn't there.
        "" | "Directory" if path.is_dir() => Ok(path),
        "" | "Directory" if path.exists() => {
            bad(format!("{} is not a folder: only folders can be mounted", path.display()))
        }
        "" | "Directory" => {
            bad(format!("{} does not exist on this machine: make it, or say type: DirectoryOrCreate", path.display()))
        }
        other => Err(VolumeError::new(
            format!("{field}.hostPath.type"),
            format!("{other} is not supported: WASI mounts folders only, use Directory or DirectoryOrCreate"),
        )),
    }
}

/// A folder inside a volume, made if it isn't there. Guests write to volumes while this looks, so it goes from folder to open
/// folder and follows no link on its way: nothing can lead it out of the volume.
fn sub_path(volume: &Path, path: &str) -> io::Result<OwnedFd> {
    const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let mut folder = openat(CWD, volume, FOLDER, Mode::empty())?;
    for part in Path::new(path).components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(io::Error::other("it must be a relative path without `..`")),
        };
        match mkdirat(&folder, name, Mode::from(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = openat(&folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => {
                io::Error::other(format!("`{}` is not a folder; links are not followed", name.display()))
            }
            error => error.into(),
        })?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, EmptyDirVolumeSource, VolumeMount};

    use super::*;

    fn empty_dir(name: &str) -> Volume {
        Volume { name: name.into(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
    }

    fn host(path: &Path, type_: Option<&str>) -> Volume {
        let source = HostPathVolumeSource { path: path.display().to_string(), type_: type_.map(Into::into) };
        Volume { name: "host".into(), host_path: Some(source), ..Volume::default() }
    }

    fn pod(volumes: Vec<Volume>) -> PodSpec {
        PodSpec { volumes: Some(volumes), ..PodSpec::default() }
    }

    fn mounting(name: &str, sub_path: Option<&str>) -> Container {
        let mount = VolumeMount {
            name: name.into(),
            mount_path: "/data".into(),
            sub_path: sub_path.map(Into::into),
            ..VolumeMount::default()
        };
        Container { volume_mounts: Some(vec![mount]), ..Container::default() }
    }

    #[test]
    fn an_empty_dir_is_made_and_mounted() {
        let folder = tempfile::tempdir().expect("a folder");
        let volumes = Volumes::make(&pod(vec![empty_dir("data")]), folder.path()).expect("made");
        let mounts = volumes.mounts(&mounting("data", Some("a/b"))).expect("mounts");
        let there = folder.path().join("data/a/b").canonicalize().expect("made");
        assert_eq!(mounts[0].host.canonicalize().expect("open"), there);
        // The container has what it mounted, whatever becomes of the name.
        std::fs::rename(folder.path().join("data/a"), folder.path().join("data/b")).expect("renamed");
        std::os::unix::fs::symlink("/", folder.path().join("data/a")).expect("linked");
        assert!(mounts[0].host.canonicalize().expect("open").ends_with("data/b/b"));
        assert!(volumes.mounts(&mounting("data", Some("a/b"))).is_err());
        assert!(volumes.mounts(&mounting("data", Some("/b"))).is_err());
        assert!(volumes.mounts(&mounting("data", Some("../x"))).is_err());
        assert!(volumes.mounts(&mounting("other", None)).expect_err("unknown").message.contains("no volume `other`"));
    }

    #[test]
    fn a_link_cannot_lead_out_of_its_volume() {
        let folder = tempfile::tempdir().expect("a folder");
        let volumes = Volumes::make(&pod(vec![empty_dir("data")]), folder.path()).expect("made");
        // A guest can make links that are relative only.
        std::os::unix::fs::symlink("../..", folder.path().join("data/out")).expect("linked");
        let made = format!("out/{}/made", folder.path().file_name().expect("a name").display());
        assert!(volumes.mounts(&mounting("data", Some(&made))).is_err());
        assert!(volumes.mounts(&mounting("data", Some("out"))).is_err());
        assert!(!folder.path().join("made").exists());
    }

    #[test]
    fn what_cannot_be_mounted_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let config =
            Volume { name: "c".into(), config_map: Some(ConfigMapVolumeSource::default()), ..Volume::default() };
        let errors = Volumes::check(&pod(vec![host(&missing, None), config, host(&missing, Some("Socket"))]));
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["spec.volumes[0].hostPath.path", "spec.volumes[1]", "spec.volumes[2].hostPath.type"]);
        assert!(Volumes::check(&pod(vec![host(&missing, Some("DirectoryOrCreate"))])).is_empty());
        assert!(!missing.exists());
    }
}
