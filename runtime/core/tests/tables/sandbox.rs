//! When is a pod's sandbox made anew, and what starts in it?

use husk_core::actions::{PodActions, PodView, compute};
use husk_core::runtime::{Instance, InstanceState, RuntimeStatus, Sandbox};
use husk_core::spec::{PodSpec, RestartPolicy};

use super::{POLICIES, container};

fn actions(spec: &PodSpec, sandboxes: Vec<Sandbox>, instances: Vec<Instance>) -> PodActions {
    let runtime = RuntimeStatus { sandboxes, instances, ..RuntimeStatus::default() };
    compute(PodView { spec, deleting: false, restart_all: false, runtime: &runtime, actuated: None })
}

fn lost(attempt: u32) -> Vec<Sandbox> {
    vec![Sandbox { ready: false, attempt, has_ip: true, host_network: false }]
}

/// PodReadyToStartContainers: a sandbox is of use if it is the only one that is ready, the newest, of the pod's network, and has
/// an address, where it isn't the node's. Any other is followed by one with the next attempt number.
#[test]
fn one_that_is_of_no_use_is_followed_by_another() {
    const BOTH: [bool; 2] = [false, true];
    let spec = |host_network| PodSpec { host_network, containers: vec![container("a0", None)], ..PodSpec::default() };
    assert_eq!(actions(&spec(false), vec![], vec![]).attempt, 0);
    for (ready, has_ip) in BOTH.into_iter().flat_map(|ready| BOTH.map(|has_ip| (ready, has_ip))) {
        for (wanted, host_network) in BOTH.into_iter().flat_map(|wanted| BOTH.map(|has| (wanted, has))) {
            for older in [vec![], lost(0), vec![Sandbox { ready: true, ..lost(0)[0].clone() }]] {
                let alone = older.iter().all(|sandbox| !sandbox.ready);
                let newest = Sandbox { ready, attempt: 4, has_ip, host_network };
                let case = format!("{newest:?}, before it {older:?}, wanted of the node: {wanted}");
                let actions = actions(&spec(wanted), [vec![newest], older].concat(), vec![]);
                let of_use = ready && alone && wanted == host_network && (has_ip || wanted);
                assert_eq!((actions.create_sandbox, actions.kill_pod), (!of_use, !of_use), "{case}");
                assert_eq!(actions.attempt, if of_use { 4 } else { 5 }, "{case}");
                assert_eq!(actions.containers_to_start, [0], "{case}");
            }
        }
    }
}

/// Pod Lifecycle: what ran in a lost sandbox runs again as far as its restart policy lets it. Under Never nothing does, under
/// OnFailure whoever had not succeeded; if nobody is left, there is no need for another sandbox. Init containers come first.
#[test]
fn what_was_lost_with_it_starts_again_by_its_policy() {
    let ended = |exit_code| (InstanceState::Exited, exit_code);
    for policy in POLICIES {
        for a0 in [None, Some(ended(0)), Some(ended(1)), Some((InstanceState::Running, 0))] {
            for (first, before) in [(true, vec![]), (false, lost(0))] {
                let spec = |init| PodSpec {
                    restart_policy: policy,
                    init_containers: init,
                    containers: vec![container("a0", None)],
                    ..PodSpec::default()
                };
                let instance =
                    |(state, exit_code)| Instance { name: "a0".into(), state, exit_code, ..Instance::default() };
                let instances: Vec<Instance> = a0.into_iter().map(instance).collect();
                let case = format!("{policy:?}, {a0:?}, the first sandbox: {first}");
                let ran_and_stays_down = match policy {
                    RestartPolicy::Never => a0.is_some() && !first,
                    RestartPolicy::OnFailure => a0 == Some(ended(0)),
                    RestartPolicy::Always => false,
                };
                let plain = actions(&spec(vec![]), before.clone(), instances.clone());
                assert_eq!(plain.create_sandbox, !ran_and_stays_down, "{case}");
                assert!(plain.kill_pod, "{case}");
                assert_eq!(plain.containers_to_start.is_empty(), ran_and_stays_down, "{case}");
                let behind_init = actions(&spec(vec![container("i0", None)]), before, instances);
                assert_eq!(behind_init.create_sandbox, !ran_and_stays_down, "{case}");
                assert!(behind_init.containers_to_start.is_empty(), "{case}");
                assert_eq!(behind_init.init_containers_to_start.is_empty(), ran_and_stays_down, "{case}");
            }
        }
    }
}
