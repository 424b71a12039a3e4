//! A recorder for each pod of a simulation.

use husk_core::io::PodUid;
use husk_core::{Action, Input, Instant, Node};
use husk_sim::play::End;
use husk_sim::{Subject, Watch};
use husk_timeline::{Recorder, Timeline};

/// One for each pod.
pub(super) struct Recorders(Vec<(PodUid, Recorder)>);

impl Recorders {
    /// For the pods of a simulation.
    pub(super) fn new(subjects: &[Subject]) -> Self {
        let recorder = |subject: &Subject| {
            let recorder = Recorder::new(Instant::ZERO, &subject.meta, &subject.spec);
            (PodUid::from(subject.id.as_str()), recorder)
        };
        Self(subjects.iter().map(recorder).collect())
    }

    /// What they wrote.
    pub(super) fn timelines(self, end: End) -> Vec<Timeline> {
        let written = self.0.iter().map(|(_, recorder)| match end {
            End::Over(at) => recorder.timeline(at).finished(at),
            End::Cut(at) => recorder.timeline(at).cut(at),
        });
        written.collect()
    }
}

impl Watch for Recorders {
    fn input(&mut self, now: Instant, input: &Input) {
        let about = input.pod();
        for (_, recorder) in self.0.iter_mut().filter(|(pod, _)| about.as_ref() == Some(pod)) {
            recorder.input(now, input);
        }
    }

    fn action(&mut self, now: Instant, action: &Action) {
        for (_, recorder) in self.0.iter_mut().filter(|(pod, _)| action.pod() == pod) {
            recorder.action(now, action);
        }
    }

    fn settled(&mut self, now: Instant, node: &Node) {
        for (pod, recorder) in &mut self.0 {
            if let Some(status) = node.status(pod) {
                recorder.settled(now, status);
            }
        }
    }
}
