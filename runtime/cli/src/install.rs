//! `husk install`: the unit that has systemd start the agent at boot and look after it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::out::out;

/// Name of the unit.
const UNIT: &str = "husk.service";

/// What `husk install` is asked.
#[derive(Args)]
pub(crate) struct Install {
    /// The configuration file that the agent is started with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the unit into this folder instead of systemd's
    #[arg(long, value_name = "FOLDER")]
    units: Option<PathBuf>,
    /// Print the unit and write nothing
    #[arg(long)]
    print: bool,
}

impl Install {
    /// Writes the unit.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let program = std::env::current_exe().context("can't find this program")?;
        let config = self.config.as_deref().map(existing).transpose()?;
        let is_root =
            fs::metadata("/proc/self").is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0);
        let unit = unit(&program, config.as_deref(), is_root)?;
        if self.print {
            out(unit.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        let folder = match (&self.units, is_root) {
            (Some(folder), _) => folder.clone(),
            (None, true) => "/etc/systemd/system".into(),
            (None, false) => user_units()?,
        };
        fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let path = folder.join(UNIT);
        let new = folder.join(format!(".{UNIT}.new"));
        fs::write(&new, unit).with_context(|| format!("can't write {}", new.display()))?;
        fs::rename(&new, &path).with_context(|| format!("can't write {}", path.display()))?;
        let systemctl = if is_root { "systemctl" } else { "systemctl --user" };
        out(format_args!("wrote {}", path.display()));
        out(format_args!("now:  {systemctl} daemon-reload && {systemctl} enable --now husk"));
        if !is_root {
            out("and:  loginctl enable-linger   (so that it runs without you being logged in)");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn unit(program: &Path, config: Option<&Path>, is_root: bool) -> Result<String> {
    let mut command = format!("{} agent --log-format json", word(program)?);
    if let Some(config) = config {
        write!(command, " --config {}", word(config)?)?;
    }
    let wanted_by = if is_root { "multi-user.target" } else { "default.target" };
    // The grace of pods is 30 s unless configured: systemd has to wait for longer.
    Ok(format!(
        "[Unit]
Description=Husk: Kubernetes Pods of WebAssembly modules
Documentation=man:systemd.service(5)
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=1
WatchdogSec=60
TimeoutStopSec=infinity
KillMode=mixed
OOMPolicy=continue
NoNewPrivileges=yes

[Install]
WantedBy={wanted_by}
"
    ))
}

/// A word of a command line in a unit.
fn word(path: &Path) -> Result<String> {
    let Some(text) = path.to_str() else { bail!("{}: not UTF-8, which a unit can't name", path.display()) };
    if text.chars().any(char::is_control) {
        bail!("{}: a unit can't name a path with control characters", path.display());
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    Ok(if escaped.contains(char::is_whitespace) || escaped.len() != text.len() {
        format!("\"{escaped}\"")
    } else {
        escaped
    })
}

fn existing(path: &Path) -> Result<PathBuf> {
    // A mistake in it is told now and not at the next boot.
    husk_agent::AgentConfiguration::read(path)?;
    std::path::absolute(path).with_context(|| format!("{}: no place", path.display()))
}

fn user_units() -> Result<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    Ok(config.context("neither XDG_CONFIG_HOME nor HOME is set: give a folder with --units")?.join("systemd/user"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_names_what_is_started() {
        let unit = unit(Path::new("/opt/my husk/husk"), Some(Path::new("/etc/100%/c.yaml")), true).expect("a unit");
        assert!(
            unit.contains("ExecStart=\"/opt/my husk/husk\" agent --log-format json --config \"/etc/100%%/c.yaml\"\n"),
            "{unit}"
        );
        assert!(unit.contains("WantedBy=multi-user.target"));
        assert!(super::unit(Path::new("/a\nb"), None, true).is_err());
    }
}
