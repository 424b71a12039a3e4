//! The node object: what this device is and how it is (NODE-01).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::incoming::now;
use crate::objects::Objects;
use crate::resources::NODES;
use crate::storage::StorageError;

/// What there is to say about a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Its address in its network, if it has one.
    pub address: Option<String>,
    /// What it has, as in `memory` → `512Mi`.
    pub capacity: BTreeMap<String, String>,
    /// What of that pods may use.
    pub allocatable: BTreeMap<String, String>,
    /// As in `nodeInfo`: `osImage`, `kernelVersion`, `kubeletVersion`, `containerRuntimeVersion`, `machineID`, `bootID`, `systemUUID`.
    pub info: BTreeMap<String, String>,
    /// Why it isn't ready; ready if none.
    pub not_ready: Option<String>,
    /// It is short of memory.
    pub memory_pressure: bool,
    /// It is short of disk.
    pub disk_pressure: bool,
    /// It is short of process ids.
    pub pid_pressure: bool,
}

impl Objects {
    /// Writes the node object: all of it at first, its status later. What clients have set of it stays.
    pub async fn report_node(&self, facts: &NodeFacts) -> Result<(), StorageError> {
        let key = NODES.key("", &facts.name);
        let labels = labels(facts);
        let updated = self.update(&key, |node| {
            let before = node.clone();
            for (label, value) in &labels {
                node["metadata"]["labels"][label] = value.as_str().into();
            }
            node["status"] = status(facts, &before["status"]);
            // A heartbeat alone is worth no write: leases are for that.
            !same_but_heartbeat(&before, node)
        });
        if updated.await?.is_some() {
            return Ok(());
        }
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": facts.name,
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": now().to_string(),
                "labels": labels,
            },
            "spec": {},
            "status": status(facts, &Value::Null),
        });
        match self.create(&key, node).await {
            Ok(_) | Err(StorageError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn labels(facts: &NodeFacts) -> BTreeMap<String, String> {
    let pairs = [("os", "linux"), ("arch", architecture()), ("hostname", facts.name.as_str())];
    pairs.into_iter().map(|(label, value)| (format!("kubernetes.io/{label}"), value.to_owned())).collect()
}

/// As Go calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

fn status(facts: &NodeFacts, before: &Value) -> Value {
    let mut addresses = vec![json!({"type": "Hostname", "address": facts.name})];
    if let Some(address) = &facts.address {
        addresses.insert(0, json!({"type": "InternalIP", "address": address}));
    }
    let mut info = json!({"operatingSystem": "linux", "architecture": architecture()});
    let fields = [
        "osImage",
        "kernelVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "containerRuntimeVersion",
        "machineID",
        "bootID",
        "systemUUID",
    ];
    for field in fields {
        info[field] = facts.info.get(field).map_or("", String::as_str).into();
    }
    json!({
        "capacity": facts.capacity,
        "allocatable": facts.allocatable,
        "addresses": addresses,
        "nodeInfo": info,
        "conditions": conditions(facts, &before["conditions"]),
    })
}

fn conditions(facts: &NodeFacts, before: &Value) -> Value {
    // In upstream's words.
    let pressure = |kind: &str, is_short: bool, [short, enough]: [(&str, &str); 2]| {
        let (reason, message) = if is_short { short } else { enough };
        (kind.to_owned(), is_short, format!("KubeletHas{reason}"), format!("kubelet has {message}"))
    };
    let memory =
        [("InsufficientMemory", "insufficient memory available"), ("SufficientMemory", "sufficient memory available")];
    let disk = [("DiskPressure", "disk pressure"), ("NoDiskPressure", "no disk pressure")];
    let pid = [("InsufficientPID", "insufficient PID available"), ("SufficientPID", "sufficient PID available")];
    let ready = match &facts.not_ready {
        None => ("Ready".to_owned(), true, "KubeletReady".to_owned(), "the agent is ready".to_owned()),
        Some(why) => ("Ready".into(), false, "KubeletNotReady".into(), why.clone()),
    };
    let all = [
        pressure("MemoryPressure", facts.memory_pressure, memory),
        pressure("DiskPressure", facts.disk_pressure, disk),
        pressure("PIDPressure", facts.pid_pressure, pid),
        ready,
    ];
    let now: Timestamp = now();
    let condition = |(kind, is_true, reason, message): (String, bool, String, String)| {
        let status = if is_true { "True" } else { "False" };
        let old = before.as_array().into_iter().flatten().find(|condition| condition["type"] == kind.as_str());
        let since = old.filter(|condition| condition["status"] == status).map(|c| c["lastTransitionTime"].clone());
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now.to_string(),
            "lastTransitionTime": since.unwrap_or_else(|| now.to_string().into()),
        })
    };
    all.into_iter().map(condition).collect()
}

fn same_but_heartbeat(a: &Value, b: &Value) -> bool {
    let still = |node: &Value| {
        let mut node = node.clone();
        for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = Value::Null;
        }
        node
    };
    still(a) == still(b)
}
