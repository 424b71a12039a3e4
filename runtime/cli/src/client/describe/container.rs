//! Containers, as `kubectl describe pod` writes them.

use serde_json::Value;

use super::text::{NONE, Text, date, plain, truth};
use crate::client::output::text;
use crate::client::resources::items;

pub(super) fn describe(out: &mut Text, pod: &Value, container: &Value, status: Option<&Value>) {
    out.line(1, format_args!("{}:", text(&container["name"])));
    if let Some(status) = status {
        out.pair(2, "Container ID", text(&status["containerID"]));
    }
    out.pair(2, "Image", text(&container["image"]));
    if let Some(status) = status {
        out.pair(2, "Image ID", text(&status["imageID"]));
    }
    let ports = items(&container["ports"]);
    for (one, many, field) in [("Port", "Ports", "containerPort"), ("Host Port", "Host Ports", "hostPort")] {
        let port = |port: &Value| format!("{}/{}", port[field].as_i64().unwrap_or_default(), text(&port["protocol"]));
        let listed: Vec<String> = ports.iter().map(port).collect();
        match listed.as_slice() {
            [] => out.pair(2, one, NONE),
            [only] => out.pair(2, one, only),
            _ => out.pair(2, many, listed.join(", ")),
        }
    }
    if !container["securityContext"]["seccompProfile"].is_null() {
        out.pair(2, "SeccompProfile", text(&container["securityContext"]["seccompProfile"]["type"]));
    }
    for (title, field) in [("Command", "command"), ("Args", "args")] {
        let words = items(&container[field]);
        if !words.is_empty() {
            out.line(2, format_args!("{title}:"));
            words.iter().flat_map(|word| text(word).split('\n')).for_each(|line| out.line(3, line));
        }
    }
    if let Some(status) = status {
        state(out, "State", &status["state"]);
        if !status["lastState"]["terminated"].is_null() {
            state(out, "Last State", &status["lastState"]);
        }
        out.pair(2, "Ready", truth(&status["ready"]));
        out.pair(2, "Restart Count", status["restartCount"].as_i64().unwrap_or_default());
    }
    resources(out, 2, &container["resources"]);
    for (title, field) in [("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")]
    {
        if !container[field].is_null() {
            out.pair(2, title, probe(&container[field]));
        }
    }
    environment(out, pod, container);
    mounts(out, items(&container["volumeMounts"]));
}

fn state(out: &mut Text, title: &str, state: &Value) {
    if let running @ Value::Object(_) = &state["running"] {
        out.pair(2, title, "Running");
        return out.pair(3, "Started", date(&running["startedAt"]));
    }
    let Value::Object(_) = &state["terminated"] else {
        out.pair(2, title, "Waiting");
        if !text(&state["waiting"]["reason"]).is_empty() {
            out.pair(3, "Reason", text(&state["waiting"]["reason"]));
        }
        return;
    };
    let ended = &state["terminated"];
    out.pair(2, title, "Terminated");
    for (name, field) in [("Reason", "reason"), ("Message", "message")] {
        if !text(&ended[field]).is_empty() {
            out.pair(3, name, text(&ended[field]));
        }
    }
    out.pair(3, "Exit Code", ended["exitCode"].as_i64().unwrap_or_default());
    if let Some(signal @ 1..) = ended["signal"].as_i64() {
        out.pair(3, "Signal", signal);
    }
    out.pair(3, "Started", date(&ended["startedAt"]));
    out.pair(3, "Finished", date(&ended["finishedAt"]));
}

/// Limits and requests, those that are there.
pub(super) fn resources(out: &mut Text, level: usize, resources: &Value) {
    for (title, field) in [("Limits", "limits"), ("Requests", "requests")] {
        let Some(list) = resources[field].as_object().filter(|list| !list.is_empty()) else { continue };
        out.line(level, format_args!("{title}:"));
        list.iter().for_each(|(name, quantity)| out.pair(level + 1, name, plain(quantity)));
    }
}

fn probe(probe: &Value) -> String {
    let number = |field: &str, default: i64| probe[field].as_i64().unwrap_or(default);
    let figures = format!(
        "delay={}s timeout={}s period={}s #success={} #failure={}",
        number("initialDelaySeconds", 0),
        number("timeoutSeconds", 1),
        number("periodSeconds", 10),
        number("successThreshold", 1),
        number("failureThreshold", 3)
    );
    if let exec @ Value::Object(_) = &probe["exec"] {
        let words: Vec<&str> = items(&exec["command"]).iter().map(text).collect();
        return format!("exec [{}] {figures}", words.join(" "));
    }
    if let get @ Value::Object(_) = &probe["httpGet"] {
        let scheme = text(&get["scheme"]).to_lowercase();
        let port = match plain(&get["port"]) {
            port if port.is_empty() => port,
            port => format!(":{port}"),
        };
        return format!("http-get {scheme}://{}{port}{} {figures}", text(&get["host"]), text(&get["path"]));
    }
    if let socket @ Value::Object(_) = &probe["tcpSocket"] {
        return format!("tcp-socket {}:{} {figures}", text(&socket["host"]), plain(&socket["port"]));
    }
    if let grpc @ Value::Object(_) = &probe["grpc"] {
        return format!(
            "grpc <pod>:{} {} {figures}",
            grpc["port"].as_i64().unwrap_or_default(),
            text(&grpc["service"])
        );
    }
    format!("unknown {figures}")
}

