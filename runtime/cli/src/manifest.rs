//! Reads manifests: from files to pods that can be run, and everything there is to say about them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use husk_api::k8s::{ConfigMap, Pod, Secret};
use husk_api::{Document, Object, Problem};

/// What was read.
#[derive(Default)]
pub(crate) struct Manifests {
    /// Pods that are valid, in order.
    pub(crate) pods: Vec<Found>,
    /// What they may refer to.
    pub(crate) config_maps: Vec<ConfigMap>,
    /// What they may refer to.
    pub(crate) secrets: Vec<Secret>,
    /// What must be put right first.
    pub(crate) errors: Vec<Problem>,
    /// What is taken, but not as it looks.
    pub(crate) warnings: Vec<Problem>,
}

/// A pod and where it stands.
pub(crate) struct Found {
    /// Defaulted, valid, with a uid of its own.
    pub(crate) pod: Pod,
    /// The folder that its images are relative to.
    pub(crate) base: PathBuf,
    /// The file as it was named.
    file: String,
    /// The document it came from.
    document: Document,
    /// Where the pod is in its document: empty, or `spec.template.`.
    prefix: &'static str,
}

impl Found {
    /// A problem with a field of this pod.
    pub(crate) fn problem(&self, field: &str, message: String) -> Problem {
        let path = format!("{}{field}", self.prefix);
        let line = Some(self.document.line_of(&path));
        Problem { file: self.file.clone(), document: self.document.index, line, path, message }
    }

    /// The images of its containers, each once.
    pub(crate) fn images(&self) -> Vec<&str> {
        let Some(spec) = &self.pod.spec else { return Vec::new() };
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        let mut images: Vec<_> = containers.filter_map(|container| container.image.as_deref()).collect();
        images.sort_unstable();
        images.dedup();
        images
    }

    /// `namespace/name`.
    pub(crate) fn name(&self) -> String {
        let meta = &self.pod.metadata;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}/{}", part(&meta.namespace), part(&meta.name))
    }
}

/// Reads all files; `-` is standard input.
pub(crate) fn read(files: &[PathBuf]) -> Manifests {
    let mut manifests = Manifests::default();
    for path in files {
        let file = path.display().to_string();
        match text_of(path) {
            Ok(text) => manifests.add(path, &file, &text),
            Err(message) => {
                let problem = Problem { file, document: 1, line: None, path: String::new(), message };
                manifests.errors.push(problem);
            }
        }
    }
    if let ([first, ..], true, true) = (files, manifests.pods.is_empty(), manifests.errors.is_empty()) {
        let message = "there is no pod in it: name a manifest with one".to_owned();
        let file = first.display().to_string();
        manifests.errors.push(Problem { file, document: 1, line: None, path: String::new(), message });
    }
    manifests
}

/// The text of a file that is not too long to be a manifest.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    let limit = u64::try_from(husk_api::MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().take(limit + 1).read_to_end(&mut bytes),
        _ => File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "no such file: name an existing YAML or JSON manifest".to_owned(),
        io::ErrorKind::IsADirectory => "is a folder: name the manifests in it".to_owned(),
        _ => format!("can't be read: {error}"),
    })?;
    if bytes.len() > husk_api::MAX_BYTES {
        return Err(format!("is longer than {limit} bytes: split it, a manifest is never that long"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("is not text: line {} is not UTF-8; save it as UTF-8, or name a YAML file", line + 1)
    })
}

impl Manifests {
    fn add(&mut self, path: &Path, file: &str, text: &str) {
        let decoded = husk_api::check(text, file);
        self.errors.extend(decoded.errors);
        self.warnings.extend(decoded.warnings);
        let base = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        for document in decoded.documents {
            match &document.object {
                Object::ConfigMap(object) => self.config_maps.push((**object).clone()),
                Object::Secret(object) => self.secrets.push((**object).clone()),
                _ => {}
            }
            let Some(mut pod) = husk_api::pod_of(&document.object) else { continue };
            let prefix = if document.object.template().is_some() { "spec.template." } else { "" };
            name(&mut pod);
            husk_api::default_pod(&mut pod);
            if let Some(spec) = &mut pod.spec {
                spec.service_account_name.get_or_insert_with(|| "default".into());
            }
            let found = Found { pod, base: base.clone(), file: file.to_owned(), document, prefix };
            self.pods.push(found);
        }
    }
}

/// What the API server would fill in when it takes the pod.
fn name(pod: &mut Pod) {
    let meta = &mut pod.metadata;
    let uid = uuid::Uuid::new_v4().to_string();
    if let (None, Some(prefix)) = (&meta.name, &meta.generate_name) {
        meta.name = Some(format!("{prefix}{}", &uid[..5]));
    }
    if meta.namespace.as_deref().unwrap_or_default().is_empty() {
        meta.namespace = Some("default".into());
    }
    meta.uid = Some(uid);
    meta.generation = Some(1);
}
