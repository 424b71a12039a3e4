//! Where an agent keeps its data and where it listens, unless it is told otherwise. Clients look in the same places.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The Unix socket of the API: `/run/husk/husk.sock` for root, `$XDG_RUNTIME_DIR/husk.sock` for others. A user without a
/// runtime folder has it in the data folder.
pub fn default_socket() -> PathBuf {
    Surroundings::present().socket()
}

/// What outlives the agent: `/var/lib/husk` for root, `$XDG_STATE_HOME/husk` for others, else `$XDG_DATA_HOME/husk`, else
/// `~/.local/state/husk`.
pub fn default_data_dir() -> PathBuf {
    Surroundings::present().data_dir()
}

/// Whom a process runs for.
struct Surroundings<F> {
    is_root: bool,
    variable: F,
}

impl Surroundings<fn(&str) -> Option<OsString>> {
    fn present() -> Self {
        Self { is_root: rustix::process::geteuid().is_root(), variable: |name| env::var_os(name) }
    }
}

impl<F: Fn(&str) -> Option<OsString>> Surroundings<F> {
    fn socket(&self) -> PathBuf {
        if self.is_root {
            return "/run/husk/husk.sock".into();
        }
        self.folder("XDG_RUNTIME_DIR").unwrap_or_else(|| self.data_dir()).join("husk.sock")
    }

    fn data_dir(&self) -> PathBuf {
        // Who has no home has no other place either: that it can't be written is said with its name.
        let system = || PathBuf::from("/var/lib/husk");
        if self.is_root {
            return system();
        }
        let own = self.folder("XDG_STATE_HOME").or_else(|| self.folder("XDG_DATA_HOME"));
        let own = own.or_else(|| self.folder("HOME").map(|home| home.join(".local/state")));
        own.map_or_else(system, |folder| folder.join("husk"))
    }

    /// A folder that a variable names. One that depends on where the process runs counts as none, as the XDG rules have it.
    fn folder(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_places_of_their_own() {
        let all = "XDG_RUNTIME_DIR=/run/user/7 XDG_STATE_HOME=/s XDG_DATA_HOME=/d HOME=/home/me";
        for (is_root, variables, socket, data_dir) in [
            (true, all, "/run/husk/husk.sock", "/var/lib/husk"),
            (true, "", "/run/husk/husk.sock", "/var/lib/husk"),
            (false, all, "/run/user/7/husk.sock", "/s/husk"),
            (false, "XDG_DATA_HOME=/d HOME=/home/me", "/d/husk/husk.sock", "/d/husk"),
            (false, "HOME=/home/me", "/home/me/.local/state/husk/husk.sock", "/home/me/.local/state/husk"),
            (
                false,
                "XDG_RUNTIME_DIR=here XDG_STATE_HOME= HOME=/h",
                "/h/.local/state/husk/husk.sock",
                "/h/.local/state/husk",
            ),
            (false, "", "/var/lib/husk/husk.sock", "/var/lib/husk"),
        ] {
            let variable = |name: &str| {
                let found = variables.split(' ').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let surroundings = Surroundings { is_root, variable };
            assert_eq!(surroundings.socket(), PathBuf::from(socket), "{variables:?}");
            assert_eq!(surroundings.data_dir(), PathBuf::from(data_dir), "{variables:?}");
        }
    }
}
