//! Families `container_env`, `env_file`, `service_env` and `downward_api`: what a container's environment says.

use std::sync::Arc;

use husk_api::{EnvSources, container_env, env_file_value, field_value, k8s, resource_value, service_variables};
use husk_core::spec::ResourceList;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::objects::{list, quantity, text};

/// The pod p in d, its ConfigMaps and its Secret: the same in all cases.
pub(super) fn answer(input: &Value) -> Value {
    let pod: k8s::Pod = read(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": {"a": "1"}},
        "spec": {"containers": [], "enableServiceLinks": input["enableServiceLinks"]},
        "status": {"podIP": "10.0.0.5", "podIPs": [{"ip": "10.0.0.5"}]},
    }));
    let container: k8s::Container = read(json!({"name": "a0", "env": input["env"], "envFrom": input["envFrom"]}));
    let world = World {
        config_maps: vec![
            Arc::new(config_map("m", json!({"A": "from-m", "B": "$(A)", "bad key": "x", "1": "one"}))),
            Arc::new(config_map("n", json!({"A": "from-n"}))),
        ],
        // A: from-s, PW: p$$w
        secret: Arc::new(read(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s"},
            "data": {"A": "ZnJvbS1z", "PW": "cCQkdw=="},
        }))),
        services: list(&input["services"], |written| service(written, &json!([{"port": 80}]))).into(),
        allocatable: ResourceList::new(),
    };
    match container_env(&pod, &container, &world) {
        Ok(env) => json!({"env": env.into_iter().collect::<std::collections::BTreeMap<_, _>>()}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

pub(super) fn env_file(input: &Value) -> Value {
    match env_file_value(&text(&input["text"]), &text(&input["key"])) {
        Ok(value) => json!({"value": value}),
        Err(_) => json!({"error": true}),
    }
}

pub(super) fn service_env(input: &Value) -> Value {
    let services = list(&input["services"], |written| service(written, &written["ports"]));
    let lines = service_variables(&services).into_iter().map(|(name, value)| format!("{name}={value}"));
    json!(lines.collect::<Vec<_>>())
}

pub(super) fn downward_api(input: &Value) -> Value {
    let value = match input["fieldPath"].as_str() {
        Some(path) => {
            let addresses: Vec<Value> = list(&input["podIPs"], |ip| json!({"ip": ip}));
            let mut spec = input["spec"].clone();
            spec["containers"] = json!([]);
            let pod = read(json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": input["metadata"],
                "spec": spec,
                "status": {"podIP": input["podIPs"][0], "podIPs": addresses},
            }));
            field_value(path, &pod)
        }
        None => {
            let container = read(json!({"name": "a0", "resources": input["resources"]}));
            let field = read(json!({"resource": input["resource"], "divisor": input["divisor"]}));
            let node = [("cpu", "4"), ("memory", "8Gi"), ("ephemeral-storage", "100Gi")];
            let allocatable = node.map(|(name, amount)| (name.to_owned(), quantity(&amount.into())));
            resource_value(&field, &k8s::Pod::default(), &container, &allocatable.into())
        }
    };
    match value {
        Ok(value) => json!({"value": value}),
        Err(_) => json!({"error": true}),
    }
}

struct World {
    config_maps: Vec<Arc<k8s::ConfigMap>>,
    secret: Arc<k8s::Secret>,
    services: Arc<[k8s::Service]>,
    allocatable: ResourceList,
}

impl EnvSources for World {
    fn config_map(&self, name: &str) -> Option<Arc<k8s::ConfigMap>> {
        self.config_maps.iter().find(|map| map.metadata.name.as_deref() == Some(name)).cloned()
    }

    fn secret(&self, name: &str) -> Option<Arc<k8s::Secret>> {
        (name == "s").then(|| self.secret.clone())
    }

    fn file(&self, _volume: &str, _path: &str) -> Option<String> {
        None
    }

    fn services(&self) -> Arc<[k8s::Service]> {
        self.services.clone()
    }

    fn allocatable(&self) -> &ResourceList {
        &self.allocatable
    }
}

fn config_map(name: &str, data: Value) -> k8s::ConfigMap {
    read(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}))
}

fn service(written: &Value, ports: &Value) -> k8s::Service {
    let metadata = Map::from_iter(["name", "namespace"].map(|field| (field.to_owned(), written[field].clone())));
    let spec = json!({"clusterIP": written["clusterIP"], "ports": ports});
    read(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}))
}

fn read<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("an object of the case")
}
