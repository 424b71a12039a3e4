//! Ephemeral containers: a person adds them to a running pod to look into it, often into one of its containers.

use husk_api::as_container;
use k8s_openapi::api::core::v1::{Container, PodSpec};

/// The ephemeral containers of a pod, as containers. One that has a target sees what that sees (EPH-04): its volumes at the same
/// places, and its environment. What it has of its own comes first.
pub(crate) fn ephemeral_containers(spec: Option<&PodSpec>) -> impl Iterator<Item = Container> {
    spec.into_iter().flat_map(|spec| {
        spec.ephemeral_containers.iter().flatten().map(|ephemeral| {
            let mut container = as_container(ephemeral);
            let others = spec.init_containers.iter().flatten().chain(&spec.containers);
            let target = ephemeral.target_container_name.as_ref();
            if let Some(target) = target.and_then(|target| others.into_iter().find(|other| other.name == *target)) {
                look_into(&mut container, target);
            }
            container
        })
    })
}

fn look_into(container: &mut Container, target: &Container) {
    let mounts = container.volume_mounts.get_or_insert_default();
    for mount in target.volume_mounts.iter().flatten() {
        if mounts.iter().all(|own| own.mount_path != mount.mount_path) {
            mounts.push(mount.clone());
        }
    }
    // Of two variables of one name the later counts, and each can draw on those before it.
    let own = container.env_from.take().unwrap_or_default();
    container.env_from = Some(target.env_from.iter().flatten().cloned().chain(own).collect());
    let mut env = target.env.clone().unwrap_or_default();
    for variable in &mut env {
        let source = variable.value_from.as_mut();
        if let Some(resource) = source.and_then(|source| source.resource_field_ref.as_mut()) {
            // Without a name it is that of the container in which it stands.
            resource.container_name.get_or_insert_with(|| target.name.clone());
        }
    }
    env.extend(container.env.take().unwrap_or_default());
    container.env = Some(env);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_debugger_sees_what_its_target_sees() {
        let spec: PodSpec = serde_json::from_value(json!({
            "initContainers": [{"name": "init", "env": [{"name": "A", "value": "init"}]}],
            "containers": [{
                "name": "main",
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "env": [
                    {"name": "A", "value": "main"},
                    {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
                    {"name": "OTHER", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "containerName": "init"}}},
                ],
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data", "subPath": "a"}, {"name": "work", "mountPath": "/work"},
                ],
            }],
            "ephemeralContainers": [
                {"name": "apart", "image": "toolbox"},
                {
                    "name": "debugger",
                    "targetContainerName": "main",
                    "env": [{"name": "A", "value": "own"}],
                    "volumeMounts": [{"name": "mine", "mountPath": "/work"}],
                },
                {"name": "of-init", "targetContainerName": "init"},
            ],
        }))
        .expect("a spec");
        let all: Vec<_> = ephemeral_containers(Some(&spec)).collect();
        assert_eq!((&all[0].env, &all[0].volume_mounts), (&None, &None));
        let debugger = serde_json::to_value(&all[1]).expect("JSON");
        let limit =
            |container: &str| json!({"resourceFieldRef": {"resource": "limits.memory", "containerName": container}});
        let env = json!([
            {"name": "A", "value": "main"},
            {"name": "LIMIT", "valueFrom": limit("main")},
            {"name": "OTHER", "valueFrom": limit("init")},
            {"name": "A", "value": "own"},
        ]);
        assert_eq!(debugger["env"], env);
        assert_eq!(debugger["envFrom"], json!([{"configMapRef": {"name": "settings"}}]));
        let mounts =
            json!([{"name": "mine", "mountPath": "/work"}, {"name": "data", "mountPath": "/data", "subPath": "a"}]);
        assert_eq!(debugger["volumeMounts"], mounts);
        assert_eq!(all[2].env, spec.init_containers.as_ref().expect("one")[0].env);
    }
}
