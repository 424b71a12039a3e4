//! The machine's users that pods are: who their files belong to (META-06, META-07).
//!
//! A pod with `hostUsers: false` has a range of ids that no other pod of the node has, and its own user 0 is the first of them. The pod's
//! folder says which: it belongs to the first id of the range as its user and to the last one as its group. So a pod has the same range
//! for as long as it has its folder, whatever becomes of the agent, and the range is free when the folder is gone. (A pod that shares the
//! machine's users and runs as one of those ids by its number is that user: nothing keeps it from it.)

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, fchown, lchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use husk_engine::Owner;
use k8s_openapi::api::core::v1::{Container, LinuxContainerUser, Pod};

use crate::security::{self, Wanted};

/// Ids of a pod if nothing else is said. Ranges begin at multiples of it, and none has the ids below it, which are the machine's own.
pub(crate) const IDS_PER_POD: u32 = 65_536;

/// Folders of pods, in the data folder.
pub(crate) const PODS: &str = "pods";

/// Who is nobody in particular on every machine.
const NOBODY: i64 = 65_534;

/// What a node may do about users.
#[derive(Clone, Debug)]
pub(crate) struct Users {
    /// Folders of pods.
    pods: PathBuf,
    ids_per_pod: u32,
    /// It may give files away: it is root. Otherwise everything belongs to the one user that it is.
    may_give: bool,
    /// One range is taken at a time.
    taking: Arc<Mutex<()>>,
}

/// The ids of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserRange {
    first: u32,
    last: u32,
}

/// Who a container is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Whom {
    /// Among the users of the machine; none if it is the node's own user.
    pub(crate) owner: Option<Owner>,
    /// As people see it, by the ids of the pod.
    pub(crate) shown: LinuxContainerUser,
}

/// Who the volumes of a pod belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VolumeOwner {
    range: Option<UserRange>,
    /// The group that it asks for.
    fs_group: Option<u32>,
}

impl Users {
    /// Of a node with the folders of its pods in this data folder.
    pub(crate) fn new(data_dir: &Path, ids_per_pod: u32) -> Self {
        let may_give = rustix::process::geteuid().is_root() && may_give(data_dir, ids_per_pod);
        Self { pods: data_dir.join(PODS), ids_per_pod, may_give, taking: Arc::default() }
    }

    /// Whether a pod is to have ids of its own, and the node may give it some.
    pub(crate) fn gives_range(&self, pod: &Pod) -> bool {
        self.may_give && pod.spec.as_ref().and_then(|spec| spec.host_users) == Some(false)
    }

    /// The range of a pod with this folder, if it is to have one.
    pub(crate) fn range(&self, pod: &Pod, folder: &Path) -> io::Result<Option<UserRange>> {
        if self.gives_range(pod) { self.take(folder).map(Some) } else { Ok(None) }
    }

    fn take(&self, folder: &Path) -> io::Result<UserRange> {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        fs::create_dir_all(folder)?;
        if let Some(own) = UserRange::of(folder)? {
            return Ok(own);
        }
        let mut taken = Vec::new();
        for entry in fs::read_dir(&self.pods)? {
            taken.extend(UserRange::of(&entry?.path())?);
        }
        let ranges = (1..).map_while(|n| UserRange::new(n, self.ids_per_pod));
        let free = ranges.into_iter().find(|range| !taken.iter().any(|other| range.overlaps(*other)));
        let free = free.ok_or_else(|| io::Error::other("all ids of users are those of other pods"))?;
        lchown(folder, Some(free.first), Some(free.last))?;
        Ok(free)
    }

    /// Who a container is as people see it, if that can be said without its image.
    pub(crate) fn of_manifest(&self, pod: &Pod, container: &Container) -> Option<LinuxContainerUser> {
        let decides = !self.may_give || security::wanted_user(pod, container).user.is_some();
        decides.then(|| self.whom(pod, container, None, None).ok().map(|whom| whom.shown)).flatten()
    }

