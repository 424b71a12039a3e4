//! What containers do.

use husk_core::io::ProbeOutcome;
use husk_core::spec::{ContainerKind, ContainerSpec};

use super::dice::Dice;
use super::pods::CODES;
use crate::scenario::{
    Clock, HookScript, Hooks, ImageScript, PodScript, ProbeScript, Probes, ResizeScript, Run, Script, SetUp,
    StartScript, StopScript, Subject, TearDown, TrapName, Window,
};
use crate::span::Span;

const TRAPS: [TrapName; 5] =
    [TrapName::Unreachable, TrapName::Arithmetic, TrapName::Fault, TrapName::OutOfMemory, TrapName::OutOfFuel];

impl Dice {
    /// What happens to a pod that is created within so many seconds.
    pub(super) fn pod_script(&mut self, subject: &Subject, within: u64) -> PodScript {
        let containers = subject.spec.all_containers().map(|(kind, spec)| (spec.name.clone(), self.script(kind, spec)));
        PodScript {
            containers: containers.collect(),
            applied: if self.one_in(2) { Span::default() } else { self.time(within.div_ceil(2)) },
            set_up: Some(SetUp { takes: self.span_up_to(5), fails: *self.pick(&[0, 0, 0, 0, 1, 3]) }),
            tear_down: Some(TearDown { takes: self.span_up_to(5) }),
        }
    }

    fn script(&mut self, kind: ContainerKind, spec: &ContainerSpec) -> Script {
        let stays = kind != ContainerKind::Init || spec.is_sidecar();
        let runs = 1 + self.below(4);
        Script {
            image: ImageScript {
                takes: self.span_up_to(30),
                fails: *self.pick(&[0, 0, 0, 0, 1, 2, 5]),
                reason: (*self.pick(&["ErrImagePull", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"])).into(),
                message: "no such image".into(),
            },
            start: StartScript {
                takes: self.span_up_to(10),
                fails: *self.pick(&[0, 0, 0, 0, 1, 2]),
                reason: (*self.pick(&["RunContainerError", "CreateContainerError", "CreateContainerConfigError"]))
                    .into(),
                message: "no entry".into(),
            },
            runs: (0..runs).map(|_| self.run(stays)).collect(),
            on_stop: self.on_stop(),
            probes: Probes {
                liveness: self.probe_script(),
                readiness: self.probe_script(),
                startup: self.probe_script(),
            },
            hooks: Hooks { post_start: self.hook_script(), pre_stop: self.hook_script() },
            resize: ResizeScript { takes: self.span_up_to(30), fails: *self.pick(&[0, 0, 0, 1, 3]) },
        }
    }

    fn run(&mut self, stays: bool) -> Run {
        if stays && self.one_in(3) {
            return Run::default();
        }
        let mut run = Run { duration: Some(self.span()), message: String::new(), exit: None, trap: None };
        if self.one_in(6) {
            run.trap = Some(*self.pick(&TRAPS));
        } else if stays || self.one_in(3) {
            run.exit = Some(*self.pick(&CODES));
        }
        run
    }

    fn on_stop(&mut self) -> StopScript {
        match self.below(4) {
            0 => StopScript { ignores: true, ..StopScript::default() },
            1 => StopScript { takes: Some(self.span()), exit: Some(*self.pick(&CODES)), ignores: false },
            _ => StopScript::default(),
        }
    }

    fn probe_script(&mut self) -> ProbeScript {
        let windows = *self.pick(&[0, 0, 1, 2, 4]);
        ProbeScript {
            takes: self.maybe(3, &[0, 1, 500, 1000, 3000, 20_000]).map(Span::millis),
            fails: (0..windows).map(|_| self.window()).collect(),
            message: None,
        }
    }

    fn window(&mut self) -> Window {
        let from = self.span();
        let outcomes = [ProbeOutcome::Warning, ProbeOutcome::Unknown, ProbeOutcome::Error, ProbeOutcome::Success];
        Window {
            from,
            to: (!self.one_in(4)).then(|| Span(from.0 + self.span().0 + Span::millis(1).0)),
            since: *self.pick(&[Clock::Beginning, Clock::Start, Clock::Start]),
            attempt: self.maybe(3, &[0, 1, 2]),
            says: self.maybe(4, &outcomes),
        }
    }

    fn hook_script(&mut self) -> HookScript {
        let takes = if self.one_in(8) { Span::secs(100_000) } else { self.span_up_to(61) };
        HookScript { takes, fails: self.maybe(5, &["it failed"]).map(String::from) }
    }
}
