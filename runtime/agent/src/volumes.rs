//! The volumes of a pod: emptyDir, which lives and dies with it, and hostPath.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use husk_engine::Mount;
use k8s_openapi::api::core::v1::{Container, HostPathVolumeSource, PodSpec, Volume};

/// The volumes of one pod, made.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    paths: BTreeMap<String, PathBuf>,
}

/// What is wrong with a volume: field and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeError {
    /// As in `spec.volumes[0].hostPath.path`.
    pub field: String,
    /// What, and what to do.
    pub message: String,
}

impl VolumeError {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl Volumes {
    /// Makes the volumes of a pod; emptyDirs under `folder`.
    pub fn make(spec: &PodSpec, folder: &Path) -> Result<Self, VolumeError> {
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
        Ok(Self { paths })
    }

    /// What `make` would refuse, all of it, without making anything.
    pub fn check(spec: &PodSpec) -> Vec<VolumeError> {
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

    /// What a container mounts.
    pub fn mounts(&self, container: &Container) -> Result<Vec<Mount>, VolumeError> {
        let mounts = container.volume_mounts.iter().flatten().enumerate();
        mounts
            .map(|(n, mount)| {
                let field = format!("volumeMounts[{n}]");
                let volume = self.paths.get(&mount.name).ok_or_else(|| {
                    VolumeError::new(format!("{field}.name"), format!("the pod has no volume `{}`", mount.name))
                })?;
                if mount.sub_path_expr.is_some() {
                    return Err(VolumeError::new(format!("{field}.subPathExpr"), "not supported yet: use subPath"));
                }
                let host = match mount.sub_path.as_deref().filter(|path| !path.is_empty()) {
                    Some(path) => sub_path(volume, path).map_err(|error| {
                        VolumeError::new(format!("{field}.subPath"), format!("can't use `{path}`: {error}"))
                    })?,
                    None => volume.clone(),
                };
                Ok(Mount { host, guest: mount.mount_path.clone(), read_only: mount.read_only.unwrap_or(false) })
            })
            .collect()
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

/// A folder inside a volume, made if it isn't there. It never leads out of the volume.
fn sub_path(volume: &Path, path: &str) -> io::Result<PathBuf> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(io::Error::other("it must be a relative path without `..`"));
    }
    let folder = volume.join(path);
    fs::create_dir_all(&folder)?;
    // A link that a guest made could lead anywhere.
    if !folder.canonicalize()?.starts_with(volume.canonicalize()?) {
        return Err(io::Error::other("a link in it leads out of the volume"));
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
        assert!(mounts[0].host.is_dir() && mounts[0].host.ends_with("data/a/b"));
        assert!(volumes.mounts(&mounting("data", Some("../x"))).is_err());
        assert!(volumes.mounts(&mounting("other", None)).expect_err("unknown").message.contains("no volume `other`"));
    }

    #[test]
    fn a_link_cannot_lead_out_of_its_volume() {
        let folder = tempfile::tempdir().expect("a folder");
        let volumes = Volumes::make(&pod(vec![empty_dir("data")]), folder.path()).expect("made");
        std::os::unix::fs::symlink("/", folder.path().join("data/out")).expect("linked");
        assert!(volumes.mounts(&mounting("data", Some("out/tmp"))).is_err());
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