    /// Who a container is. `image_user` is what its image says ([`Image::user`](husk_engine::Image::user)). An error is for a person,
    /// in upstream's words where it has them.
    pub(crate) fn whom(
        &self,
        pod: &Pod,
        container: &Container,
        image_user: Option<&str>,
        range: Option<UserRange>,
    ) -> Result<Whom, String> {
        let Wanted { user, group } = security::wanted_user(pod, container);
        let not_root = security::must_not_be_root(pod, container);
        let of_image = image_user.filter(|_| user.is_none()).map(of_image);
        let whom = || security::named(pod, container);
        let (user, group) = match (user, of_image) {
            (Some(0), _) if not_root => {
                return Err(format!("container's runAsUser breaks non-root policy {}", whom()));
            }
            (Some(user), _) => (user, group.unwrap_or(0)),
            (None, Some(Ok((0, _)))) if not_root => {
                return Err(format!("container has runAsNonRoot and image will run as root {}", whom()));
            }
            (None, Some(Ok((user, own)))) => (user, group.or(own).unwrap_or(0)),
            (None, Some(Err(name))) if not_root => {
                return Err(format!(
                    "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root {}",
                    whom()
                ));
            }
            (None, Some(Err(name))) if self.may_give => {
                return Err(format!(
                    "the image's user {name:?} is a name, and this node knows numbers only: set runAsUser"
                ));
            }
            // Somebody who isn't root. Upstream refuses this: it has an image's word only for who the process would be.
            (None, None) if not_root => (NOBODY, group.unwrap_or(NOBODY)),
            (None, _) => (0, group.unwrap_or(0)),
        };
        if !self.may_give {
            return Ok(Whom { owner: None, shown: node_user() });
        }
        // As container runtimes show them: its own group is one of them.
        let more = security::more_groups(pod).map(|(_, id)| id);
        let shown = user_and_groups(user, group, more);
        if (user, group, range) == (0, 0, None) {
            return Ok(Whom { owner: None, shown });
        }
        let of_machine = |field: &str, id: i64| {
            let id = u32::try_from(id).map_err(|_| format!("{field}: {id} is no id of a user"))?;
            match range {
                Some(range) => range.of_machine(id).ok_or_else(|| {
                    format!("{field}: {id} is none of the {} ids that a pod with hostUsers: false has", range.length())
                }),
                None => Ok(id),
            }
        };
        let groups = security::more_groups(pod).map(|(field, id)| of_machine(field, id));
        let owner = Owner {
            user: of_machine("runAsUser", user)?,
            group: of_machine("runAsGroup", group)?,
            groups: groups.collect::<Result<_, _>>()?,
        };
        Ok(Whom { owner: Some(owner), shown })
    }
}

/// The user that the node is, as whom its guests use files if it can give none away.
fn node_user() -> LinuxContainerUser {
    let more = rustix::process::getgroups().unwrap_or_default();
    let id = |id: u32| i64::from(id);
    user_and_groups(
        id(rustix::process::geteuid().as_raw()),
        id(rustix::process::getegid().as_raw()),
        more.into_iter().map(|group| id(group.as_raw())),
    )
}

