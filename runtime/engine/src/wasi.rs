//! Building the WASI context of an instance: arguments, environment, directories, output, network permissions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::sockets::SocketAddrUse;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use crate::mount::Mount;
use crate::net::{Egress, PodAddress};
use crate::stdio::{Input, Output, Stdio};

/// What an instance is started with.
pub(crate) struct Setting<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) working_dir: Option<&'a str>,
    pub(crate) mounts: &'a [Mount],
    /// None if it has no network.
    pub(crate) address: Option<&'a PodAddress>,
    pub(crate) stdio: Stdio,
}

/// A directory that can't be given to a guest.
#[derive(Debug, thiserror::Error)]
#[error("mount {guest}: {}: {source}", host.display())]
pub(crate) struct MountError {
    guest: String,
    host: PathBuf,
    source: wasmtime::Error,
}

/// The context of an instance, for modules and components alike.
pub(crate) fn context(setting: Setting<'_>) -> Result<WasiP1Ctx, MountError> {
    let mut builder = WasiCtxBuilder::new();
    builder.args(setting.argv).envs(setting.env);
    if let Some(directory) = setting.working_dir {
        builder.initial_cwd(directory);
    }
    for mount in setting.mounts {
        let permissions = if mount.read_only { FsPerms::ReadOnly } else { FsPerms::ReadWrite };
        builder.preopened_dir(&mount.host, &mount.guest, permissions).map_err(|source| MountError {
            guest: mount.guest.clone(),
            host: mount.host.clone(),
            source,
        })?;
    }
    let Stdio { stdin, stdout, stderr, is_terminal } = setting.stdio;
    if let Some(stdin) = stdin {
        builder.stdin(Input::new(stdin, is_terminal));
    }
    builder.stdout(Output { sink: stdout, is_terminal }).stderr(Output { sink: stderr, is_terminal });
    let network = setting.address.map(|address| (address.ip, address.egress));
    builder.socket_addr_check(move |address, purpose| {
        let allowed = network.is_some_and(|(ip, egress)| is_allowed(ip, egress, address, purpose));
        Box::pin(async move { allowed })
    });
    // Addresses are resolved as names, too; which names are is decided in `sockets`.
    let may = network.is_some();
    builder.allow_tcp(may).allow_udp(may).allow_ip_name_lookup(may);
    Ok(builder.build_p1())
}

/// The second line of defence behind `sockets`, which has translated the address already.
fn is_allowed(ip: Ipv4Addr, egress: Egress, address: SocketAddr, purpose: SocketAddrUse) -> bool {
    let IpAddr::V4(wanted) = address.ip() else { return false };
    let outside = !wanted.is_loopback() && egress == Egress::Allow;
    match purpose {
        SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => wanted == ip || (wanted.is_unspecified() && outside),
        SocketAddrUse::TcpListen => wanted == ip,
        SocketAddrUse::TcpConnect | SocketAddrUse::UdpSend => wanted.is_loopback() || outside,
        // Who may call is decided where the call is made: the node's probes and proxies come from its own addresses.
        SocketAddrUse::TcpAccept | SocketAddrUse::UdpReceive => true,
    }
}
