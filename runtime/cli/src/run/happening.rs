//! What can happen in a run, and those who show it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use husk_agent::ContainerView;
use husk_core::event::Event;
use husk_core::status::{ContainerState, ContainerStatus, PodStatus, Terminated};
use husk_engine::Line;

/// A pod of the run.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// Which of the run's pods, from 0.
    pub(crate) place: usize,
    /// `namespace/name`.
    pub(crate) name: Arc<str>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An event was recorded.
    Event(Arc<Event>),
    /// The status changed.
    Status(Arc<PodStatus>, Arc<[ContainerView]>),
    /// A container wrote a line.
    Log(Arc<str>, Line),
    /// So many lines of a container were pushed out of its log before they could be shown.
    Lost(Arc<str>, u64),
    /// Nothing is left of the pod.
    Gone,
}

/// Shows what happens. It has a thread of its own and may wait for its reader; a broken pipe says that there is none any more.
pub(crate) trait Reporter: Send {
    /// Something happened to a pod, so long after the beginning.
    fn happened(&mut self, after: Duration, who: &Who, what: &What) -> io::Result<()>;

    /// Something about the run as a whole.
    fn note(&mut self, after: Duration, text: &str) -> io::Result<()>;

    /// Time has passed.
    fn tick(&mut self, _after: Duration) -> io::Result<()> {
        Ok(())
    }

    /// It is over.
    fn finish(&mut self) {}
}

/// The statuses of all containers, init containers first.
pub(crate) fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let app = status.container_statuses.iter().chain(&status.ephemeral_container_statuses);
    status.init_container_statuses.iter().chain(app)
}

/// What is said of lines that were lost.
pub(crate) fn lost(lines: u64) -> String {
    let lines = if lines == 1 { "1 line was".to_owned() } else { format!("{lines} lines were") };
    format!("{lines} lost: more was written than could be shown")
}

/// The newest end of a container.
pub(crate) fn last_end(status: &ContainerStatus) -> Option<&Terminated> {
    match &status.state {
        ContainerState::Terminated(end) => Some(end),
        ContainerState::Waiting { .. } | ContainerState::Running { .. } => status.last_state.as_ref(),
    }
}

/// Tells ends of containers that weren't told yet.
#[derive(Default)]
pub(crate) struct Ends {
    told: std::collections::HashMap<(usize, String), husk_core::Instant>,
}

impl Ends {
    /// The containers of a status with an end that is new.
    pub(crate) fn new_in<'a>(&mut self, pod: usize, status: &'a PodStatus) -> Vec<(&'a str, &'a Terminated)> {
        let ended = containers(status).filter_map(|container| Some((container.name.as_str(), last_end(container)?)));
        ended
            .filter(|(name, end)| {
                let Some(at) = end.finished_at else { return false };
                self.told.insert((pod, (*name).to_owned()), at) != Some(at)
            })
            .collect()
    }
}
