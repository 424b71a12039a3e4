//! The files that a node gives every container: `/etc/hosts`, `/etc/hostname`, and the name of its namespace (META-01).

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use husk_api::Hostname;
use husk_engine::Mount;
use k8s_openapi::api::core::v1::{HostAlias, Pod, PodSpec};

/// What a kernel takes.
const MAX_HOSTNAME: usize = 64;

/// Files of a pod on the node, and where its containers see them.
const FILES: [(&str, &str); 3] = [
    ("hosts", "/etc/hosts"),
    ("hostname", "/etc/hostname"),
    ("namespace", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"),
];

/// What upstream writes first.
const HOSTS: &str = "# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
";

/// The files of one pod.
#[derive(Debug)]
pub(crate) struct NodeFiles {
    folder: PathBuf,
    names: Vec<&'static str>,
}

/// How a pod calls itself: what `hostname` says, and its name and domain.
pub(crate) fn identity(pod: &Pod, cluster_domain: &str) -> Result<(String, Hostname), String> {
    let hostname = husk_api::hostname(pod, cluster_domain)?;
    let full = full_name(&hostname).filter(|_| spec_says(pod, |spec| spec.set_hostname_as_fqdn) == Some(true));
    match full {
        Some(full) if full.len() > MAX_HOSTNAME => Err(format!(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long ({MAX_HOSTNAME} \
             characters is the max, {} characters requested)",
            full.len()
        )),
        Some(full) => Ok((full, hostname)),
        None => Ok((hostname.name.clone(), hostname)),
    }
}

/// Names that the pod's containers resolve beside its hostname.
pub(crate) fn names(pod: &Pod, hostname: &Hostname, ip: Ipv4Addr) -> Vec<(String, Ipv4Addr)> {
    let own = full_name(hostname).into_iter().chain([hostname.name.clone()]).map(|name| (name, ip));
    let aliases = aliases(pod).filter_map(|alias| Some((alias.ip.parse().ok()?, alias.hostnames.as_ref()?)));
    own.chain(aliases.flat_map(|(ip, names): (Ipv4Addr, _)| names.iter().map(move |name| (name.clone(), ip)))).collect()
}

impl NodeFiles {
    /// Writes them into a folder of the pod.
    pub(crate) fn write(folder: PathBuf, pod: &Pod, ip: Ipv4Addr, cluster_domain: &str) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let mut names = Vec::new();
        // A pod whose name can't be made is told so when its containers start.
        if let Ok((said, hostname)) = identity(pod, cluster_domain) {
            put(&folder.join("hosts"), &hosts(pod, &hostname, ip))?;
            put(&folder.join("hostname"), &format!("{said}\n"))?;
            names.extend(["hosts", "hostname"]);
        }
        if spec_says(pod, |spec| spec.automount_service_account_token) != Some(false) {
            put(&folder.join("namespace"), pod.metadata.namespace.as_deref().unwrap_or_default())?;
            names.push("namespace");
        }
        Ok(Self { folder, names })
    }

    /// Mounts of those that are in no volume's way.
    pub(crate) fn mounts(&self, volumes: &[Mount]) -> Vec<Mount> {
        let is_covered = |guest: &str| volumes.iter().any(|volume| Path::new(guest).starts_with(&volume.guest));
        let files = FILES.iter().filter(|(name, guest)| self.names.contains(name) && !is_covered(guest));
        files.map(|(name, guest)| Mount::new(self.folder.join(name), *guest, true)).collect()
    }
}

/// What is there already needs no space: a pod that goes on does so on a full disk as well.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let is_there = fs::read(path).is_ok_and(|there| there == text.as_bytes());
    if is_there { Ok(()) } else { fs::write(path, text) }
}

/// `/etc/hosts`, to the letter as upstream has it.
fn hosts(pod: &Pod, hostname: &Hostname, ip: Ipv4Addr) -> String {
    let mut text = HOSTS.to_owned();
    let _ = match full_name(hostname) {
        Some(full) => writeln!(text, "{ip}\t{full}\t{}", hostname.name),
        None => writeln!(text, "{ip}\t{}", hostname.name),
    };
    let mut aliases = aliases(pod).peekable();
    if aliases.peek().is_some() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for HostAlias { ip, hostnames } in aliases {
        let _ = writeln!(text, "{ip}\t{}", hostnames.clone().unwrap_or_default().join("\t"));
    }
    text
}

fn full_name(hostname: &Hostname) -> Option<String> {
    (!hostname.domain.is_empty()).then(|| format!("{}.{}", hostname.name, hostname.domain))
}

fn aliases(pod: &Pod) -> impl Iterator<Item = &HostAlias> {
    pod.spec.iter().flat_map(|spec| spec.host_aliases.iter().flatten())
}

fn spec_says(pod: &Pod, field: impl Fn(&PodSpec) -> Option<bool>) -> Option<bool> {
    pod.spec.as_ref().and_then(field)
}
