//! Changes of JSON documents that leave them JSON: bytes changed at random are mostly no document any more.

use serde_json::{Map, Value as Json};

/// Values that mean something somewhere.
const WORDS: &[&str] = &[
    "",
    "a",
    "app",
    "web",
    "0",
    "1",
    "-1",
    "80",
    "30%",
    "100m",
    "1Gi",
    "1Ki",
    "1e3",
    "0.5",
    "Always",
    "OnFailure",
    "Never",
    "IfNotPresent",
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Equal",
    "Restart",
    "RestartAllContainers",
    "NoSchedule",
    "NoExecute",
    "DoNotSchedule",
    "ScheduleAnyway",
    "TCP",
    "UDP",
    "HTTP",
    "HTTPS",
    "SIGTERM",
    "SIGUSR1",
    "cpu",
    "memory",
    "ephemeral-storage",
    "hugepages-2Mi",
    "example.com/device",
    "NotRequired",
    "RestartContainer",
    "ClusterFirst",
    "Default",
    "None",
    "Memory",
    "linux",
    "windows",
    "/",
    "/data",
    "../x",
    "$(A)",
    "$$(A)",
    "A",
    "a.b/c",
    "metadata.name",
    "metadata.labels['a']",
    "status.podIP",
    "limits.cpu",
    "kubernetes.io/hostname",
    "10.0.0.1",
    "::1",
    "2026-01-01T00:00:00Z",
    "RuntimeDefault",
    "Localhost",
    "PreferNoSchedule",
    "Honor",
    "Ignore",
    "File",
    "FallbackToLogsOnError",
    "Bidirectional",
    "HostToContainer",
    "Recursive",
    "OrderedReady",
    "Parallel",
];
/// Fields that are not in every document.
const FIELDS: &[&str] = &[
    "restartPolicy",
    "restartPolicyRules",
    "exitCodes",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "preStop",
    "postStart",
    "sleep",
    "exec",
    "httpGet",
    "tcpSocket",
    "grpc",
    "resources",
    "requests",
    "limits",
    "claims",
    "resizePolicy",
    "env",
    "envFrom",
    "valueFrom",
    "fieldRef",
    "resourceFieldRef",
    "volumes",
    "volumeMounts",
    "emptyDir",
    "hostPath",
    "projected",
    "configMap",
    "secret",
    "downwardAPI",
    "initContainers",
    "ephemeralContainers",
    "targetContainerName",
    "tolerations",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "labelSelector",
    "matchExpressions",
    "matchLabels",
    "nodeSelector",
    "topologySpreadConstraints",
    "schedulingGates",
    "readinessGates",
    "securityContext",
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "priority",
    "hostAliases",
    "hostNetwork",
    "hostname",
    "subdomain",
    "dnsConfig",
    "os",
    "overhead",
    "ports",
    "containerPort",
    "hostPort",
    "stopSignal",
    "labels",
    "annotations",
    "name",
    "value",
    "operator",
    "values",
    "key",
    "effect",
    "periodSeconds",
    "failureThreshold",
    "successThreshold",
    "timeoutSeconds",
    "action",
];

/// A small generator of numbers: the mutation must follow from the seed alone.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn word(&mut self) -> String {
        WORDS[self.below(WORDS.len())].into()
    }

    fn value(&mut self) -> Json {
        match self.below(12) {
            0 => Json::Null,
            1 => true.into(),
            2 => false.into(),
            3 => i64::try_from(self.below(300)).unwrap_or(0).into(),
            4 => [-1, i64::from(i32::MAX), i64::MAX, i64::MIN, 65_536][self.below(5)].into(),
            5 => Json::Array(vec![self.word().into()]),
            6 => Json::Object(Map::new()),
            7 => Json::Object(Map::from_iter([(self.word(), self.word().into())])),
            8 => Json::Array(vec![Json::Object(Map::from_iter([("name".into(), self.word().into())]))]),
            _ => self.word().into(),
        }
    }
}

/// The text with some changes, if it is JSON.
pub fn mutated(text: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut json: Json = serde_json::from_slice(text).ok()?;
    let mut drawn = Drawn(seed.into());
    for _ in 0..=drawn.below(4) {
        let place = drawn.below(count(&json));
        let other = drawn.below(count(&json));
        let other = nth(&mut json, other).clone();
        change(nth(&mut json, place), other, &mut drawn);
    }
    serde_json::to_vec(&json).ok()
}

/// The first text with something of the second at the same kind of place, if both are JSON.
pub fn crossed(first: &[u8], second: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut first: Json = serde_json::from_slice(first).ok()?;
    let mut second: Json = serde_json::from_slice(second).ok()?;
    let mut drawn = Drawn(seed.into());
    for _ in 0..8 {
        let (from, to) = (drawn.below(count(&second)), drawn.below(count(&first)));
        if let (Json::Object(given), Json::Object(taken)) = (nth(&mut second, from), nth(&mut first, to))
            && let Some(key) = given.keys().nth(drawn.below(given.len())).cloned()
            && let Some(value) = given.get(&key)
        {
            taken.insert(key, value.clone());
        }
    }
    serde_json::to_vec(&first).ok()
}

fn change(place: &mut Json, other: Json, drawn: &mut Drawn) {
    match place {
        Json::Object(entries) => {
            let key = entries.keys().nth(drawn.below(entries.len())).cloned();
            match (drawn.below(5), key) {
                (0, Some(key)) => drop(entries.remove(&key)),
                (1, Some(key)) => drop(entries.insert(key, other)),
                (2, Some(key)) => drop(entries.insert(key, drawn.value())),
                (3, Some(key)) => {
                    let value = entries.remove(&key).unwrap_or_default();
                    entries.insert(FIELDS[drawn.below(FIELDS.len())].into(), value);
                }
                _ => drop(entries.insert(FIELDS[drawn.below(FIELDS.len())].into(), drawn.value())),
            }
        }
        Json::Array(items) => {
            let at = drawn.below(items.len());
            match drawn.below(4) {
                0 if !items.is_empty() => drop(items.remove(at)),
                1 if !items.is_empty() => items.push(items[at].clone()),
                2 => items.push(other),
                _ => items.push(drawn.value()),
            }
        }
        value => *value = drawn.value(),
    }
}

/// How many values there are in one, itself counted.
fn count(json: &Json) -> usize {
    1 + match json {
        Json::Array(items) => items.iter().map(count).sum(),
        Json::Object(entries) => entries.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// One of them.
fn nth(json: &mut Json, n: usize) -> &mut Json {
    if n == 0 {
        return json;
    }
    let mut left = n - 1;
    let children: Vec<&mut Json> = match json {
        Json::Array(items) => items.iter_mut().collect(),
        Json::Object(entries) => entries.values_mut().collect(),
        _ => Vec::new(),
    };
    for child in children {
        let size = count(child);
        if left < size {
            return nth(child, left);
        }
        left -= size;
    }
    unreachable!("there are as many as were counted")
}
