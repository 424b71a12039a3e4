//! Where attacks happen: an agent, somebody beside whom they happen, and what is looked at after each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::attack::{Attack, End, with_data};
use crate::world::{World, shell};

/// A minute of looks: nothing takes so long, and what waits longer is stuck.
const LOOKS: u32 = 3000;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
/// Ticks of the neighbour that have to follow.
const TICKS: u64 = 3;
/// Bytes that the agent may have more in the end, for the modules that it keeps compiled, and what the allocator keeps after reading
/// megabytes of text, of which guests in the field are not.
const KEPT: u64 = 112 << 20;
/// Threads that it may have more: those that read files for guests wait for more work for a while, and the busier the machine the more
/// they are.
const IDLE_THREADS: usize = 128;
/// Bytes that it may write to its own log, whatever a guest does.
const SAID: usize = 16 << 10;

/// What the memories of a module begin with.
const MEMORY_IMAGE: &str = "/memfd:wasm-memory-image (deleted)";

const CODE: &str = ".cwasm";

/// An agent with a pod that nothing is to happen to.
pub(crate) struct Arena {
    pub(crate) world: World,
    /// What the neighbour writes to.
    ticks: PathBuf,
    before: Held,
}

/// Lets all attacks happen, in two places at once: most of the time is spent waiting.
pub(crate) fn withstand(attacks: impl IntoIterator<Item = Attack>) {
    let (here, there): (Vec<_>, Vec<_>) = attacks.into_iter().zip(0..).partition(|(_, n)| n % 2 == 0);
    let happen =
        |attacks: Vec<(Attack, usize)>| Arena::new(&[]).withstands(attacks.into_iter().map(|(attack, _)| attack));
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| happen(there));
        happen(here);
        elsewhere.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// What the agent's process holds.
#[derive(Debug)]
struct Held {
    folders: BTreeSet<PathBuf>,
    /// What its descriptors are of, and how many of each.
    files: BTreeMap<PathBuf, usize>,
    threads: usize,
    memory: u64,
}

impl Arena {
    pub(crate) fn new(more: &[&str]) -> Self {
        Self::of(World::new(more))
    }

    pub(crate) fn of(mut world: World) -> Self {
        let mut neighbour = shell("while true; do echo x >> /data/ticks; sleep 0.02; done");
        with_data(&mut neighbour);
        world.create("neighbour", &neighbour);
        let pod = world.running("neighbour");
        let uid = pod["metadata"]["uid"].as_str().expect("a uid");
        let ticks = world.data.join("pods").join(uid).join("volumes/data/ticks");
        world.until("the neighbour ticks", |_| ticks.exists().then_some(()));
        let before = held(&world);
        Self { world, ticks, before }
    }

