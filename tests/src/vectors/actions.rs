//! Families `restart_actions`, `restart_all_trigger` and `resize_actions`: what a look at a pod says has to be done.

use std::collections::BTreeMap;

use husk_core::actions::{self, ContainerToKill, PodView};
use husk_core::runtime::{Instance, RuntimeStatus, Sandbox, StopReason, Verdict};
use husk_core::spec::{ContainerKind, PodSpec, Resources};
use serde_json::{Map, Value, json};

use super::objects::{self, flag, list};

/// Answers `restart_actions`.
pub(super) fn answer(input: &Value) -> Value {
    let spec = objects::pod_spec(&input["spec"]);
    let runtime = runtime(input);
    let actions = actions::compute(PodView {
        spec: &spec,
        deleting: flag(&input["deleting"]),
        restart_all: flag(&input["restartAllContainers"]),
        runtime: &runtime,
        actuated: None,
    });
    json!({
        "killPod": actions.kill_pod,
        "createSandbox": actions.create_sandbox,
        "attempt": actions.attempt,
        "containersToStart": names(ContainerKind::App, &spec, &actions.containers_to_start),
        "initContainersToStart": names(ContainerKind::Init, &spec, &actions.init_containers_to_start),
        "ephemeralContainersToStart": names(ContainerKind::Ephemeral, &spec, &actions.ephemeral_containers_to_start),
        "containersToKill": kills(&spec, &actions.containers_to_kill),
        "containersToReset": actions.containers_to_reset.iter()
            .map(|reset| json!({"name": reset.name, "kill": reset.kill, "instance": reset.instance}))
            .collect::<Vec<_>>(),
    })
}

/// Answers `restart_all_trigger`.
pub(super) fn answer_trigger(input: &Value) -> Value {
    let spec = objects::pod_spec(&input["spec"]);
    let runtime = runtime(input);
    let status = objects::pod_status(&input["apiStatus"]);
    json!({
        "restartAll": actions::restart_all_wanted(&spec, &runtime, &status),
        "cleanedUp": actions::cleaned_up(&spec, &runtime),
    })
}

/// Answers `resize_actions`.
pub(super) fn answer_resize(input: &Value) -> Value {
    let spec = objects::pod_spec(&input["spec"]);
    let mut runtime = runtime(input);
    runtime.sandboxes = vec![Sandbox { ready: true, attempt: 0, has_ip: true, host_network: false }];
    let actuated = input["actuated"].as_object().cloned().unwrap_or_default();
    let actuated: BTreeMap<String, Resources> =
        actuated.iter().map(|(name, resources)| (name.clone(), resources_of(resources))).collect();
    let actions = actions::compute(PodView {
        spec: &spec,
        deleting: false,
        restart_all: false,
        runtime: &runtime,
        actuated: Some(&actuated),
    });
    json!({
        "killPod": actions.kill_pod,
        "containersToStart": names(ContainerKind::App, &spec, &actions.containers_to_start),
        "initContainersToStart": names(ContainerKind::Init, &spec, &actions.init_containers_to_start),
        "containersToKill": kills(&spec, &actions.containers_to_kill),
        "containersToUpdate": {"cpu": actions.updates.cpu, "memory": actions.updates.memory},
        "updatePodResources": actions.updates.pod,
    })
}

/// Resources as the product reads them: those of a container.
fn resources_of(resources: &Value) -> Resources {
    let mut spec = objects::pod_spec(&json!({"containers": [{"name": "a", "resources": resources}]}));
    spec.containers.pop().unwrap_or_default().resources
}

/// Upstream never asks about a pod that is being deleted: who else would start then doesn't matter.
pub(super) fn ignore(input: &Value, out: &mut Value) {
    if let (true, Some(out)) = (flag(&input["deleting"]), out.as_object_mut()) {
        out.remove("initContainersToStart");
        out.remove("ephemeralContainersToStart");
    }
}

fn runtime(input: &Value) -> RuntimeStatus {
    let verdict = |from: &str, name: &str| match input[from][name].as_str()? {
        "success" => Some(Verdict::Success),
        "failure" => Some(Verdict::Failure),
        _ => Some(Verdict::Unknown),
    };
    let mut instances: Vec<Instance> = Vec::new();
    for case in input["containers"].as_array().into_iter().flatten() {
        let mut instance = objects::instance(case);
        instance.changed = flag(&case["changed"]);
        if instances.iter().all(|newer| newer.name != instance.name) {
            instance.verdicts.startup = verdict("startup", &instance.name);
            instance.verdicts.liveness = verdict("liveness", &instance.name);
        }
        instances.push(instance);
    }
    let sandboxes = list(&input["sandboxes"], |sandbox| Sandbox {
        ready: flag(&sandbox["ready"]),
        attempt: sandbox["attempt"].as_u64().unwrap_or_default() as u32,
        has_ip: !flag(&sandbox["noIP"]),
        host_network: flag(&sandbox["hostNetwork"]),
    });
    RuntimeStatus { sandboxes, instances, ..RuntimeStatus::default() }
}

fn name_of(kind: ContainerKind, spec: &PodSpec, index: usize) -> &str {
    match kind {
        ContainerKind::Init => &spec.init_containers[index].name,
        ContainerKind::App => &spec.containers[index].name,
        ContainerKind::Ephemeral => &spec.ephemeral_containers[index].name,
    }
}

fn names<'a>(kind: ContainerKind, spec: &'a PodSpec, indexes: &[usize]) -> Vec<&'a str> {
    indexes.iter().map(|index| name_of(kind, spec, *index)).collect()
}

fn kills(spec: &PodSpec, kills: &[ContainerToKill]) -> Value {
    let mut kills: Vec<_> = kills.iter().map(|kill| (name_of(kill.kind, spec, kill.index), kill)).collect();
    kills.sort_by_key(|(name, _)| *name);
    let described = kills.into_iter().map(|(name, kill)| {
        let mut out = Map::new();
        out.insert("name".into(), name.into());
        out.insert("message".into(), kill.message.clone().into());
        let reason = match kill.reason {
            StopReason::Unknown => "Unknown",
            StopReason::LivenessProbe => "LivenessProbe",
            StopReason::StartupProbe => "StartupProbe",
            _ => "",
        };
        out.insert("reason".into(), reason.into());
        Value::Object(out)
    });
    described.collect()
}
