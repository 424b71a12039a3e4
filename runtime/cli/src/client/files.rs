//! `-f`: objects from files, folders and standard input.

use std::path::{Path, PathBuf};

use clap::Args;
use husk_api::{Problem, Written};

use super::failure::{Cause, Failure};
use super::images;
use super::output::{name_of, text};
use super::resources::{Resource, Resources};
use super::target::{Namespace, Target};
use crate::{check, manifest};

/// Files of a folder with other endings are left alone.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Which files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Files {
    /// Files or folders with manifests; `-` reads standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: Vec<PathBuf>,
    /// Also files in the folders of a folder
    #[arg(short = 'R', long)]
    recursive: bool,
}

/// An object of a file.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    file: String,
    pub(crate) written: Written,
}

/// An object of a file, and where the server has it.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) found: Found,
    pub(crate) target: Target,
    pub(crate) namespace: Option<String>,
}

impl Files {
    /// Is none named?
    pub(crate) fn is_empty(&self) -> bool {
        self.filename.is_empty()
    }

    /// What is written in them.
    pub(crate) fn objects(&self) -> Result<Vec<Found>, Failure> {
        self.read(false).map(|(objects, _)| objects)
    }

    /// What is written in them, if there is nothing wrong with it as far as can be seen from here. Problems are told;
    /// the warnings come back as a server writes them.
    pub(crate) fn checked(&self) -> Result<(Vec<Found>, Vec<String>), Failure> {
        self.read(true)
    }

    fn read(&self, checks: bool) -> Result<(Vec<Found>, Vec<String>), Failure> {
        let (mut objects, mut warnings, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for path in self.paths()? {
            let file = path.display().to_string();
            let text = match manifest::text_of(&path) {
                Ok(text) => text,
                Err(message) => {
                    errors.push(Problem { file, document: 1, line: None, path: String::new(), message });
                    continue;
                }
            };
            match husk_api::written(&text, &file) {
                Ok(written) if checks => {
                    // An empty file is one of several without anything in it, and no mistake.
                    if !written.is_empty() {
                        let checked = husk_api::check_with_others(&text, &file);
                        warnings.extend(checked.warnings);
                        errors.extend(checked.errors);
                    }
                    for mut written in written {
                        errors.extend(images::make_absolute(&mut written, &path, &file));
                        objects.push(Found { file: file.clone(), written });
                    }
                }
                Ok(written) => objects.extend(written.into_iter().map(|written| Found { file: file.clone(), written })),
                Err(found) => errors.extend(found),
            }
        }
        check::problems(&warnings, &errors);
        if !errors.is_empty() {
            return Err(Failure::Told);
        }
        if objects.is_empty() {
            return Err(Failure::other("no objects passed: there is none in what -f names"));
        }
        let told = warnings.into_iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect();
        Ok((objects, told))
    }

    fn paths(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut paths = Vec::new();
        for path in &self.filename {
            if path.to_str().is_some_and(|path| path.starts_with("http://") || path.starts_with("https://")) {
                let message = format!("{}: manifests are not fetched: pipe one into `-f -`", path.display());
                return Err(Failure::Other(message));
            }
            if path.is_dir() {
                self.folder(path, &mut paths)?;
            } else {
                paths.push(path.clone());
            }
        }
        Ok(paths)
    }

    fn folder(&self, folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::Other(format!("{}: {error}", folder.display()));
        let mut entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(failed)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // A link to a folder isn't followed: it may lead back.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if is_folder && self.recursive {
                self.folder(&path, paths)?;
            } else if !is_folder && ENDINGS.contains(&ending) {
                paths.push(path);
            }
        }
        Ok(())
    }

    /// The objects by their names only, each with its namespace.
    pub(crate) fn targets(
        &self,
        resources: &Resources,
        namespace: &Namespace,
    ) -> Result<Vec<(Target, Option<String>)>, Failure> {
        let placed = |found: Found| found.placed(resources, namespace);
        let placed = self.objects()?.into_iter().map(placed).collect::<Result<Vec<_>, _>>()?;
        Ok(placed.into_iter().map(|placed| (placed.target, placed.namespace)).collect())
    }
}

impl Found {
    /// Where the server has it.
    pub(crate) fn placed(self, resources: &Resources, namespace: &Namespace) -> Result<Placed, Failure> {
        let json = &self.written.json;
        let (version, kind, name) = (text(&json["apiVersion"]), text(&json["kind"]), name_of(json));
        let own = json["metadata"]["namespace"].as_str().filter(|own| !own.is_empty());
        let Some(resource) = resources.of_kind(version, kind) else {
            return Err(Failure::Other(format!(
                "resource mapping not found for name: {name:?} namespace: {:?} from {:?}: no matches for kind {kind:?} in version {version:?}\n{}",
                own.unwrap_or_default(),
                self.file,
                self.alternatives(resources)
            )));
        };
        if let (Some(own), Some(asked)) = (own, &namespace.namespace)
            && own != asked
            && resource.is_namespaced
        {
            return Err(Failure::Other(format!(
                "the namespace from the provided object {own:?} does not match the namespace {asked:?}. You must pass '--namespace={own}' to perform this operation."
            )));
        }
        let namespace = resource.is_namespaced.then(|| own.unwrap_or(namespace.name()).to_owned());
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Ok(Placed { target: Target { resource, name }, namespace, found: self })
    }

    /// What there is instead.
    fn alternatives(&self, resources: &Resources) -> String {
        let kind = text(&self.written.json["kind"]);
        let kinds = resources.kinds();
        match kinds.get(kind) {
            Some(version) => format!("this agent has {kind} in version {version:?}"),
            None => format!("this agent has {}", kinds.into_keys().collect::<Vec<_>>().join(", ")),
        }
    }

    /// The object with the namespace that it is in.
    pub(crate) fn object(&self, namespace: Option<&str>) -> serde_json::Value {
        let mut object = self.written.json.clone();
        if let (Some(namespace), Some(metadata)) = (namespace, object["metadata"].as_object_mut()) {
            metadata.insert("namespace".into(), namespace.into());
        }
        object
    }

    /// Tells what the server says about it: with lines, if it is about fields.
    pub(crate) fn explain(&self, error: Failure, doing: &str) -> Failure {
        match error {
            Failure::Server(status) if status.reason == "Invalid" && !status.causes.is_empty() => {
                let problem = |cause: Cause| self.written.problem(&self.file, &cause.field, cause.message);
                let problems: Vec<Problem> = status.causes.into_iter().map(problem).collect();
                check::problems(&[], &problems);
                Failure::Told
            }
            error => error.when(format!("error when {doing} {:?}", self.file)),
        }
    }
}

impl Placed {
    /// `TYPE/NAME`, of what the server gave back.
    pub(crate) fn named(&self, object: &serde_json::Value) -> String {
        named(&self.target.resource, name_of(object))
    }
}

/// `TYPE/NAME`.
pub(crate) fn named(resource: &Resource, name: &str) -> String {
    format!("{}/{name}", resource.prefix())
}