fn environment(out: &mut Text, pod: &Value, container: &Value) {
    let optional = |source: &Value| source["optional"] == true;
    let from = items(&container["envFrom"]);
    if !from.is_empty() {
        out.line(2, "Environment Variables from:");
        for source in from {
            let (kind, reference) = match &source["configMapRef"] {
                Value::Null => ("Secret", &source["secretRef"]),
                reference => ("ConfigMap", reference),
            };
            let prefix = match text(&source["prefix"]) {
                "" => String::new(),
                prefix => format!(" with prefix '{prefix}'"),
            };
            out.line(
                3,
                format_args!("{}\t{kind}{prefix}\tOptional: {}", text(&reference["name"]), optional(reference)),
            );
        }
    }
    let variables = items(&container["env"]);
    if variables.is_empty() {
        return out.pair(2, "Environment", NONE);
    }
    out.line(2, "Environment:");
    for variable in variables {
        let name = text(&variable["name"]);
        let source = &variable["valueFrom"];
        let reference = |kind: &str, field: &str| {
            let reference = &source[field];
            let (key, of) = (text(&reference["key"]), text(&reference["name"]));
            format!("<set to the key '{key}' {kind} '{of}'>\tOptional: {}", optional(reference))
        };
        let field = &source["fieldRef"];
        let resource = text(&source["resourceFieldRef"]["resource"]);
        let sources = ["fieldRef", "resourceFieldRef", "secretKeyRef", "configMapKeyRef", "fileKeyRef"];
        match sources.into_iter().find(|kind| !source[kind].is_null()) {
            Some("fieldRef") => {
                let path = text(&field["fieldPath"]);
                let value = known_field(pod, path);
                let version = text(&field["apiVersion"]);
                out.pair(3, name, format_args!("{value} ({version}:{path})"));
            }
            Some("resourceFieldRef") => {
                out.pair(3, name, format_args!("{} ({resource})", known_resource(pod, container, source)));
            }
            Some("secretKeyRef") => out.pair(3, name, reference("in secret", "secretKeyRef")),
            Some("configMapKeyRef") => out.pair(3, name, reference("of config map", "configMapKeyRef")),
            Some(_) => {
                let file = &source["fileKeyRef"];
                let (key, path, volume) = (text(&file["key"]), text(&file["path"]), text(&file["volumeName"]));
                let optional = optional(file);
                out.pair(
                    3,
                    name,
                    format_args!(
                        "<set to the key '{key}' of file '{path}' in volume '{volume}'>\tOptional: {optional}"
                    ),
                );
            }
            None => {
                let mut lines = text(&variable["value"]).split('\n');
                out.pair(3, name, lines.next().unwrap_or_default());
                lines.for_each(|line| out.line(3, format_args!("\t{line}")));
            }
        }
    }
}

/// What a reference to a field comes to, as far as the object says it.
fn known_field(pod: &Value, path: &str) -> String {
    let typed = husk_api::pod_from_json(pod).ok();
    let is_of_metadata = path.starts_with("metadata.");
    typed.filter(|_| is_of_metadata).and_then(|pod| husk_api::field_value(path, &pod).ok()).unwrap_or_default()
}

/// What a reference to resources comes to; without limits that is the node's matter.
fn known_resource(pod: &Value, container: &Value, source: &Value) -> String {
    let reference = &source["resourceFieldRef"];
    let value = || {
        let pod = husk_api::pod_from_json(pod).ok()?;
        let field = serde_json::from_value(reference.clone()).ok()?;
        let container = serde_json::from_value(container.clone()).ok()?;
        husk_api::resource_value(&field, &pod, &container, &Default::default()).ok()
    };
    value().unwrap_or_default()
}

fn mounts(out: &mut Text, mounts: &[Value]) {
    if mounts.is_empty() {
        return out.pair(2, "Mounts", NONE);
    }
    out.line(2, "Mounts:");
    let mut mounts: Vec<&Value> = mounts.iter().collect();
    mounts.sort_by_key(|mount| text(&mount["mountPath"]));
    for mount in mounts {
        let mut flags = vec![if mount["readOnly"] == true { "ro".to_owned() } else { "rw".to_owned() }];
        if !text(&mount["subPath"]).is_empty() {
            flags.push(format!("path={:?}", text(&mount["subPath"])));
        }
        out.line(3, format_args!("{} from {} ({})", text(&mount["mountPath"]), text(&mount["name"]), flags.join(",")));
    }
}
