//! Keeps the volumes of running pods as they shall be: their files follow the objects they are made from, and what they may hold is
//! held against what they do hold.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use crate::sandbox::{Ground, Sandbox};
use crate::volumes::{Limits, Mounted};

/// Volumes are measured that often at most.
const PERIOD: Duration = Duration::from_secs(2);
/// One part in so many of a processor's time goes into measuring a pod's volumes.
const SHARE: u32 = 50;
/// Volumes in memory are measured after so long whatever it takes: what they hold is bounded by nothing else.
const MEMORY_PERIOD: Duration = Duration::from_secs(5);

/// A pod whose volumes are made: the object, and what was made.
pub(crate) type Kept = (Arc<Pod>, Arc<Sandbox>);

/// Whether volumes are being brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Updating {
    /// They aren't.
    #[default]
    No,
    /// They are.
    Once,
    /// They are, and something has changed since that began.
    AndAgain,
}

/// Brings the volumes of pods up to date. Takes as long as there are files to be written.
pub(crate) fn update(ground: &Ground, pods: &[Kept]) {
    // What an image has never changes.
    let images = Mounted::default();
    for (pod, sandbox) in pods {
        sandbox.volumes.update(ground.world(pod, &images));
    }
}

/// Measures the volumes of a pod from time to time until one holds too much, and says so, or until the pod is gone.
pub(crate) async fn overflow(limits: Limits, sandbox: Weak<Sandbox>) -> Option<String> {
    let mut pause = PERIOD;
    loop {
        tokio::time::sleep(pause).await;
        let (sandbox, limits) = (sandbox.upgrade()?, limits.clone());
        let are_of_memory = limits.are_of_memory();
        let measured = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            (limits.exceeded(&sandbox.volumes), began.elapsed())
        });
        let (over, took) = measured.await.ok()?;
        if over.is_some() {
            return over;
        }
        pause = pause_after(took, are_of_memory);
    }
}

fn pause_after(took: Duration, are_of_memory: bool) -> Duration {
    let pause = PERIOD.max(took * SHARE);
    if are_of_memory { pause.min(MEMORY_PERIOD) } else { pause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_files_keep_nobody_from_measuring_what_is_in_memory() {
        for (took, on_disk, in_memory) in [(0, 2, 2), (80, 4, 4), (2000, 100, 5)] {
            let pauses = [false, true].map(|of_memory| pause_after(Duration::from_millis(took), of_memory).as_secs());
            assert_eq!(pauses, [on_disk, in_memory]);
        }
    }
}