    /// Lets all attacks happen, one after the other. A failure doesn't hide those of others.
    pub(crate) fn withstands(&mut self, attacks: impl IntoIterator<Item = Attack>) {
        let mut failures = Vec::new();
        for (number, attack) in attacks.into_iter().enumerate() {
            let begun = std::time::Instant::now();
            let outcome = self.happens(&attack, number);
            println!("{:>6} ms  {}", begun.elapsed().as_millis(), attack.name);
            failures.extend(outcome.err().map(|error| format!("{}: {error}", attack.name)));
        }
        let now = held(&self.world);
        if now.threads > self.before.threads + IDLE_THREADS {
            failures.push(format!("{} threads are left, {} were there", now.threads, self.before.threads));
        }
        if now.memory > self.before.memory + KEPT {
            failures.push(format!("{} MiB are left, {} were there", now.memory >> 20, self.before.memory >> 20));
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    /// One attack, and what is left of it.
    fn happens(&mut self, attack: &Attack, number: usize) -> Result<(), String> {
        let name = format!("attack-{number}");
        let memory = held(&self.world).memory;
        self.forget_peak();
        let said = self.world.log().len();
        let spec = attack.pod(&self.world.path(""), number);
        self.world.create(&name, &spec);
        let mut last = Value::Null;
        let ended = self.wait(|arena| {
            last = arena.world.pod(&name)?;
            is_over(arena, &last, &attack.end)
        });
        let mut failures = Vec::new();
        if ended != Some(true) {
            failures.push(format!(
                "it ends otherwise: {} {} {}",
                last["status"]["phase"], last["status"]["message"], last["status"]["containerStatuses"]
            ));
        }
        failures.extend(self.others_go_on().err());
        let grown = self.world.peak_memory().saturating_sub(memory);
        if grown > attack.growth {
            failures.push(format!("the agent grew by {} MiB", grown >> 20));
        }
        if self.world.log().len() > said + SAID {
            failures.push("the agent has much to say".into());
        }
        self.world.delete(&name);
        let is_gone = |arena: &Self| {
            let now = held(&arena.world);
            let open = |held: &Held| held.files.values().sum::<usize>();
            let nothing_left = now.folders.is_subset(&arena.before.folders) && open(&now) <= open(&arena.before);
            (nothing_left && arena.world.pod(&name).is_none()).then_some(())
        };
        if self.wait(is_gone).is_none() {
            let now = held(&self.world);
            failures.push(format!("something is left of it: {:?}, then {now:?}", self.before));
            // Which is not the fault of those who follow.
            self.before = now;
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
    }

    /// The agent answers and its other pod goes on.
    fn others_go_on(&self) -> Result<(), String> {
        let answer = self.world.get("/readyz").ok_or("the agent doesn't answer")?;
        if answer.code != 200 {
            return Err(format!("the agent isn't ready: {}", answer.body));
        }
        let count = || fs::metadata(&self.ticks).map_or(0, |ticks| ticks.len() / 2);
        let wanted = count() + TICKS;
        self.wait(|_| (count() >= wanted).then_some(())).ok_or("the neighbour has stopped")?;
        let neighbour = self.world.pod("neighbour").ok_or("the neighbour is gone")?;
        let restarts = crate::world::restarts(&neighbour);
        if restarts > 0 { Err(format!("the neighbour ended: {}", neighbour["status"])) } else { Ok(()) }
    }

    /// From now on the peak of the agent's memory is counted anew.
    fn forget_peak(&self) {
        let told = fs::write(format!("/proc/{}/clear_refs", self.world.pid()), "5");
        told.expect("the process is ours");
    }

    /// Waits for something, but not for ever.
    fn wait<T>(&self, mut look: impl FnMut(&Self) -> Option<T>) -> Option<T> {
        for _ in 0..LOOKS {
            if let Some(seen) = look(self) {
                return Some(seen);
            }
            std::thread::sleep(PAUSE);
        }
        None
    }
}

/// Whether an attack has ended as it has to; none if it hasn't ended yet.
fn is_over(arena: &Arena, pod: &Value, wanted: &End) -> Option<bool> {
    let status = &pod["status"];
    let state = &status["containerStatuses"][0]["state"];
    let (ended, waiting) = (&state["terminated"], &state["waiting"]);
    let says = |at: &Value, text: &str| at["message"].as_str().unwrap_or_default().contains(text);
    if let End::BacksOff(reason, code) = wanted {
        let last = &status["containerStatuses"][0]["lastState"]["terminated"];
        let is_so = last["reason"] == *reason && last["exitCode"] == *code;
        return (waiting["reason"] == "CrashLoopBackOff").then_some(is_so);
    }
    if let End::Evicted(message) = wanted {
        return (status["phase"] == "Failed").then(|| status["reason"] == "Evicted" && says(status, message));
    }
    if !ended.is_null() {
        let (code, reason) = (ended["exitCode"].as_i64()?, ended["reason"].as_str()?);
        let usual = if code == 0 { "Completed" } else { "Error" };
        return Some(match wanted {
            End::Exits(wanted) => (code, reason) == (*wanted, usual),
            End::Says(wanted, is_right) => {
                (code, reason) == (*wanted, usual) && is_right(ended["message"].as_str().unwrap_or_default())
            }
            End::OomKilled => (code, reason) == (137, "OOMKilled"),
            _ => false,
        });
    }
    if ["ErrImagePull", "ImagePullBackOff"].iter().any(|reason| waiting["reason"] == *reason) {
        return Some(matches!(wanted, End::Refused(message) if says(waiting, message)));
    }
    if waiting["reason"] == "CreateContainerError" {
        return Some(matches!(wanted, End::NotCreated(message) if says(waiting, message)));
    }
    let runs = !state["running"].is_null();
    match wanted {
        End::GoesOn if runs => Some(true),
        End::Writes(text) if runs => {
            let name = pod["metadata"]["name"].as_str()?;
            arena.world.written_by(name, "app-0")?.contains(text).then_some(true)
        }
        _ => None,
    }
}

fn held(world: &World) -> Held {
    let process = PathBuf::from(format!("/proc/{}", world.pid()));
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = BTreeMap::new();
    for target in entries(process.join("fd")).filter_map(|file| fs::read_link(file).ok()) {
        // A socket's number says nothing about it.
        let kind = target.to_string_lossy().split(":[").next().unwrap_or_default().into();
        // Compiled modules, of which the engine keeps so many: their code, and what their memories begin with.
        if target != Path::new(MEMORY_IMAGE) && !target.to_string_lossy().contains(CODE) {
            *files.entry(kind).or_default() += 1;
        }
    }
    // The engine has a folder in the second, with those of its containers.
    let engines = entries(world.data.join("containers"));
    let folders = engines.flat_map(entries).chain(entries(world.data.join("pods"))).collect();
    let status = fs::read_to_string(process.join("status")).expect("it runs");
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Held { folders, files, threads: entries(process.join("task")).count(), memory: kib.unwrap_or(0) << 10 }
}
