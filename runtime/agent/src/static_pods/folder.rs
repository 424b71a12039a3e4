//! What a folder of manifests holds, as far as it has come to rest.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use husk_api::{Gates, Problem};
use husk_core::io::PodUid;

use super::StaticPodsConfig;
use super::manifest::{self, Identity, StaticPod};
use super::problem::ManifestProblem;

/// What names of manifests end in. Whatever editors and tools leave beside them doesn't.
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// So many problems of a file are remembered.
const MOST_PROBLEMS: usize = 20;

/// A folder and what was last seen in it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    node_name: String,
    settle: Duration,
    gates: Gates,
    files: BTreeMap<OsString, Known>,
    wanted: BTreeMap<Identity, StaticPod>,
    /// Why the folder as a whole can't be read.
    unreadable: Option<String>,
}

/// A file as it was last read.
#[derive(Debug, Default)]
struct Known {
    stamp: Option<Stamp>,
    /// Those of its last version that could be taken.
    pods: Vec<StaticPod>,
    /// What is wrong with its present version.
    problems: Vec<Problem>,
    gone_since: Option<Instant>,
}

/// Tells versions of a file apart without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    number: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        let modified = (about.mtime(), about.mtime_nsec());
        Self { number: (about.dev(), about.ino()), length: about.len(), modified }
    }
}

impl Known {
    fn problems(&self) -> impl Iterator<Item = ManifestProblem> {
        self.problems.iter().map(|problem| ManifestProblem::of(problem.clone(), &self.pods))
    }
}

impl Folder {
    /// A folder in which nothing was seen yet but, in an earlier life, these pods: they were in the last good versions of their files.
    pub(super) fn new<'a>(
        config: StaticPodsConfig,
        node_name: String,
        before: impl IntoIterator<Item = &'a StaticPod>,
    ) -> Self {
        let StaticPodsConfig { folder: path, settle, gates, .. } = config;
        let mut files: BTreeMap<OsString, Known> = BTreeMap::new();
        for pod in before {
            if let Some(name) = pod.file() {
                files.entry(name).or_default().pods.push(pod.clone());
            }
        }
        Self { path, node_name, settle, gates, files, wanted: BTreeMap::new(), unreadable: None }
    }

    /// The pods that are to run.
    pub(super) fn wanted(&self) -> &BTreeMap<Identity, StaticPod> {
        &self.wanted
    }

    /// Was it listed, and every file in it read and taken? Only then no other pod can be in it.
    pub(super) fn is_known(&self) -> bool {
        self.unreadable.is_none() && self.files.values().all(|file| file.stamp.is_some() && file.problems.is_empty())
    }

    /// Looks what is there. False if something hasn't come to rest and is to be looked at again.
    pub(super) fn list(&mut self, now: Instant, clock: SystemTime) -> bool {
        let entries = match fs::read_dir(&self.path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => entries,
            Err(error) => {
                // A disk that isn't there for a moment is no reason to end all that came from it.
                self.unreadable = Some(format!("can't list the folder of static pods: {error}; its pods go on"));
                return true;
            }
        };
        self.unreadable = None;
        let mut settled = true;
        let mut seen = HashSet::new();
        for name in entries.into_iter().map(|entry| entry.file_name()).filter(is_manifest) {
            let path = self.path.join(&name);
            // Of what a link leads to.
            let about = match fs::metadata(&path) {
                Ok(about) => about,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    // Whatever it is that keeps it from being looked at, its pods go on.
                    let known = self.files.entry(name.clone()).or_default();
                    known.problems = vec![problem(&path, format!("can't be looked at: {error}"))];
                    (known.stamp, known.gone_since) = (None, None);
                    seen.insert(name);
                    continue;
                }
            };
            if !about.is_file() {
                continue;
            }
            let stamp = Stamp::of(&about);
            let known = self.files.entry(name.clone()).or_default();
            known.gone_since = None;
            seen.insert(name);
            if known.stamp == Some(stamp) {
                continue;
            }
            let age = about.modified().ok().and_then(|modified| clock.duration_since(modified).ok());
            if age.is_some_and(|age| age < self.settle) {
                settled = false;
                continue;
            }
            let bytes = match read(&path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    // Tried again at every look: nothing of the file need change for it to be readable again.
                    known.stamp = None;
                    known.problems = vec![problem(&path, format!("can't be read: {error}"))];
                    continue;
                }
            };
            known.stamp = Some(stamp);
            match text(bytes, &path).and_then(|text| manifest::read(&text, &path, &self.node_name, &self.gates)) {
                Ok(pods) => (known.pods, known.problems) = (pods, Vec::new()),
                Err(problems) => known.problems = few(problems, &path),
            }
        }
        let settle = self.settle;
        self.files.retain(|name, known| {
            if seen.contains(name) {
                return true;
            }
            let stays_away = now.saturating_duration_since(*known.gone_since.get_or_insert(now)) >= settle;
            settled &= stays_away;
            !stays_away
        });
        settled
    }

    /// Decides which pods are to run, and says what stands against others. Of two files with one pod the one counts whose pod runs,
    /// so that a copy that was left there changes nothing; if none does, the first by name.
    pub(super) fn choose(&mut self, running: &HashSet<PodUid>) -> Vec<ManifestProblem> {
        let unreadable =
            self.unreadable.iter().map(|message| ManifestProblem::of(problem(&self.path, message.clone()), []));
        let mut problems: Vec<ManifestProblem> =
            unreadable.chain(self.files.values().flat_map(Known::problems)).collect();
        let mut chosen: BTreeMap<Identity, (&Path, bool, &StaticPod)> = BTreeMap::new();
        for (name, known) in &self.files {
            let is_there = known.gone_since.is_none();
            for pod in &known.pods {
                let rival = chosen.get(&pod.identity).copied();
                let Some((first, first_is_there, rival)) = rival else {
                    chosen.insert(pod.identity.clone(), (Path::new(name), is_there, pod));
                    continue;
                };
                let better = (is_there, running.contains(&pod.uid)) > (first_is_there, running.contains(&rival.uid));
                if better {
                    chosen.insert(pod.identity.clone(), (Path::new(name), is_there, pod));
                }
                if is_there && first_is_there {
                    let (loser, winner, runs) =
                        if better { (first, Path::new(name), pod) } else { (Path::new(name), first, rival) };
                    let message = format!(
                        "pod {} is in {} already and runs from there; remove one of them, or rename its pod",
                        pod.identity,
                        winner.display()
                    );
                    problems.push(ManifestProblem::of(problem(&self.path.join(loser), message), [runs]));
                }
            }
        }
        let mut uids = HashSet::new();
        let mut wanted = BTreeMap::new();
        for (identity, (name, _, pod)) in chosen {
            if uids.insert(pod.uid.clone()) {
                wanted.insert(identity, pod.clone());
            } else {
                let message = format!("uid {} is another pod's: leave metadata.uid out", pod.uid);
                problems.push(ManifestProblem::of(problem(&self.path.join(name), message), []));
            }
        }
        self.wanted = wanted;
        problems
    }
}

