//! The volumes of a pod: one folder each, as its containers mount them.
//!
//! | kind | what it is | who may write |
//! |---|---|---|
//! | `emptyDir` | a folder that lives and dies with the pod; on disk, or in memory | guests |
//! | `hostPath` | a folder or file of the machine | guests |
//! | `configMap`, `secret`, `downwardAPI`, `projected` | files made from objects, kept up to date | nobody |
//! | `image` | the files of an image | nobody |

mod atomic;
mod disk;
mod empty_dir;
mod files;
mod host_path;
mod image;
mod inside;
mod memory;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use husk_core::expansion::{Room, expand};
use husk_engine::Mount;
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, HostPathVolumeSource, Pod, PodSpec, Volume, VolumeMount,
};

use self::disk::Disk;
use self::files::Files;
use crate::machine::ThisMachine;
use crate::references::References;
use crate::users::VolumeOwner;

pub(crate) use self::disk::{DiskNumber, is_read_only};
pub(crate) use self::empty_dir::Limits;
pub(crate) use self::image::Mounted;
pub(crate) use self::memory::Memory;
pub(crate) use self::usage::DiskUse;

/// The volumes of one pod, made.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    made: BTreeMap<String, Made>,
    /// One update at a time, so that a later one sees what is newer; none once they are closed.
    closed: Mutex<bool>,
    /// Bytes of those in memory, as they were measured last.
    memory: AtomicU64,
    owner: VolumeOwner,
}

#[derive(Debug)]
struct Made {
    path: PathBuf,
    /// Where it is, if it is on a disk that can fail: one of its own, or the node's.
    disk: Option<Disk>,
    /// No container may write to it.
    read_only: bool,
    /// Its files are made from objects.
    follows: bool,
}

/// What volumes are made from.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// ConfigMaps and Secrets.
    pub(crate) references: &'a dyn References,
    /// Images that it mounts.
    pub(crate) images: &'a Mounted,
    /// What the node has.
    pub(crate) machine: &'a ThisMachine,
    /// Where volumes in memory are.
    pub(crate) memory: &'a Memory,
}

/// What is wrong with a volume: field and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeError {
    /// As in `spec.volumes[0].hostPath.path`.
    pub(crate) field: String,
    /// The volume.
    pub(crate) volume: String,
    /// What, and what to do.
    pub(crate) message: String,
}

/// Field below the volume, and what is wrong with it.
type Wrong = (&'static str, String);

enum Kind<'a> {
    EmptyDir(&'a EmptyDirVolumeSource),
    HostPath(&'a HostPathVolumeSource),
    Image,
    Files(Files),
}

impl Volumes {
    /// Makes the volumes of a pod; those that are its own under `folder`, which is nobody else's business.
    pub(crate) fn make(world: World<'_>, folder: &Path, owner: VolumeOwner) -> Result<Self, VolumeError> {
        let mut made = BTreeMap::new();
        for (n, volume) in volumes(world.pod.spec.as_ref()).enumerate() {
            let one = make(volume, world, folder, owner).map_err(|wrong| VolumeError::new(n, volume, wrong))?;
            made.insert(volume.name.clone(), one);
        }
        Ok(Self { made, closed: Mutex::default(), memory: AtomicU64::new(0), owner })
    }

    /// What `make` would refuse, all of it, without making anything.
    pub(crate) fn check(world: World<'_>) -> Vec<VolumeError> {
        let check = |(n, volume)| check(volume, world).err().map(|wrong| VolumeError::new(n, volume, wrong));
        volumes(world.pod.spec.as_ref()).enumerate().filter_map(check).collect()
    }

    /// Brings files that are made from objects up to date. What can't be made any more stays as it is.
    pub(crate) fn update(&self, world: World<'_>) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return;
        }
        for volume in volumes(world.pod.spec.as_ref()) {
            let (Some(made), Ok(Kind::Files(files))) = (self.made.get(&volume.name), kind(volume)) else { continue };
            let updated = files.collect(world).and_then(|files| write(&made.path, &files, self.owner));
            if let Err(why) = updated {
                let pod = world.pod.metadata.name.as_deref().unwrap_or_default();
                tracing::debug!(pod, volume = volume.name, why, "volume not updated");
            }
        }
    }

    /// Whether something of them is to be kept up to date.
    pub(crate) fn follow_objects(&self) -> bool {
        self.made.values().any(|made| made.follows)
    }

    /// Disks under them that can fail.
    pub(crate) fn disks(&self) -> BTreeSet<DiskNumber> {
        self.made.values().filter_map(|made| Some(made.disk?.number)).collect()
    }

    /// What is wrong with one of them that is on this disk, if there is (PHASE-10).
    pub(crate) fn failed_on(&self, disk: DiskNumber) -> Option<String> {
        self.made.iter().find_map(|(name, made)| {
            let disk = made.disk.filter(|made| made.number == disk)?;
            let error = disk.look_into(&made.path).err()?;
            Some(format!("The disk of volume {name:?} failed: {}: {error}. ", made.path.display()))
        })
    }

    /// Bytes of memory that they hold, as it was seen last when they were held against their limits.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Nothing is written to them any more once this returns.
    pub(crate) fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Text of a file in a volume; none if there is no such file, or it is no text, or longer than a manifest may be.
    pub(crate) fn text(&self, volume: &str, path: &str) -> Option<String> {
        inside::read_text(&self.made.get(volume)?.path, path)
    }

    /// What a new instance of a container mounts. `env` is its environment.
    pub(crate) fn mounts(&self, container: &Container, env: &[(String, String)]) -> Result<Vec<Mount>, String> {
        let mounts = container.volume_mounts.iter().flatten().enumerate();
        mounts
            .map(|(n, mount)| {
                self.mount(mount, env).map_err(|(field, why)| format!("volumeMounts[{n}].{field}: {why}"))
            })
            .collect()
    }

    fn mount(&self, mount: &VolumeMount, env: &[(String, String)]) -> Result<Mount, Wrong> {
        let made = self.made.get(&mount.name);
        let made = made.ok_or_else(|| ("name", format!("the pod has no volume `{}`", mount.name)))?;
        let read_only = made.read_only || mount.read_only.unwrap_or(false);
        let (field, path) = match (&mount.sub_path, &mount.sub_path_expr) {
            (_, Some(written)) if !written.is_empty() => {
                ("subPathExpr", expanded(written, env).map_err(|why| ("subPathExpr", why))?)
            }
            (Some(path), _) if !path.is_empty() => ("subPath", path.clone()),
            _ => return Ok(Mount::new(&made.path, &mount.mount_path, read_only)),
        };
        let open = inside::open(&made.path, &path, (!made.read_only).then_some(self.owner));
        let open = open.map_err(|error| (field, format!("can't use `{path}` of volume `{}`: {error}", mount.name)))?;
        Ok(Mount::of(open, &mount.mount_path, read_only))
    }
}

impl VolumeError {
    fn new(n: usize, volume: &Volume, (field, message): Wrong) -> Self {
        let field = format!("spec.volumes[{n}]{}{field}", if field.is_empty() { "" } else { "." });
        Self { field, volume: volume.name.clone(), message }
    }

    /// Of the event, as upstream has it.
    pub(crate) fn event_message(&self) -> String {
        format!("MountVolume.SetUp failed for volume {:?} : {}", self.volume, self.message)
    }
}

fn volumes(spec: Option<&PodSpec>) -> impl Iterator<Item = &Volume> {
    spec.into_iter().flat_map(|spec| spec.volumes.iter().flatten())
}

fn kind(volume: &Volume) -> Result<Kind<'_>, Wrong> {
    if let Some(source) = &volume.empty_dir {
        return Ok(Kind::EmptyDir(source));
    }
    if let Some(source) = &volume.host_path {
        return Ok(Kind::HostPath(source));
    }
    if volume.image.is_some() {
        return Ok(Kind::Image);
    }
    Files::of(volume).map(Kind::Files).ok_or_else(|| {
        let message = "volumes of this kind can't be had on this node; use emptyDir, hostPath, configMap, secret, \
                       downwardAPI, projected or image";
        ("", message.to_owned())
    })
}

