//! The phase of every pod with up to two init containers, up to one sidecar and one or two app containers.

use husk_core::phase::{PhaseInput, phase};
use husk_core::spec::{ContainerSpec, PodSpec, RestartPolicy};
use husk_core::status::{ContainerState, ContainerStatus, Phase, Terminated};
use husk_core::statuses::Statuses;
use husk_core::time::Instant;

use super::{POLICIES, container, sidecar};

/// Where a container is in its life.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    /// Was not started yet.
    Waiting,
    /// Runs; a sidecar may not have started up.
    Starting,
    Running,
    /// Ended with that code.
    Ended(i32),
    /// Ended with that code and waits to run again.
    Again(i32),
}

#[derive(Clone, Debug)]
struct Case {
    policy: RestartPolicy,
    /// With the policy of its own, if any.
    init: Vec<(Option<RestartPolicy>, Is)>,
    sidecar: Option<Is>,
    /// The sidecar stands before the init containers, or behind them.
    sidecar_first: bool,
    apps: Vec<(Option<RestartPolicy>, Is)>,
    /// The pod is over: deleted, evicted, past its deadline.
    over: bool,
    /// It comes from a file on the node.
    is_static: bool,
}

impl Case {
    /// Does the container of that policy run again after ending with that code? "Container restart policy".
    fn again(&self, own: Option<RestartPolicy>, code: i32) -> bool {
        match own.unwrap_or(self.policy) {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => code != 0,
            RestartPolicy::Never => false,
        }
    }

    fn initialized(&self) -> bool {
        self.init.iter().all(|(_, is)| matches!(is, Is::Ended(0)))
    }

    /// App containers were begun with.
    fn apps_begun(&self) -> bool {
        self.apps.iter().any(|(_, is)| *is != Is::Waiting)
    }

    /// Can a pod be like that? "Init containers": one after the other, each to its success, then the app containers. "Sidecar
    /// containers": the next one starts when the sidecar has started. Who waits to run again is one that does run again.
    fn possible(&self) -> bool {
        let up = matches!(self.sidecar, None | Some(Is::Running | Is::Ended(_) | Is::Again(_)));
        let init_begun = self.init.iter().any(|(_, is)| *is != Is::Waiting);
        let in_order = self.init.windows(2).all(|pair| matches!(pair[0].1, Is::Ended(0)) || pair[1].1 == Is::Waiting);
        let sidecar_in_turn = self
            .sidecar
            .is_none_or(|is| is == Is::Waiting || if self.sidecar_first { true } else { self.initialized() });
        // Init code 0 is never run again, and who doesn't run again does not wait for it.
        let init_waits = |(own, is): &(Option<RestartPolicy>, Is)| match is {
            Is::Again(code) => *code != 0 && self.again(*own, *code),
            _ => true,
        };
        let app_waits = |(own, is): &(Option<RestartPolicy>, Is)| match is {
            Is::Again(code) => self.again(*own, *code),
            _ => true,
        };
        in_order
            && sidecar_in_turn
            && self.init.iter().all(init_waits)
            && self.apps.iter().all(app_waits)
            && (!init_begun || !self.sidecar_first || up)
            && (!self.apps_begun() || (self.initialized() && self.sidecar != Some(Is::Waiting)))
    }

    /// What the documents say, in the order of what overrules what.
    fn expected(&self) -> Phase {
        // "Init containers": if the policy is Never and an init container fails, the whole pod has failed. PHASE-07.
        if self.init.iter().any(|(own, is)| matches!(is, Is::Ended(code) if *code != 0 && !self.again(*own, *code))) {
            return Phase::Failed;
        }
        // "Pod phase", Pending: one or more containers were not made ready to run. INIT-04: until all init containers succeeded.
        let sidecar_first_time = self.sidecar == Some(Is::Starting) && !self.apps_begun();
        let waits = self.sidecar == Some(Is::Waiting) || self.apps.iter().any(|(_, is)| *is == Is::Waiting);
        if !self.initialized() || sidecar_first_time || waits {
            return Phase::Pending;
        }
        // Running: at least one container runs. PHASE-07: a started sidecar counts. PHASE-08: nothing terminal while one runs.
        let runs = |is: Is| matches!(is, Is::Running | Is::Starting);
        if self.apps.iter().any(|(_, is)| runs(*is)) || self.sidecar.is_some_and(runs) {
            return Phase::Running;
        }
        // Running: … or is in the process of restarting. Not in a pod that is over.
        let restarts = |(own, is): &(Option<RestartPolicy>, Is)| match is {
            Is::Ended(code) | Is::Again(code) => self.again(*own, *code),
            _ => false,
        };
        // One from a file isn't over by being deleted: it is there as long as the file is (PHASE-09; family `phase`, static).
        if (!self.over || self.is_static) && self.apps.iter().any(restarts) {
            return Phase::Running;
        }
        // Succeeded: all ended in success and none will restart. Failed: all ended, at least one in failure. One that was about
        // to run again when the pod ended has not ended in success (upstream's answers, family `phase`).
        let well = self.apps.iter().all(|(_, is)| matches!(is, Is::Ended(0)));
        if well { Phase::Succeeded } else { Phase::Failed }
    }

