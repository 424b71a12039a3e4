//! Files made from objects: `configMap`, `secret`, `downwardAPI`, and `projected`, which is any of them together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, DownwardAPIProjection, DownwardAPIVolumeFile, KeyToPath, SecretProjection, Volume,
    VolumeProjection,
};

use super::World;

/// Mode of files for which none is given.
const DEFAULT_MODE: i32 = 0o644;

/// What the files of a volume are made from.
pub(super) struct Files {
    default_mode: i32,
    default_user: Option<i64>,
    sources: Vec<VolumeProjection>,
}

/// Files by their path in the volume.
pub(super) type Collected = BTreeMap<String, File>;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
    /// Who shall own it.
    pub(super) user: Option<u32>,
}

impl Files {
    /// Of a volume, if it is of such a kind.
    pub(super) fn of(volume: &Volume) -> Option<Self> {
        let (default_mode, default_user, sources) = if let Some(source) = &volume.config_map {
            let config_map = ConfigMapProjection {
                name: source.name.clone(),
                items: source.items.clone(),
                optional: source.optional,
            };
            (
                source.default_mode,
                source.default_user,
                vec![VolumeProjection { config_map: Some(config_map), ..Default::default() }],
            )
        } else if let Some(source) = &volume.secret {
            let secret = SecretProjection {
                name: source.secret_name.clone().unwrap_or_default(),
                items: source.items.clone(),
                optional: source.optional,
            };
            (
                source.default_mode,
                source.default_user,
                vec![VolumeProjection { secret: Some(secret), ..Default::default() }],
            )
        } else if let Some(source) = &volume.downward_api {
            let downward_api = DownwardAPIProjection { items: source.items.clone() };
            (
                source.default_mode,
                source.default_user,
                vec![VolumeProjection { downward_api: Some(downward_api), ..Default::default() }],
            )
        } else {
            let source = volume.projected.as_ref()?;
            (source.default_mode, source.default_user, source.sources.clone().unwrap_or_default())
        };
        Some(Self { default_mode: default_mode.unwrap_or(DEFAULT_MODE), default_user, sources })
    }

    /// The files as they are now; otherwise what is missing, in upstream's words.
    pub(super) fn collect(&self, world: World<'_>) -> Result<Collected, String> {
        let mut files = Collected::new();
        for source in &self.sources {
            if let Some(source) = &source.config_map {
                self.config_map(source, world, &mut files)?;
            }
            if let Some(source) = &source.secret {
                self.secret(source, world, &mut files)?;
            }
            for item in source.downward_api.iter().flat_map(|source| source.items.iter().flatten()) {
                let bytes = downward(item, world)?.into_bytes();
                files.insert(item.path.clone(), self.file(bytes, item.mode, item.user));
            }
            // Tokens, trust bundles and certificates come from a cluster: on a node of its own there are none.
        }
        Ok(files)
    }

    fn config_map(&self, source: &ConfigMapProjection, world: World<'_>, files: &mut Collected) -> Result<(), String> {
        let optional = source.optional.unwrap_or(false);
        let Some(object) = world.references.config_map(namespace(world), &source.name) else {
            return absent("configmap", &source.name, optional);
        };
        let text = object.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_bytes()));
        let binary = object.binary_data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice()));
        self.add("config", &text.chain(binary).collect(), source.items.as_deref(), optional, files)
    }

    fn secret(&self, source: &SecretProjection, world: World<'_>, files: &mut Collected) -> Result<(), String> {
        let optional = source.optional.unwrap_or(false);
        let Some(object) = world.references.secret(namespace(world), &source.name) else {
            return absent("secret", &source.name, optional);
        };
        let data = object.data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice()));
        self.add("secret", &data.collect(), source.items.as_deref(), optional, files)
    }

    /// Adds all keys of an object, or those that are asked for.
    fn add(
        &self,
        kind: &str,
        data: &BTreeMap<&str, &[u8]>,
        items: Option<&[KeyToPath]>,
        optional: bool,
        files: &mut Collected,
    ) -> Result<(), String> {
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            let all = data.iter().map(|(key, bytes)| ((*key).to_owned(), self.file(bytes.to_vec(), None, None)));
            files.extend(all);
            return Ok(());
        };
        for item in items {
            match data.get(item.key.as_str()) {
                Some(bytes) => {
                    files.insert(item.path.clone(), self.file(bytes.to_vec(), item.mode, item.user));
                }
                None if optional => {}
                None => return Err(format!("references non-existent {kind} key: {}", item.key)),
            }
        }
        Ok(())
    }

    fn file(&self, bytes: Vec<u8>, mode: Option<i32>, user: Option<i64>) -> File {
        let mode = u32::try_from(mode.unwrap_or(self.default_mode)).unwrap_or_default() & 0o777;
        File { bytes, mode, user: user.or(self.default_user).and_then(|user| u32::try_from(user).ok()) }
    }
}

fn namespace(world: World<'_>) -> &str {
    world.pod.metadata.namespace.as_deref().unwrap_or_default()
}

fn absent(kind: &str, name: &str, optional: bool) -> Result<(), String> {
    if optional { Ok(()) } else { Err(format!("{kind} {name:?} not found")) }
}

/// What the downward API says.
fn downward(item: &DownwardAPIVolumeFile, world: World<'_>) -> Result<String, String> {
    let value = match (&item.field_ref, &item.resource_field_ref) {
        (Some(field), _) => husk_api::field_value(&field.field_path, world.pod),
        // The container that is meant is named in the reference.
        (None, Some(field)) => {
            husk_api::resource_value(field, world.pod, &Container::default(), &world.machine.allocatable())
        }
        (None, None) => return Ok(String::new()),
    };
    value.map_err(|error| error.to_string())
}
