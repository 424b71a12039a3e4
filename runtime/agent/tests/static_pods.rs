//! Static pods: a real folder, a real node, and what editors and tools do to files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use husk_agent::{
    AgentConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits, Notice, StaticPods,
    StaticPodsConfig,
};
use husk_core::io::PodUid;
use husk_core::status::{ContainerState, Phase};
use tokio::sync::broadcast::Receiver;

const GUEST: &str = r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#;

/// A test that waits longer is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// A node with a folder of manifests, and what is seen of it.
struct World {
    folder: PathBuf,
    node: Arc<LocalNode>,
    pods: StaticPods,
    notices: Receiver<Notice>,
    seen: Vec<Notice>,
    markers: usize,
    _place: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("manifests");
        fs::create_dir(&folder).expect("made");
        let guest = folder.join("endless.wat");
        fs::write(guest, GUEST).expect("written");
        let config = AgentConfig {
            data_dir: place.path().join("data"),
            cache_dir: None,
            images: ImageTable::new([]),
            images_config: ImagesConfig::default(),
            references: Arc::new(MemoryReferences::default()),
            node_name: "Edge-7".into(),
            limits: NodeLimits::default(),
        };
        let node = Arc::new(LocalNode::start(config).expect("an agent"));
        let notices = node.watch();
        let settings = StaticPodsConfig {
            check: Duration::from_millis(500),
            settle: Duration::from_millis(300),
            ..StaticPodsConfig::new(folder.clone())
        };
        let pods = StaticPods::start(settings, node.clone());
        Self { folder, node, pods, notices, seen: Vec::new(), markers: 0, _place: place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("written");
    }

    async fn until(&mut self, wanted: impl Fn(&Notice) -> bool) -> Notice {
        let wait = async {
            loop {
                let notice = self.notices.recv().await.expect("the agent lives");
                self.seen.push(notice.clone());
                if wanted(&notice) {
                    return notice;
                }
            }
        };
        tokio::time::timeout(STUCK, wait).await.expect("in time")
    }

    /// Waits until another pod runs. Returns its uid.
    async fn until_another_runs(&mut self) -> PodUid {
        let before = self.uids();
        let notice = self
            .until(|notice| matches!(notice, Notice::Status { status, pod, .. } if status.phase == Phase::Running && !before.contains(pod)))
            .await;
        let Notice::Status { pod, .. } = notice else { unreachable!("that was waited for") };
        pod
    }

    /// Waits until the folder was looked at as it is now: a pod that was added to it runs.
    async fn until_looked_at(&mut self) {
        self.markers += 1;
        let name = format!("marker-{}", self.markers);
        self.write(&format!("zz-{name}.yaml"), manifest(&name, ""));
        let _ = self.until_another_runs().await;
    }

    async fn until_problem(&self, text: &str) {
        let mut problems = self.pods.problems();
        let told = problems.wait_for(|problems| problems.iter().any(|problem| problem.to_string().contains(text)));
        let told = tokio::time::timeout(STUCK, told).await.expect("in time");
        told.expect("it lives");
    }

    /// Pods that ever had a status of Running.
    fn uids(&self) -> HashSet<PodUid> {
        let running = |notice: &Notice| match notice {
            Notice::Status { pod, status, .. } if status.phase == Phase::Running => Some(pod.clone()),
            _ => None,
        };
        self.seen.iter().filter_map(running).collect()
    }

    /// So many instances were started of a pod.
    fn starts(&self, uid: &PodUid) -> usize {
        let started = |notice: &&Notice| matches!(notice, Notice::Event { event, .. } if event.pod == *uid && &*event.reason == "Started");
        self.seen.iter().filter(started).count()
    }

