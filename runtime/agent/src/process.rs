//! What a container's process gets: arguments, environment, working folder, host name.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use husk_core::expansion::expand;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, ObjectFieldSelector, Pod};

/// Where programs are looked for, if the container doesn't say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The process of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// `command`, expanded; empty if the image decides.
    pub command: Vec<String>,
    /// `args`, expanded.
    pub args: Vec<String>,
    /// `env`, expanded, in order; a name stands once.
    pub env: Vec<(String, String)>,
}

/// What the downward API can tell about a pod's place.
#[derive(Clone, Debug)]
pub struct Place {
    /// The pod's address.
    pub ip: Ipv4Addr,
    /// `spec.nodeName`.
    pub node: String,
    /// The pod's host name.
    pub hostname: String,
}

impl Process {
    /// Of a container of a pod. The error is for a person and names the field.
    pub fn of(pod: &Pod, container: &Container, place: &Place) -> Result<Self, String> {
        let mut env = Env::default();
        env.set("PATH", PATH.into());
        env.set("HOSTNAME", place.hostname.clone());
        env.set("HOME", "/".into());
        if container.env_from.iter().flatten().next().is_some() {
            return Err("envFrom is not supported yet: write the variables into env".into());
        }
        for (n, variable) in container.env.iter().flatten().enumerate() {
            let value = match (&variable.value, &variable.value_from) {
                (_, Some(source)) => {
                    from_source(pod, place, source).map_err(|error| format!("env[{n}].valueFrom: {error}"))?
                }
                // A variable may use those that stand before it.
                (Some(value), None) => expand(value, |name| env.value(name)),
                (None, None) => String::new(),
            };
            env.set(&variable.name, value);
        }
        let words = |list: &Option<Vec<String>>| -> Vec<String> {
            list.iter().flatten().map(|word| expand(word, |name| env.value(name))).collect()
        };
        Ok(Self { command: words(&container.command), args: words(&container.args), env: env.list })
    }
}

/// Variables in order.
#[derive(Default)]
struct Env {
    list: Vec<(String, String)>,
    places: BTreeMap<String, usize>,
}

impl Env {
    fn value(&self, name: &str) -> Option<&str> {
        self.places.get(name).map(|place| self.list[*place].1.as_str())
    }

    /// The last value of a name counts.
    fn set(&mut self, name: &str, value: String) {
        match self.places.get(name) {
            Some(place) => self.list[*place].1 = value,
            None => {
                self.places.insert(name.into(), self.list.len());
                self.list.push((name.into(), value));
            }
        }
    }
}

fn from_source(pod: &Pod, place: &Place, source: &EnvVarSource) -> Result<String, String> {
    match &source.field_ref {
        Some(field) => from_field(pod, place, field),
        None => Err("only fieldRef is supported yet: write the value into `value`".into()),
    }
}

/// The fields of the downward API that a pod can read.
fn from_field(pod: &Pod, place: &Place, field: &ObjectFieldSelector) -> Result<String, String> {
    let meta = &pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let path = field.field_path.as_str();
    if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match map {
            "metadata.labels" => &meta.labels,
            "metadata.annotations" => &meta.annotations,
            _ => return Err(format!("fieldRef.fieldPath: there is no `{path}`")),
        };
        return Ok(map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default());
    }
    match path {
        "metadata.name" => Ok(text(&meta.name)),
        "metadata.namespace" => Ok(meta.namespace.clone().unwrap_or_else(|| "default".into())),
        "metadata.uid" => Ok(text(&meta.uid)),
        "spec.nodeName" => Ok(place.node.clone()),
        "spec.serviceAccountName" => {
            Ok(pod.spec.as_ref().map(|spec| text(&spec.service_account_name)).unwrap_or_default())
        }
        "status.podIP" | "status.podIPs" => Ok(place.ip.to_string()),
        "status.hostIP" | "status.hostIPs" => Ok(Ipv4Addr::LOCALHOST.to_string()),
        _ => Err(format!("fieldRef.fieldPath: there is no `{path}`")),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::EnvVar;

    use super::*;

    fn place() -> Place {
        Place { ip: Ipv4Addr::new(127, 40, 0, 1), node: "edge".into(), hostname: "web".into() }
    }

    fn variable(name: &str, value: &str) -> EnvVar {
        EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
    }

    fn field(name: &str, path: &str) -> EnvVar {
        let field_ref = ObjectFieldSelector { field_path: path.into(), api_version: None };
        let source = EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() };
        EnvVar { name: name.into(), value: None, value_from: Some(source) }
    }

    #[test]
    fn variables_expand_in_order_and_in_the_command() {
        let container = Container {
            command: Some(vec!["sh".into(), "-c".into(), "echo $(GREETING) $$(GREETING) $(MISSING)".into()]),
            args: Some(vec!["$(NAME)".into()]),
            env: Some(vec![
                variable("EARLY", "$(NAME)"),
                variable("NAME", "edge"),
                variable("GREETING", "hello $(NAME)"),
                variable("HOSTNAME", "mine"),
            ]),
            ..Container::default()
        };
        let process = Process::of(&Pod::default(), &container, &place()).expect("valid");
        assert_eq!(process.command, ["sh", "-c", "echo hello edge $(GREETING) $(MISSING)"]);
        assert_eq!(process.args, ["edge"]);
        let value = |name: &str| process.env.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(value("EARLY"), Some("$(NAME)"));
        assert_eq!(value("HOSTNAME"), Some("mine"));
        assert_eq!(process.env.iter().filter(|(name, _)| name == "HOSTNAME").count(), 1);
    }

    #[test]
    fn the_pod_can_be_asked_about_itself() {
        let mut pod = Pod::default();
        pod.metadata.name = Some("web".into());
        pod.metadata.labels = Some([("app".to_owned(), "shop".to_owned())].into());
        let env = vec![field("A", "metadata.name"), field("B", "metadata.labels['app']"), field("C", "status.podIP")];
        let container = Container { env: Some(env), ..Container::default() };
        let process = Process::of(&pod, &container, &place()).expect("valid");
        let values: Vec<_> = process.env.iter().rev().take(3).rev().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["web", "shop", "127.40.0.1"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let container = Container { env: Some(vec![field("A", "status.moon")]), ..Container::default() };
        let error = Process::of(&Pod::default(), &container, &place()).expect_err("unknown field");
        assert!(error.contains("env[0].valueFrom") && error.contains("status.moon"), "{error}");
    }
}