fn make(volume: &Volume, world: World<'_>, folder: &Path, owner: VolumeOwner) -> Result<Made, Wrong> {
    let kind = kind(volume)?;
    if matches!(kind, Kind::EmptyDir(_) | Kind::Files(_)) {
        private(folder).map_err(|error| ("", format!("can't make {}: {error}", folder.display())))?;
    }
    let own = folder.join(&volume.name);
    let under = |path: &Path| {
        let disk = Disk::under(path, volume, world.pod, folder);
        disk.map_err(|error| format!("can't look at {}: {error}", path.display()))
    };
    match kind {
        Kind::EmptyDir(source) => {
            let in_memory = empty_dir::in_memory(&own, source, world);
            let path = in_memory.clone().unwrap_or(own);
            empty_dir::make(&path, source, owner)
                .map_err(|error| ("", format!("can't make {}: {error}", path.display())))?;
            let disk = if in_memory.is_some() { None } else { Some(under(&path).map_err(|wrong| ("", wrong))?) };
            Ok(Made { path, disk, read_only: false, follows: false })
        }
        Kind::HostPath(source) => {
            let path = host_path::make(source)?;
            let disk = under(&path).map_err(|wrong| ("hostPath.path", wrong))?;
            Ok(Made { path, disk: Some(disk), read_only: false, follows: false })
        }
        Kind::Image => Ok(Made { path: world.images.folder(volume)?, disk: None, read_only: true, follows: false }),
        Kind::Files(files) => {
            let made = files.collect(world).and_then(|files| write(&own, &files, owner));
            made.map_err(|why| ("", why))?;
            Ok(Made { path: own, disk: None, read_only: true, follows: true })
        }
    }
}

fn check(volume: &Volume, world: World<'_>) -> Result<(), Wrong> {
    match kind(volume)? {
        Kind::EmptyDir(_) => Ok(()),
        Kind::HostPath(source) => host_path::check(source).map(|_| ()),
        Kind::Image => world.images.folder(volume).map(|_| ()),
        Kind::Files(files) => files.collect(world).map(|_| ()).map_err(|why| ("", why)),
    }
}

fn write(folder: &Path, files: &files::Collected, owner: VolumeOwner) -> Result<(), String> {
    atomic::write(folder, files, owner).map_err(|error| format!("can't write {}: {error}", folder.display()))
}

/// A folder that only the node's own user can look into.
fn private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            folder.parent().map_or(Ok(()), fs::create_dir_all)?;
            private(folder)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// `subPathExpr` with its variables put in.
fn expanded(written: &str, env: &[(String, String)]) -> Result<String, String> {
    let missing = std::cell::RefCell::new(None);
    let value = |name: &str| {
        let value = env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        if value.is_none() {
            missing.borrow_mut().get_or_insert_with(|| name.to_owned());
        }
        value
    };
    let path = expand(written, value, &mut Room::default()).map_err(|error| error.to_string())?;
    match missing.into_inner() {
        Some(name) => Err(format!("missing value for {name:?}")),
        None => Ok(path),
    }
}