    /// Nothing but the first instance of a pod and the markers was ever started.
    fn assert_undisturbed(&self, uid: &PodUid) {
        assert_eq!(self.starts(uid), 1);
        assert_eq!(self.uids().len(), 1 + self.markers, "other pods ran");
        let ends = |notice: &&Notice| {
            matches!(notice, Notice::Gone { .. })
                || matches!(notice, Notice::Event { event, .. } if &*event.reason == "Killing")
        };
        assert_eq!(self.seen.iter().filter(ends).count(), 0, "something was ended");
    }

    async fn end(self) {
        self.pods.stop().await;
        let node = Arc::into_inner(self.node).expect("nobody else has it");
        node.shutdown().await.expect("in order");
    }
}

fn manifest(name: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: app\n    image: endless.wat\n{more}"
    )
}

fn is_gone(notice: &Notice, uid: &PodUid) -> bool {
    matches!(notice, Notice::Gone { pod, .. } if pod == uid)
}

// spec: EDGE-31
// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn edge_31_a_pod_is_the_same_whatever_its_file_is_called_and_laid_out() {
    let mut world = World::new();
    world.write("web.yaml", manifest("web", ""));
    let uid = world.until_another_runs().await;
    fs::rename(world.path("web.yaml"), world.path("site.yml")).expect("renamed");
    world.until_looked_at().await;
    world.assert_undisturbed(&uid);
    // The same pod, written in another way, and over the old one by a rename as good editors do.
    let json = r#"{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"image": "endless.wat", "name": "app"}]},
        "metadata": {"namespace": "default", "name": "web"}}"#;
    world.write("site.yml.new", json);
    fs::rename(world.path("site.yml.new"), world.path("site.yml")).expect("renamed");
    world.until_looked_at().await;
    world.assert_undisturbed(&uid);
    world.write("site.yml", format!("# a remark\n{}", manifest("web", "")));
    world.until_looked_at().await;
    world.assert_undisturbed(&uid);
    world.end().await;
}

// spec: EDGE-31
// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn edge_31_what_editors_leave_makes_no_pods() {
    let mut world = World::new();
    world.write("web.yaml", manifest("web", ""));
    let uid = world.until_another_runs().await;
    let other = manifest("web", "    workingDir: /tmp\n");
    for name in [
        ".web.yaml",
        ".web.yaml.swp",
        ".#web.yaml",
        "#web.yaml#",
        "web.yaml~",
        ".web.yaml.un~",
        "4913",
        "web.yaml.bak",
        "web.yaml.orig",
        "web.yaml.tmp",
        "sedXyZ12",
        "web",
    ] {
        world.write(name, &other);
    }
    // vim: the file goes away under another name, and comes back as a new one.
    fs::rename(world.path("web.yaml"), world.path("web.yaml~")).expect("renamed");
    world.write("web.yaml", manifest("web", ""));
    world.until_looked_at().await;
    world.assert_undisturbed(&uid);
    // A copy that has the right ending: who runs goes on, and the copy is named.
    world.write("a-copy-of-web.yaml", &other);
    world.until_problem("a-copy-of-web.yaml").await;
    world.until_looked_at().await;
    world.assert_undisturbed(&uid);
    world.end().await;
}

// spec: EDGE-31
// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn edge_31_an_edit_is_another_pod_that_waits_for_the_end_of_the_old_one() {
    let mut world = World::new();
    let hook = "    lifecycle: {preStop: {sleep: {seconds: 1}}}\n";
    world.write("web.yaml", manifest("web", hook));
    let old = world.until_another_runs().await;
    world.write("web.yaml", manifest("web", &format!("{hook}    workingDir: /tmp\n")));
    let new = world.until_another_runs().await;
    assert_ne!(old, new);
    let place = |wanted: &dyn Fn(&Notice) -> bool| world.seen.iter().position(wanted).expect("it happened");
    let event = |notice: &Notice, uid: &PodUid, reason: &str| matches!(notice, Notice::Event { event, .. } if event.pod == *uid && &*event.reason == reason);
    // TERM after its hook, not KILL.
    let ended = place(&|notice| match notice {
        Notice::Status { pod, status, .. } if *pod == old => {
            matches!(&status.container_statuses[0].state, ContainerState::Terminated(end) if end.exit_code == 143)
        }
        _ => false,
    });
    assert!(place(&|notice| event(notice, &old, "Killing")) < ended);
    assert!(ended < place(&|notice| event(notice, &new, "Started")));
    // And back: the uid that is made from the content was there before.
    world.write("web.yaml", manifest("web", hook));
    world.until(|notice| is_gone(notice, &new)).await;
    world.until(|notice| matches!(notice, Notice::Status { pod, status, .. } if *pod == old && status.phase == Phase::Running)).await;
    world.end().await;
}

