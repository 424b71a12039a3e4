//! The pod's address: what guests may bind and reach (NET-01).
//!
//! Each pod has its own loopback address. A guest that binds `0.0.0.0`, `[::]`, `127.0.0.1` or `[::1]` gets that address, and one
//! that connects to localhost reaches it, so that two pods may both use port 8080 and don't see each other's localhost. Other
//! pods are reached at their addresses. Ports below 1024 that the node itself may not bind, since it doesn't run as root, are bound
//! elsewhere on the pod's address; guests don't notice, and the node finds them by [`Container::locate`](crate::Container::locate).
//! The rest of the loopback network is the host's: a port there is reachable only if a guest listens on it, so a service of the
//! host that listens on every address can't be reached through a pod's. Names resolve from the pod's own list; everything beyond the node is denied unless [`Egress`] says
//! otherwise.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};

/// Senders of datagrams that a guest may answer although it couldn't have addressed them itself.
const MAX_PEERS: usize = 256;

/// What a guest may reach beyond the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// Nothing.
    #[default]
    Deny,
    /// Everything, and the host's resolver answers for names that the pod doesn't know.
    Allow,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Ports on loopback addresses that guests may reach. Clones are the same table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports(Arc<Mutex<HashMap<(Protocol, SocketAddrV4), Listeners>>>);

#[derive(Debug)]
struct Listeners {
    /// Where they are in fact.
    at: SocketAddrV4,
    /// More than one: the successor of a container may listen before the last socket of its predecessor is gone.
    count: usize,
}

impl Ports {
    /// Lets guests reach a port for as long as the answer lives: who wants `address` is led to `at`.
    pub(crate) fn open(&self, protocol: Protocol, address: SocketAddrV4, at: SocketAddrV4) -> OpenPort {
        let mut ports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let listeners = ports.entry((protocol, address)).or_insert(Listeners { at, count: 0 });
        listeners.at = at;
        listeners.count += 1;
        OpenPort { ports: self.clone(), key: (protocol, address) }
    }

    /// Where a port is that guests may reach.
    pub(crate) fn locate(&self, protocol: Protocol, address: SocketAddrV4) -> Option<SocketAddrV4> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(protocol, address)).map(|listeners| listeners.at)
    }
}

/// An open port; dropping it closes it.
#[derive(Debug)]
#[must_use = "the port is closed again when this is dropped"]
pub(crate) struct OpenPort {
    ports: Ports,
    key: (Protocol, SocketAddrV4),
}

impl Drop for OpenPort {
    fn drop(&mut self) {
        let mut ports = self.ports.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listeners) = ports.get_mut(&self.key) {
            listeners.count -= 1;
            if listeners.count == 0 {
                ports.remove(&self.key);
            }
        }
    }
}

/// Why an address can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It isn't the pod's.
    NotOurs,
    /// Nobody listens there, as far as this pod can see.
    NobodyThere,
    /// The policy.
    Denied,
}

/// A pod's view of the network.
#[derive(Clone, Debug)]
pub(crate) struct PodAddress {
    pub(crate) ip: Ipv4Addr,
    pub(crate) hostname: String,
    pub(crate) hosts: Vec<(String, Ipv4Addr)>,
    pub(crate) egress: Egress,
    pub(crate) ports: Ports,
}

impl PodAddress {
    /// The address that binding `wanted` means.
    pub(crate) fn bind(&self, wanted: SocketAddr) -> Result<SocketAddr, Refused> {
        match unmapped(wanted.ip()) {
            IpAddr::V4(ip) if ip == self.ip || ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST => {
                Ok(self.at(wanted.port()))
            }
            IpAddr::V6(ip) if ip.is_unspecified() || ip.is_loopback() => Ok(self.at(wanted.port())),
            _ => Err(Refused::NotOurs),
        }
    }

    /// The address that connecting or sending to `wanted` means, if it may be reached.
    pub(crate) fn remote(&self, protocol: Protocol, wanted: SocketAddr) -> Result<SocketAddr, Refused> {
        let ip = match unmapped(wanted.ip()) {
            IpAddr::V4(ip) if ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST => self.ip,
            IpAddr::V6(ip) if ip.is_unspecified() || ip.is_loopback() => self.ip,
            IpAddr::V4(ip) => ip,
            // Sockets are IPv4 underneath.
            IpAddr::V6(_) => return Err(Refused::Denied),
        };
        let address = SocketAddrV4::new(ip, wanted.port());
        match (ip.is_loopback(), self.egress) {
            (true, _) => self.ports.locate(protocol, address).map(SocketAddr::from).ok_or(Refused::NobodyThere),
            (false, Egress::Allow) => Ok(address.into()),
            (false, Egress::Deny) => Err(Refused::Denied),
        }
    }

