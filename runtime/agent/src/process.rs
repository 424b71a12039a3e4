//! What a container's process gets: command, arguments, environment.

use std::sync::Arc;

use husk_api::{EnvSources, container_env};
use husk_core::expansion::{Room, TooLong, expand};
use husk_core::spec::ResourceList;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret, Service};

use crate::sandbox::Ground;
use crate::volumes::Volumes;

/// The process of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    /// `command`, expanded; empty if the image decides.
    pub(crate) command: Vec<String>,
    /// `args`, expanded.
    pub(crate) args: Vec<String>,
    /// `env`, expanded, in order; a name stands once.
    pub(crate) env: Vec<(String, String)>,
}

impl Process {
    /// Of a container of a pod whose address is in its status. The error is for a person.
    pub(crate) fn of(pod: &Pod, container: &Container, sources: &Sources<'_>) -> Result<Self, String> {
        let env = container_env(pod, container, sources).map_err(|error| error.to_string())?;
        let value = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut room = Room::default();
        let mut words = |list: &Option<Vec<String>>| -> Result<Vec<String>, String> {
            let expanded = list.iter().flatten().map(|word| expand(word, value, &mut room));
            expanded.collect::<Result<_, TooLong>>().map_err(|error| error.to_string())
        };
        Ok(Self { command: words(&container.command)?, args: words(&container.args)?, env })
    }
}

/// What a container's environment can draw on.
pub(crate) struct Sources<'a> {
    /// Its pod.
    pub(crate) pod: &'a Pod,
    /// What the agent knows.
    pub(crate) ground: &'a Ground,
    /// The pod's, once they are made.
    pub(crate) volumes: Option<&'a Volumes>,
    allocatable: Arc<ResourceList>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(pod: &'a Pod, ground: &'a Ground, volumes: Option<&'a Volumes>) -> Self {
        Self { pod, ground, volumes, allocatable: ground.machine.allocatable() }
    }
    fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or_default()
    }
}

impl EnvSources for Sources<'_> {
    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>> {
        self.ground.references.config_map(self.namespace(), name)
    }

    fn secret(&self, name: &str) -> Option<Arc<Secret>> {
        self.ground.references.secret(self.namespace(), name)
    }

    fn file(&self, volume: &str, path: &str) -> Option<String> {
        self.volumes?.text(volume, path)
    }

    fn services(&self) -> Arc<[Service]> {
        self.ground.references.services()
    }

    fn allocatable(&self) -> &ResourceList {
        &self.allocatable
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{
        EnvVar, EnvVarSource, ObjectFieldSelector, PodStatus, ResourceFieldSelector, SecretKeySelector,
    };

    use std::path::Path;

    use husk_core::eviction::EvictionConfig;

    use super::*;
    use crate::images::{ImageTable, Images, ImagesConfig};
    use crate::machine::ThisMachine;
    use crate::references::MemoryReferences;

    fn process(pod: &Pod, container: &Container) -> Result<Process, String> {
        let ground = Ground {
            references: Arc::new(MemoryReferences::default()),
            images: Images::new(ImageTable::new([]), ImagesConfig::default(), Path::new("/")),
            machine: ThisMachine::new(Path::new("/"), ResourceList::new(), EvictionConfig::default()),
            users: crate::users::Users::new(Path::new("/nowhere"), crate::users::IDS_PER_POD),
            memory: crate::volumes::Memory::none(),
        };
        Process::of(pod, container, &Sources::new(pod, &ground, None))
    }

    fn variable(name: &str, value: &str) -> EnvVar {
        EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
    }

    fn from(name: &str, source: EnvVarSource) -> EnvVar {
        EnvVar { name: name.into(), value: None, value_from: Some(source) }
    }

    #[test]
    fn variables_are_put_into_command_and_arguments() {
        let container = Container {
            command: Some(vec!["sh".into(), "-c".into(), "echo $(GREETING) $$(GREETING) $(MISSING)".into()]),
            args: Some(vec!["$(NAME)".into()]),
            env: Some(vec![variable("NAME", "edge"), variable("GREETING", "hello $(NAME)")]),
            ..Container::default()
        };
        let process = process(&Pod::default(), &container).expect("valid");
        assert_eq!(process.command, ["sh", "-c", "echo hello edge $(GREETING) $(MISSING)"]);
        assert_eq!(process.args, ["edge"]);
    }

    #[test]
    fn the_pod_and_the_machine_can_be_asked() {
        let status = PodStatus { pod_ip: Some("127.40.0.1".into()), ..PodStatus::default() };
        let pod = Pod { status: Some(status), ..Pod::default() };
        let field_ref = ObjectFieldSelector { field_path: "status.podIP".into(), api_version: None };
        let resource = ResourceFieldSelector { resource: "limits.memory".into(), ..ResourceFieldSelector::default() };
        let env = vec![
            from("IP", EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() }),
            from("MEMORY", EnvVarSource { resource_field_ref: Some(resource), ..EnvVarSource::default() }),
        ];
        let container = Container { env: Some(env), ..Container::default() };
        let process = process(&pod, &container).expect("valid");
        assert_eq!(process.env[0], ("IP".into(), "127.40.0.1".into()));
        assert!(process.env[1].1.parse::<u64>().expect("bytes") > 1 << 20);
    }

    #[test]
    fn what_is_not_here_is_named() {
        let key = SecretKeySelector { name: "token".into(), key: "value".into(), optional: None };
        let source = EnvVarSource { secret_key_ref: Some(key), ..EnvVarSource::default() };
        let container = Container { env: Some(vec![from("TOKEN", source)]), ..Container::default() };
        let error = process(&Pod::default(), &container).expect_err("no secret");
        assert!(error.contains("token"), "{error}");
    }
}
