//! What can happen in a run, and those who show it.

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
    /// Nothing is left of the pod.
    Gone,
}

/// Shows what happens.
pub(crate) trait Reporter {
    /// Something happened to a pod, so long after the beginning.
    fn happened(&mut self, after: Duration, who: &Who, what: &What);

    /// Something about the run as a whole.
    fn note(&mut self, after: Duration, text: &str);

    /// Time has passed.
    fn tick(&mut self, _after: Duration) {}

    /// It is over.
    fn finish(&mut self) {}
}

/// The statuses of all containers, init containers first.
pub(crate) fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let app = status.container_statuses.iter().chain(&status.ephemeral_container_statuses);
    status.init_container_statuses.iter().chain(app)
}

/// The newest end of a container.
pub(crate) fn last_end(status: &ContainerStatus) -> Option<&Terminated> {
    match &status.state {
        ContainerState::Terminated(end) => Some(end),
        ContainerState::Waiting { .. } | ContainerState::Running { .. } => status.last_state.as_ref(),
    }
}

/// Container of an event; none if it is about the pod.
pub(crate) fn container_of(event: &Event) -> Option<&str> {
    event.field_path.split_once('{').map(|(_, rest)| rest.trim_end_matches('}'))
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
