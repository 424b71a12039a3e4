//! What an `image:` means beside the store: a file, a directory image, or a name of the alias table.
//!
//! Manifests written for Linux name images like `registry.k8s.io/busybox:1.27.2`. The alias table gives them a Wasm image that
//! understands the same commands; registry, tag and digest don't matter for it.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use super::reference::{InvalidName, Reference};

/// Well-known images and the guests that stand for them. `--image NAME=PATH` adds to it.
const ALIASES: &[(&str, &str)] =
    &[("alpine", "toolbox"), ("busybox", "toolbox"), ("httpd", "web"), ("nginx", "web"), ("pause", "pause")];

/// Environment variable that names the folder with the guests.
const IMAGES_VARIABLE: &str = "HUSK_IMAGES";

/// Finds images on the node.
#[derive(Clone, Debug)]
pub struct ImageTable {
    /// What the user said, by name as written, with or without registry and tag.
    own: BTreeMap<String, PathBuf>,
    /// Folders with guests, the first wins.
    folders: Vec<PathBuf>,
}

/// What a name leads to before anybody has looked into the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The user named it, or it is a path.
    File(PathBuf),
    /// The same, but nothing is there.
    Nowhere(String),
    /// A name that the store may know, and otherwise [`ImageTable::guest`].
    Name(Reference),
    /// No image can have that name; a file may.
    NoName {
        /// Why not.
        invalid: String,
        /// That file.
        beside: Option<PathBuf>,
    },
}

impl ImageTable {
    /// The table with `own` entries first, and the guests of this machine.
    pub fn new(own: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self { own: own.into_iter().collect(), folders: guest_folders() }
    }

    /// Does a name say itself that it is a path?
    pub fn is_path(image: &str) -> bool {
        let names_module = [".wasm", ".wat"].iter().any(|ending| image.ends_with(ending));
        image.starts_with(['.', '/']) || names_module
    }

    /// What a name leads to. `base` is the folder of the manifest.
    pub(crate) fn place(&self, image: &str, base: &Path) -> Place {
        let name = short_name(image);
        if let Some(path) = [image, without_tag(image), name].into_iter().find_map(|key| self.own.get(key)) {
            return existing(path.clone(), image);
        }
        if Self::is_path(image) {
            return existing(base.join(image), image);
        }
        match image.parse() {
            Ok(reference) => Place::Name(reference),
            Err(error) => Place::NoName { invalid: InvalidName::to_string(&error), beside: beside(image, base) },
        }
    }

    /// The guest of a well-known name, or a file beside the manifest. The error is for people.
    pub(crate) fn guest(&self, image: &str, base: &Path) -> Result<PathBuf, String> {
        let name = short_name(image);
        let guest = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, guest)| guest);
        let known = self.folders.iter().find_map(|folder| guest_in(folder, guest));
        known.or_else(|| beside(image, base)).ok_or_else(|| self.explain(image, guest))
    }

    /// Names that need no path: aliases, then the user's own.
    fn names(&self) -> Vec<&str> {
        ALIASES.iter().map(|(alias, _)| *alias).chain(self.own.keys().map(String::as_str)).collect()
    }

    fn explain(&self, image: &str, guest: &str) -> String {
        let known = self.names().join(", ");
        if ALIASES.iter().any(|(_, known)| *known == guest) {
            return format!(
                "`{image}` means the guest `{guest}`, which is not built: run `cargo xtask guests`, \
                 or name the folder with the guests in {IMAGES_VARIABLE}"
            );
        }
        format!(
            "no image `{image}`: it is not in the store, no file beside the manifest and no known name ({known}); \
             give it one with --image {}=PATH, or import it with `husk image import`",
            short_name(image)
        )
    }
}

fn existing(path: PathBuf, image: &str) -> Place {
    match path.exists() {
        true => Place::File(path),
        false => Place::Nowhere(format!("no image `{image}`: there is no {}", path.display())),
    }
}

fn beside(image: &str, base: &Path) -> Option<PathBuf> {
    let clean = !image.is_empty() && !image.chars().any(char::is_control);
    Some(base.join(image)).filter(|path| clean && path.exists())
}

fn guest_in(folder: &Path, guest: &str) -> Option<PathBuf> {
    [format!("{guest}.wasm"), guest.to_owned()].into_iter().map(|name| folder.join(name)).find(|path| path.exists())
}

/// `registry.k8s.io/library/busybox:1.28@sha256:…` → `registry.k8s.io/library/busybox`.
fn without_tag(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        // A colon before a slash belongs to the registry's port.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// `registry.k8s.io/library/busybox:1.28` → `busybox`.
fn short_name(image: &str) -> &str {
    let name = without_tag(image);
    name.rsplit('/').next().unwrap_or(name)
}

/// Where guests are looked for: what the environment says, beside the binary, and in the build folder the binary is in.
fn guest_folders() -> Vec<PathBuf> {
    let said = env::var_os(IMAGES_VARIABLE).into_iter().flat_map(|paths| env::split_paths(&paths).collect::<Vec<_>>());
    let exe = env::current_exe().ok();
    let beside = exe.iter().filter_map(|exe| exe.parent()).flat_map(|bin| {
        [bin.join("guests"), bin.join("../guests"), bin.join("../share/husk/guests"), bin.join("../../guests")]
    });
    said.chain(beside).filter(|folder| folder.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(folder: &Path) -> ImageTable {
        for guest in ["toolbox", "web"] {
            std::fs::write(folder.join(format!("{guest}.wasm")), b"").expect("written");
        }
        let own = BTreeMap::from([("redis".to_owned(), folder.join("web.wasm"))]);
        ImageTable { own, folders: vec![folder.to_owned()] }
    }

    #[test]
    fn well_known_names_mean_guests_whatever_registry_and_tag() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path());
        for (image, guest) in [
            ("busybox", "toolbox"),
            ("busybox:1.28", "toolbox"),
            ("registry.k8s.io/busybox:1.27.2", "toolbox"),
            ("localhost:5000/library/alpine:latest", "toolbox"),
            ("toolbox", "toolbox"),
        ] {
            assert!(matches!(table.place(image, folder.path()), Place::Name(_)), "{image}");
            let found = table.guest(image, folder.path()).expect(image);
            assert_eq!(found, folder.path().join(format!("{guest}.wasm")), "{image}");
        }
        let own = table.place("example.com/redis:7", folder.path());
        assert_eq!(own, Place::File(folder.path().join("web.wasm")));
    }

    #[test]
    fn paths_are_relative_to_the_manifest() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path());
        let place = |image: &str| table.place(image, folder.path());
        assert!(matches!(place("./web.wasm"), Place::File(_)));
        assert!(matches!(place("web.wasm"), Place::File(_)));
        assert!(matches!(place("./gone.wasm"), Place::Nowhere(m) if m.contains("gone.wasm")));
    }

    #[test]
    fn what_is_missing_is_explained() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path());
        let said = |image: &str| table.guest(image, folder.path()).expect_err(image);
        assert!(said("mysql:8").contains("--image mysql=PATH"));
        assert!(said("pause:3.9").contains("cargo xtask guests"));
        assert!(matches!(table.place("a b", folder.path()), Place::NoName { beside: None, .. }));
        std::fs::write(folder.path().join("My App"), b"").expect("written");
        assert!(matches!(table.place("My App", folder.path()), Place::NoName { beside: Some(_), .. }));
    }
}
