//! What pods and the machine use, measured from time to time for those who ask (RES-13).
//!
//! As with cAdvisor and metrics-server, what is shown is what was measured last, and a share of the processors is what was used of
//! them between two looks.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use husk_core::Instant;
use husk_core::cpu::Usage;
use husk_core::io::PodUid;
use husk_engine::MemoryUse;
use k8s_openapi::api::core::v1::Pod;

use crate::machine;

/// How often it is measured, as cAdvisor does it.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// What was measured last. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Measures {
    /// When the agent began, by the node's clock, which may be older.
    began: Instant,
    last: Arc<Mutex<Option<Arc<Measured>>>>,
}

/// All that was measured at once.
#[derive(Debug)]
pub(crate) struct Measured {
    /// When, by the node's clock.
    at: Instant,
    /// When, by the wall clock.
    pub(crate) time: SystemTime,
    /// Since the look before; since the start of the agent at the first one.
    pub(crate) window: Duration,
    /// How many looks there were.
    pub(crate) number: u64,
    /// The machine; none if it doesn't say.
    pub(crate) machine: Option<MachineUse>,
    /// Those that have an address.
    pub(crate) pods: HashMap<PodUid, PodUse>,
}

/// What the whole machine uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineUse {
    /// Processor time since it was started.
    pub(crate) cpu: Duration,
    /// Bytes that nobody else could have.
    pub(crate) memory: u64,
    /// Processors that were busy between the last two looks.
    pub(crate) cores: f64,
}

/// What a pod uses.
#[derive(Clone, Debug)]
pub(crate) struct PodUse {
    pub(crate) pod: Arc<Pod>,
    /// All its containers, those that are gone included.
    pub(crate) cpu: Usage,
    /// Those that run.
    pub(crate) containers: Vec<ContainerUse>,
}

/// What a container uses that runs.
#[derive(Clone, Debug)]
pub(crate) struct ContainerUse {
    pub(crate) name: String,
    /// Since it was started.
    pub(crate) cpu: Usage,
    pub(crate) memory: MemoryUse,
    /// Processors that it used between the last two looks.
    pub(crate) cores: f64,
}

impl Measures {
    /// Of an agent that begins now.
    pub(crate) fn new(began: Instant) -> Self {
        Self { began, last: Arc::default() }
    }

    /// What was measured last; none before the first look.
    pub(crate) fn last(&self) -> Option<Arc<Measured>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what pods use now. How many processors that is, is worked out here.
    pub(crate) fn take(&self, at: Instant, mut pods: HashMap<PodUid, PodUse>) {
        let before = self.last();
        let window = at.saturating_since(before.as_ref().map_or(self.began, |before| before.at));
        let cores = |now: Duration, before: Duration| {
            if window.is_zero() { 0.0 } else { now.saturating_sub(before).as_secs_f64() / window.as_secs_f64() }
        };
        for (uid, pod) in &mut pods {
            let known = before.as_ref().and_then(|before| before.pods.get(uid));
            for container in &mut pod.containers {
                let known = known.and_then(|pod| pod.containers.iter().find(|known| known.name == container.name));
                // One that was started since has used less than the one before.
                let before = known.map(|known| known.cpu.cpu).filter(|before| *before <= container.cpu.cpu);
                container.cores = cores(container.cpu.cpu, before.unwrap_or_default());
            }
        }
        let machine = MachineUse::now().map(|machine| {
            let before = before.as_ref().and_then(|before| before.machine);
            // At the first look nothing is known of what was busy before.
            MachineUse { cores: before.map_or(0.0, |before| cores(machine.cpu, before.cpu)), ..machine }
        });
        let number = before.map_or(0, |before| before.number) + 1;
        let measured = Measured { at, time: SystemTime::now(), window, number, machine, pods };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(measured));
    }
}

impl PodUse {
    /// Bytes of memory that all its containers hold.
    pub(crate) fn memory(&self) -> u64 {
        self.containers.iter().map(|container| container.memory.used).sum()
    }
}

impl MachineUse {
    fn now() -> Option<Self> {
        let cpu = busy(&fs::read_to_string("/proc/stat").ok()?)?;
        let memory = machine::memory()?;
        Some(Self { cpu, memory: memory.capacity.saturating_sub(memory.available), cores: 0.0 })
    }
}

/// Time of the processors that was not idle, from `/proc/stat`.
fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
    let busy: u64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|field| ticks.get(*field)).sum();
    Some(Duration::from_secs_f64(busy as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(cpu: u64) -> HashMap<PodUid, PodUse> {
        let usage = Usage { cpu: Duration::from_millis(cpu), ..Usage::default() };
        let container = ContainerUse { name: "app".into(), cpu: usage, memory: MemoryUse::default(), cores: 0.0 };
        let pod = PodUse { pod: Arc::default(), cpu: usage, containers: vec![container] };
        [(PodUid::from("uid"), pod)].into()
    }

    fn cores(measures: &Measures) -> f64 {
        measures.last().expect("measured").pods[&PodUid::from("uid")].containers[0].cores
    }

    // spec: RES-13
    #[test]
    fn a_share_is_what_was_used_between_two_looks() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let measures = Measures::new(at(5));
        measures.take(at(10), pod(500));
        assert_eq!(cores(&measures), 0.1, "since the agent began");
        measures.take(at(10), HashMap::new());
        measures.take(at(20), pod(2500));
        assert_eq!(cores(&measures), 0.25);
        measures.take(at(25), pod(7500));
        assert_eq!(cores(&measures), 1.0);
        // It was started anew meanwhile.
        measures.take(at(35), pod(5000));
        assert_eq!(cores(&measures), 0.5);
        measures.take(at(35), pod(5000));
        assert_eq!(cores(&measures), 0.0, "at once again");
    }

    #[test]
    fn what_the_kernel_says_is_read() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 90 0\ncpu0 1 1 1 1\n";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(busy(stat), Some(Duration::from_secs_f64(171.0 / ticks as f64)));
        assert!(MachineUse::now().is_some_and(|machine| machine.memory > 0));
    }
}