    /// The address of a name that the pod knows by itself.
    pub(crate) fn resolve(&self, name: &str) -> Option<Ipv4Addr> {
        let name = name.trim_end_matches('.');
        let is = |other: &str| name.eq_ignore_ascii_case(other.trim_end_matches('.'));
        if is("localhost") || (!self.hostname.is_empty() && is(&self.hostname)) {
            return Some(self.ip);
        }
        self.hosts.iter().find(|(host, _)| is(host)).map(|(_, ip)| *ip)
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip.into(), port)
    }
}

/// The sockets of one instance, by their handle in its resource table.
pub(crate) struct PodNet {
    pub(crate) address: Arc<PodAddress>,
    /// Sockets that the guest made as IPv6 ones; they are IPv4 underneath, as the pod's address is.
    pub(crate) as_v6: HashSet<u32>,
    /// Ports that the guest has opened.
    pub(crate) open: HashMap<u32, OpenPort>,
    /// Ports that sockets stand for; they are bound to others.
    pub(crate) stands_for: HashMap<u32, u16>,
    peers: VecDeque<SocketAddr>,
}

impl PodNet {
    pub(crate) fn new(address: Arc<PodAddress>) -> Self {
        Self {
            address,
            as_v6: HashSet::new(),
            open: HashMap::new(),
            stands_for: HashMap::new(),
            peers: VecDeque::new(),
        }
    }

    /// How the guest sees the address that this socket is bound to.
    pub(crate) fn shown_local(&self, handle: u32, mut address: SocketAddr) -> SocketAddr {
        if let Some(port) = self.stands_for.get(&handle) {
            address.set_port(*port);
        }
        self.shown(handle, address)
    }

    /// How the guest sees an address that this socket has to do with.
    pub(crate) fn shown(&self, handle: u32, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(ip) if self.as_v6.contains(&handle) => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
            }
            _ => address,
        }
    }

    /// Remembers who sent a datagram, so that it can be answered: a client on the node has no address that a guest may call.
    pub(crate) fn heard_from(&mut self, peer: SocketAddr) {
        if !self.peers.contains(&peer) {
            self.peers.truncate(MAX_PEERS - 1);
            self.peers.push_front(peer);
        }
    }

    /// As [`PodAddress::remote`], for datagrams.
    pub(crate) fn destination(&self, wanted: SocketAddr) -> Result<SocketAddr, Refused> {
        let plain = SocketAddr::new(unmapped(wanted.ip()), wanted.port());
        if self.peers.contains(&plain) {
            return Ok(plain);
        }
        self.address.remote(Protocol::Udp, wanted)
    }

    /// Forgets a socket that is gone.
    pub(crate) fn forget(&mut self, handle: u32) {
        self.as_v6.remove(&handle);
        self.open.remove(&handle);
        self.stands_for.remove(&handle);
    }
}

/// The IPv4 address that an IPv6 one stands for.
fn unmapped(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> PodAddress {
        PodAddress {
            ip: Ipv4Addr::new(127, 9, 0, 1),
            hostname: "web-0".into(),
            hosts: vec![("db".into(), Ipv4Addr::new(127, 9, 0, 2))],
            egress: Egress::Deny,
            ports: Ports::default(),
        }
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("address")
    }

    #[test]
    fn every_way_to_say_here_is_the_pods_address() {
        for wanted in ["0.0.0.0:80", "127.0.0.1:80", "[::]:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "127.9.0.1:80"] {
            assert_eq!(pod().bind(address(wanted)), Ok(address("127.9.0.1:80")), "{wanted}");
        }
        for wanted in ["127.9.0.2:80", "10.0.0.1:80", "[fe80::1]:80"] {
            assert_eq!(pod().bind(address(wanted)), Err(Refused::NotOurs), "{wanted}");
        }
    }

    #[test]
    fn only_ports_that_are_open_are_reachable() {
        let pod = pod();
        assert_eq!(pod.remote(Protocol::Tcp, address("127.0.0.1:22")), Err(Refused::NobodyThere));
        let here = "127.9.0.2:80".parse().expect("address");
        let port = pod.ports.open(Protocol::Tcp, here, here);
        assert_eq!(pod.remote(Protocol::Tcp, address("127.9.0.2:80")), Ok(address("127.9.0.2:80")));
        assert_eq!(pod.remote(Protocol::Udp, address("127.9.0.2:80")), Err(Refused::NobodyThere));
        drop(port);
        assert_eq!(pod.remote(Protocol::Tcp, address("127.9.0.2:80")), Err(Refused::NobodyThere));
        assert_eq!(pod.remote(Protocol::Tcp, address("10.1.2.3:80")), Err(Refused::Denied));
    }

    #[test]
    fn names_come_from_the_pods_list() {
        for (name, expected) in [("localhost", Some(1)), ("WEB-0.", Some(1)), ("db", Some(2)), ("example.com", None)] {
            assert_eq!(pod().resolve(name), expected.map(|last| Ipv4Addr::new(127, 9, 0, last)), "{name}");
        }
    }
}