/// Its own group is the first of its groups, and none is there twice.
fn user_and_groups(uid: i64, gid: i64, more: impl Iterator<Item = i64>) -> LinuxContainerUser {
    let mut groups = vec![gid];
    for group in more {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    LinuxContainerUser { uid, gid, supplemental_groups: Some(groups) }
}

/// User and group that an image names; the name if it isn't a number.
fn of_image(written: &str) -> Result<(i64, Option<i64>), &str> {
    let (user, group) = written.split_once(':').map_or((written, None), |(user, group)| (user, Some(group)));
    let user = if user == "root" { Ok(0) } else { user.parse::<u32>().map(i64::from).map_err(|_| user) };
    Ok((user?, group.and_then(|group| group.parse::<u32>().ok()).map(i64::from)))
}

/// Whether files here can be given to a pod's users. In a container of its own, or on a file system without owners, root can't.
fn may_give(data_dir: &Path, ids_per_pod: u32) -> bool {
    let given =
        UserRange::new(1, ids_per_pod).ok_or_else(|| io::Error::other("so many ids there are not")).and_then(|range| {
            let probe = tempfile::tempdir_in(data_dir)?;
            lchown(probe.path(), Some(range.first), Some(range.last))
        });
    given
        .inspect_err(|error| {
            let folder = data_dir.display();
            tracing::warn!(
                "all files of pods belong to the node's own user: files in {folder} can't be given away: {error}"
            );
        })
        .is_ok()
}

impl UserRange {
    /// The `n`th range of so many ids, if there are so many.
    fn new(n: u32, length: u32) -> Option<Self> {
        let first = n.checked_mul(length)?;
        // The very last id stands for none.
        let last = first.checked_add(length - 1).filter(|last| *last < u32::MAX)?;
        Some(Self { first, last })
    }

    /// That of the pod with this folder, if it has one.
    fn of(folder: &Path) -> io::Result<Option<Self>> {
        let about = match fs::symlink_metadata(folder) {
            // Another pod's, which is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        let (first, last) = (about.uid(), about.gid());
        let is_range = first >= IDS_PER_POD && first % IDS_PER_POD == 0 && last > first;
        Ok((is_range && (last - first) % IDS_PER_POD == IDS_PER_POD - 1).then_some(Self { first, last }))
    }

    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn length(self) -> u32 {
        self.last - self.first + 1
    }

    /// The machine's id for one of the pod's.
    fn of_machine(self, id: u32) -> Option<u32> {
        self.first.checked_add(id).filter(|id| *id <= self.last)
    }
}

impl VolumeOwner {
    /// Of a pod with these ids, or with the machine's.
    pub(crate) fn of(pod: &Pod, range: Option<UserRange>) -> Self {
        let fs_group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group);
        Self { range, fs_group: fs_group.and_then(|group| u32::try_from(group).ok()) }
    }

    /// A group asked for them: it may read and, where anybody may, write what is in them.
    pub(crate) fn has_group(self) -> bool {
        self.fs_group.is_some()
    }

    /// Gives a file or folder away, to one of the pod's users if one is named.
    pub(crate) fn give(self, path: &Path, user: Option<u32>) -> io::Result<()> {
        self.give_by(user, |user, group| lchown(path, user, group))
    }

    /// The same of what is open.
    pub(crate) fn give_open(self, file: impl AsFd) -> io::Result<()> {
        self.give_by(None, |user, group| fchown(file, user, group))
    }

    /// A node that isn't root can only give to its own groups, and leaves it at that.
    fn give_by(
        self,
        user: Option<u32>,
        chown: impl FnOnce(Option<u32>, Option<u32>) -> io::Result<()>,
    ) -> io::Result<()> {
        let of_machine = |id: Option<u32>| match self.range {
            Some(range) => range.of_machine(id.unwrap_or(0)),
            None => id,
        };
        let (user, group) = (of_machine(user), of_machine(self.fs_group));
        if user.is_none() && group.is_none() {
            return Ok(());
        }
        match chown(user, group) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_aligned_and_end_before_the_last_id() {
        let range = UserRange::new(3, IDS_PER_POD).expect("a range");
        assert_eq!((range.first, range.last, range.length()), (196_608, 262_143, 65_536));
        assert_eq!(
            (range.of_machine(0), range.of_machine(65_535), range.of_machine(65_536)),
            (Some(196_608), Some(262_143), None)
        );
        let all = (1..).map_while(|n| UserRange::new(n, IDS_PER_POD)).count();
        // All that 32 bits have, but those of the machine and those with the id that stands for none.
        assert_eq!(all, 65_534);
        assert!(
            range.overlaps(UserRange { first: 0, last: 196_608 })
                && !range.overlaps(UserRange::new(4, IDS_PER_POD).expect("one"))
        );
    }

    #[test]
    fn an_image_names_its_user_by_number_or_is_told_so() {
        for (written, read) in [
            ("1000", Ok((1000, None))),
            ("1000:2000", Ok((1000, Some(2000)))),
            ("0", Ok((0, None))),
            ("root", Ok((0, None))),
            ("1000:staff", Ok((1000, None))),
            ("app:2000", Err("app")),
            ("-1", Err("-1")),
        ] {
            assert_eq!(of_image(written), read, "{written}");
        }
    }
}