// spec: EDGE-31
// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn edge_31_a_broken_file_keeps_its_pod_and_a_deleted_one_ends_it() {
    let mut world = World::new();
    world.write("web.yaml", manifest("web", ""));
    let uid = world.until_another_runs().await;
    for (broken, said) in [
        ("", "no object in it"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  cont", "web.yaml"),
        (
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: app, image: endless.wat}]}\n",
            "a DaemonSet needs a controller",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: ../../etc}\nspec: {containers: [{name: app, image: endless.wat}]}\n",
            "metadata.uid",
        ),
        ("\u{0}\u{1}", "web.yaml"),
    ] {
        world.write("web.yaml", broken);
        world.until_problem(said).await;
        world.until_looked_at().await;
        world.assert_undisturbed(&uid);
    }
    world.write("web.yaml", manifest("web", ""));
    world.until_looked_at().await;
    assert!(world.pods.problems().borrow().is_empty());
    world.assert_undisturbed(&uid);
    fs::remove_file(world.path("web.yaml")).expect("removed");
    world.until(|notice| is_gone(notice, &uid)).await;
    world.end().await;
}

// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn junk_harms_nobody() {
    let mut world = World::new();
    for n in 0..2000 {
        world.write(&format!("junk-{n}"), "junk");
    }
    fs::create_dir(world.path("folder.yaml")).expect("made");
    std::os::unix::fs::symlink("nowhere", world.path("link.yaml")).expect("linked");
    std::os::unix::fs::symlink("endless.wat", world.path("module.yaml")).expect("linked");
    let made = std::process::Command::new("mkfifo").arg(world.path("pipe.yaml")).status().expect("there is mkfifo");
    assert!(made.success());
    let huge = fs::File::create(world.path("huge.yaml")).expect("made");
    huge.set_len(1 << 30).expect("sparse");
    world.write("web.yaml", manifest("web", ""));
    let uid = world.until_another_runs().await;
    world.until_problem("huge.yaml").await;
    world.until_problem("module.yaml").await;
    assert_eq!(world.pods.problems().borrow().len(), 2);
    world.assert_undisturbed(&uid);
    world.end().await;
}

// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn a_static_pod_that_somebody_deletes_comes_back() {
    let mut world = World::new();
    world.write("web.yaml", manifest("web", ""));
    let uid = world.until_another_runs().await;
    world.node.delete(&uid, Some(0));
    world.until(|notice| is_gone(notice, &uid)).await;
    world.until(|notice| matches!(notice, Notice::Status { pod, status, .. } if *pod == uid && status.phase == Phase::Running)).await;
    world.end().await;
}

// spec: META-12
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_may_go_and_come_and_be_another_one() {
    let mut world = World::new();
    world.write("web.yaml", manifest("web", ""));
    let uid = world.until_another_runs().await;
    let aside = world.folder.with_file_name("aside");
    fs::rename(&world.folder, &aside).expect("renamed");
    world.until_problem("its pods go on").await;
    let again = world.folder.with_file_name("again");
    copy(&aside, &again);
    fs::rename(again, &world.folder).expect("renamed");
    world.until_looked_at().await;
    world.assert_undisturbed(&uid);
    world.end().await;
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("there") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}