    fn answer(&self) -> Phase {
        let named = |(index, (own, is)): (usize, &(Option<RestartPolicy>, Is)), letter: &str| {
            let name = format!("{letter}{index}");
            (container(&name, *own), status(&name, *is))
        };
        let init = self.init.iter().enumerate().map(|one| named(one, "i"));
        let mut init: Vec<(ContainerSpec, ContainerStatus)> = init.collect();
        if let Some(is) = self.sidecar {
            let place = if self.sidecar_first { 0 } else { init.len() };
            init.insert(place, (sidecar("s"), status("s", is)));
        }
        let (init_containers, init): (_, Vec<_>) = init.into_iter().unzip();
        let (containers, app): (_, Vec<_>) = self.apps.iter().enumerate().map(|one| named(one, "a")).unzip();
        let spec = PodSpec { restart_policy: self.policy, init_containers, containers, ..PodSpec::default() };
        phase(PhaseInput {
            spec: &spec,
            statuses: Statuses { init: &init, app: &app },
            is_static: self.is_static,
            terminal: self.over,
            initialized: self.apps_begun(),
        })
    }
}

fn status(name: &str, is: Is) -> ContainerStatus {
    let end = |code| Terminated { exit_code: code, ..Terminated::default() };
    let (state, last_state) = match is {
        Is::Waiting => (ContainerState::default(), None),
        Is::Starting | Is::Running => (ContainerState::Running { started_at: Instant::ZERO }, None),
        Is::Ended(code) => (ContainerState::Terminated(end(code)), None),
        Is::Again(code) => (ContainerState::default(), Some(end(code))),
    };
    ContainerStatus { name: name.into(), state, last_state, started: is == Is::Running, ..ContainerStatus::default() }
}

const STATES: [Is; 6] = [Is::Waiting, Is::Running, Is::Ended(0), Is::Ended(1), Is::Again(0), Is::Again(1)];

/// All possible pods.
fn cases() -> impl Iterator<Item = Case> {
    let with =
        |own: &[Option<RestartPolicy>]| -> Vec<_> { own.iter().flat_map(|own| STATES.map(|is| (*own, is))).collect() };
    let init_one = with(&[None, Some(RestartPolicy::OnFailure), Some(RestartPolicy::Never)]);
    let app_one =
        with(&[None, Some(RestartPolicy::Always), Some(RestartPolicy::OnFailure), Some(RestartPolicy::Never)]);
    let plain = with(&[None]);
    let several = |one: &[(Option<RestartPolicy>, Is)]| -> Vec<Vec<_>> {
        let single = one.iter().map(|a| vec![*a]);
        single.chain(one.iter().flat_map(|a| plain.iter().map(move |b| vec![*a, *b]))).collect()
    };
    let init: Vec<_> = std::iter::once(vec![]).chain(several(&init_one)).collect();
    let apps = several(&app_one);
    let sidecars = STATES.map(Some).into_iter().chain([Some(Is::Starting), None]).collect::<Vec<_>>();
    let frames = POLICIES.into_iter().flat_map(move |policy| {
        let sidecars = sidecars.clone();
        init.clone().into_iter().flat_map(move |init| {
            sidecars.clone().into_iter().flat_map(move |sidecar| {
                let init = init.clone();
                [true, false].into_iter().map(move |sidecar_first| (policy, init.clone(), sidecar, sidecar_first))
            })
        })
    });
    frames.flat_map(move |(policy, init, sidecar, sidecar_first)| {
        let nobody = Case { policy, init, sidecar, sidecar_first, apps: vec![], over: false, is_static: false };
        // Most frames can't be, whatever the apps do: those are left out early.
        let apps = if nobody.possible() { apps.clone() } else { vec![] };
        apps.into_iter().flat_map(move |apps| {
            let case = Case { apps, ..nobody.clone() };
            [(false, false), (true, false), (false, true), (true, true)].map(|(over, is_static)| Case {
                over,
                is_static,
                ..case.clone()
            })
        })
    })
}

// spec: PHASE-01, PHASE-02, PHASE-03, PHASE-04, PHASE-05, PHASE-07
#[test]
fn every_pod_with_up_to_two_init_containers_a_sidecar_and_two_apps() {
    let mut seen = std::collections::BTreeMap::new();
    for case in cases().filter(Case::possible) {
        let expected = case.expected();
        assert_eq!(case.answer(), expected, "{case:#?}");
        *seen.entry(expected.as_str()).or_insert(0) += 1;
    }
    let total: usize = seen.values().sum();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(total > 80_000, "{total} pods only: {seen:?}");
}