fn is_manifest(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| !name.starts_with('.') && ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// What is in a file, or as much of it as shows that it is too long to be a manifest.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(husk_api::MAX_BYTES).unwrap_or(u64::MAX);
    // Should a pipe have taken its place, nobody waits for a writer.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>, path: &Path) -> Result<String, Vec<Problem>> {
    let failed = |message: String| vec![problem(path, message)];
    if bytes.len() > husk_api::MAX_BYTES {
        let limit = husk_api::MAX_BYTES;
        return Err(failed(format!("is longer than {limit} bytes: split it, a manifest is never that long")));
    }
    String::from_utf8(bytes).map_err(|_| failed("is not text: save it as UTF-8".into()))
}

/// A file of any kind may be nothing but problems.
fn few(mut problems: Vec<Problem>, path: &Path) -> Vec<Problem> {
    let more = problems.len().saturating_sub(MOST_PROBLEMS);
    if more > 0 {
        problems.truncate(MOST_PROBLEMS);
        problems.push(problem(path, format!("has {more} more problems: `husk check {}` shows all", path.display())));
    }
    problems
}

pub(super) fn problem(path: &Path, message: String) -> Problem {
    Problem { file: path.display().to_string(), document: 1, line: None, path: String::new(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(path: &Path) -> Folder {
        let config = StaticPodsConfig { settle: Duration::ZERO, ..StaticPodsConfig::new(path.to_owned()) };
        Folder::new(config, "node".into(), [])
    }

    #[test]
    fn of_a_file_that_is_nothing_but_problems_few_are_remembered() {
        let place = tempfile::tempdir().expect("a folder");
        let lines: String = (0..1000).map(|n| format!("field{n}: 1\n")).collect();
        let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: []}}\n{lines}");
        fs::write(place.path().join("a.yaml"), text).expect("written");
        let mut folder = folder_of(place.path());
        folder.list(Instant::now(), SystemTime::now());
        let problems = folder.choose(&HashSet::new());
        assert_eq!(problems.len(), MOST_PROBLEMS + 1);
        assert!(problems[MOST_PROBLEMS].problem.message.contains("more problems"), "{:?}", problems[MOST_PROBLEMS]);
    }

    #[test]
    fn a_file_that_cannot_be_looked_at_ends_no_pod() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("a.yaml");
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: x}]}";
        let mut folder = folder_of(place.path());
        let mut look = || {
            let settled = folder.list(Instant::now(), SystemTime::now());
            let problems = folder.choose(&HashSet::new()).len();
            (settled, folder.wanted().len(), problems)
        };
        fs::write(&file, text).expect("written");
        assert_eq!(look(), (true, 1, 0));
        // A link to itself is there, and nobody can tell what it leads to.
        fs::remove_file(&file).expect("removed");
        std::os::unix::fs::symlink(&file, &file).expect("linked");
        assert_eq!(look(), (true, 1, 1));
        assert_eq!(look(), (true, 1, 1));
        fs::remove_file(&file).expect("removed");
        fs::write(&file, text).expect("written");
        assert_eq!(look(), (true, 1, 0));
    }
}
