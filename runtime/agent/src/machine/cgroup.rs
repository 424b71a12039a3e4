//! What of the machine's memory the agent and its guests may have, if a control group bounds it: a container, or `MemoryMax=` of a unit.

use std::fs;
use std::path::{Path, PathBuf};

use husk_core::eviction::Left;

/// The control groups that count the agent's memory: its own, and those above it as far as they can be seen.
#[derive(Debug)]
pub(super) struct ControlGroups(Vec<Group>);

#[derive(Debug, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The files of a group: limit, what is used, and of that the line of `memory.stat` with what the kernel would give up first.
struct Files {
    limit: &'static str,
    usage: &'static str,
    reclaimable: &'static [&'static str],
}

impl ControlGroups {
    /// Those of this process.
    pub(super) fn of_this_process() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self(groups(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo")))
    }

    /// What the tightest of them leaves; none if none has a limit.
    pub(super) fn left(&self) -> Option<Left> {
        let limited = self.0.iter().filter_map(Group::left);
        limited.reduce(super::tighter)
    }
}

impl Group {
    fn left(&self) -> Option<Left> {
        let files = self.version.files();
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).ok();
        // `max` is no number, and no limit.
        let limit: u64 = read(files.limit)?.trim().parse().ok()?;
        let used: u64 = read(files.usage)?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        // What the kernel would take back before it ends anybody, as `MemAvailable` has it for the machine.
        let part = |line: &str| {
            let (name, bytes) = line.split_once(' ')?;
            files.reclaimable.contains(&name).then(|| bytes.trim().parse::<u64>().ok())?
        };
        let held = used.saturating_sub(stat.lines().filter_map(part).sum());
        Some(Left { available: limit.saturating_sub(held), capacity: limit })
    }
}

impl Version {
    fn files(self) -> Files {
        match self {
            Self::One => Files {
                limit: "memory.limit_in_bytes",
                usage: "memory.usage_in_bytes",
                reclaimable: &["total_inactive_file", "total_active_file"],
            },
            Self::Two => Files {
                limit: "memory.max",
                usage: "memory.current",
                reclaimable: &["inactive_file", "active_file", "slab_reclaimable"],
            },
        }
    }
}

/// From `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn groups(cgroup: &str, mounts: &str) -> Vec<Group> {
    let Some((version, path)) = memory_group(cgroup) else { return Vec::new() };
    let Some((root, place)) = mounts.lines().find_map(|line| mount(line, version)) else { return Vec::new() };
    // In a namespace of its own, or with the mount of another one, all that can be seen is the top.
    let below = Path::new(path).strip_prefix(root).ok().filter(|below| !below.starts_with(".."));
    let folder: PathBuf = Path::new(place).components().chain(below.unwrap_or(Path::new("")).components()).collect();
    let above = folder.ancestors().take_while(|folder| folder.starts_with(place));
    above.map(|folder| Group { folder: folder.to_owned(), version }).collect()
}

/// The group that counts memory, from lines as `4:memory:/a` and `0::/a`. Where both are there the controller is in the first.
fn memory_group(cgroup: &str) -> Option<(Version, &str)> {
    let lines = || cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let one = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
    let two = || lines().find(|(controllers, _)| controllers.is_empty());
    one.map(|(_, path)| (Version::One, path)).or_else(|| two().map(|(_, path)| (Version::Two, path)))
}

/// What is mounted where, if it is the hierarchy that counts memory.
fn mount(line: &str, version: Version) -> Option<(&str, &str)> {
    let (about, kind) = line.split_once(" - ")?;
    let mut about = about.split(' ').skip(3);
    let (root, place) = (about.next()?, about.next()?);
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
    let is_it = match version {
        Version::One => name == "cgroup" && options.split(',').any(|option| option == "memory"),
        Version::Two => name == "cgroup2",
    };
    is_it.then_some((root, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const ONE: &str = "33 25 0:28 /docker/1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct
36 25 0:31 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

    fn folders(cgroup: &str, mounts: &str) -> Vec<String> {
        groups(cgroup, mounts).iter().map(|group| group.folder.display().to_string()).collect()
    }

    #[test]
    fn groups_are_found_up_to_where_they_are_mounted() {
        let own = ["/sys/fs/cgroup/system.slice/husk.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"];
        assert_eq!(folders("0::/system.slice/husk.service\n", TWO), own);
        assert_eq!(folders("0::/\n", TWO), ["/sys/fs/cgroup"]);
        assert_eq!(folders("0::/../other\n", TWO), ["/sys/fs/cgroup"]);
        let one = "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1/husk\n0::/docker/1\n";
        assert_eq!(folders(one, ONE), ["/sys/fs/cgroup/memory/husk", "/sys/fs/cgroup/memory"]);
        assert_eq!(folders("4:memory:/elsewhere\n", ONE), ["/sys/fs/cgroup/memory"]);
        assert!(folders("", TWO).is_empty() && folders("0::/\n", "").is_empty());
    }

    // spec: RES-09
    #[test]
    fn the_tightest_limit_counts_and_what_could_go_at_once_is_free() {
        let place = tempfile::tempdir().expect("a folder");
        let own = place.path().join("own");
        fs::create_dir(&own).expect("made");
        let write = |folder: &Path, files: &[(&str, &str)]| {
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).expect("written"));
        };
        let all = [&own, place.path()].map(|folder| Group { folder: folder.to_owned(), version: Version::Two });
        let all = ControlGroups(all.into());
        assert_eq!(all.left(), None, "the top has no such files");
        write(&own, &[("memory.max", "max\n"), ("memory.current", "700\n")]);
        assert_eq!(all.left(), None);
        let stat = "anon 250\ninactive_file 200\nactive_file 200\nslab_reclaimable 50\n";
        write(&own, &[("memory.max", "1000\n"), ("memory.stat", stat)]);
        assert_eq!(all.left(), Some(Left { available: 750, capacity: 1000 }));
        write(place.path(), &[("memory.max", "2000\n"), ("memory.current", "1900\n")]);
        assert_eq!(all.left(), Some(Left { available: 100, capacity: 1000 }));

        let one = Group { folder: place.path().join("one"), version: Version::One };
        fs::create_dir(&one.folder).expect("made");
        let stat = "inactive_file 1\ntotal_inactive_file 50\n";
        write(
            &one.folder,
            &[("memory.limit_in_bytes", "400\n"), ("memory.usage_in_bytes", "150\n"), ("memory.stat", stat)],
        );
        assert_eq!(one.left(), Some(Left { available: 300, capacity: 400 }));
    }
}
