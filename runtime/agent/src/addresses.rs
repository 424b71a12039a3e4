//! Every pod has its own loopback address, so that two pods may use the same port (NET-01).
//!
//! Several agents may run on one machine, each with pods of its own. An address is taken by binding an abstract socket that is
//! named for it: there is no file to be trusted or left behind, it holds for all users of this loopback interface and for no
//! other, and it goes with the process that has it, however that ends.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Addresses per user of the machine.
const ADDRESSES: u32 = 65_534;
/// The first second octet; those below are for what is configured by hand.
const FIRST_NET: u8 = 40;
/// Users have different second octets as far as there are any.
const NETS: u8 = 200;

/// Gives out addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    net: u8,
    /// Where it begins to look.
    first: u32,
}

/// An address that is taken as long as this lives.
#[derive(Debug)]
pub(crate) struct Address {
    ip: Ipv4Addr,
    /// Says so to other agents.
    _claim: UnixDatagram,
}

impl Address {
    /// The address.
    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }
}

impl Addresses {
    /// The addresses of this user; others may share them.
    pub(crate) fn of_this_user() -> io::Result<Self> {
        let uid = fs::metadata("/proc/self")?.uid();
        let place = u8::try_from(uid % u32::from(NETS)).unwrap_or_default();
        // Agents begin at different places, so that none takes at once what another one gives up for the moment of a new start.
        let first = std::process::id().wrapping_mul(0x9E37_79B1) % ADDRESSES;
        Ok(Self { net: FIRST_NET + place, first })
    }

    /// Takes the first address that is free from there on.
    pub(crate) fn take(&self) -> io::Result<Address> {
        for n in 0..ADDRESSES {
            let host = 1 + (self.first + n) % ADDRESSES;
            let [_, _, third, fourth] = host.to_be_bytes();
            match self.take_this(Ipv4Addr::new(127, self.net, third, fourth)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                taken => return taken,
            }
        }
        Err(io::Error::other("all pod addresses of this machine are in use"))
    }

    /// Takes an address that a pod had before.
    pub(crate) fn take_this(&self, ip: Ipv4Addr) -> io::Result<Address> {
        if ip.octets()[..2] != [127, self.net] {
            return Err(io::Error::other(format!("{ip} is no pod address of this user")));
        }
        let claim = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("husk/pod-address/{ip}"))?)?;
        Ok(Address { ip, _claim: claim })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_once_and_free_again_after_its_pod() {
        // Two agents, of users that share their addresses; no user has these.
        let (one, other) = (Addresses { net: 250, first: 0 }, Addresses { net: 250, first: 0 });
        let first = one.take().expect("free");
        let second = other.take().expect("free");
        assert_ne!(first.ip(), second.ip());
        let ip = first.ip();
        drop(first);
        assert_eq!(other.take().expect("free").ip(), ip);
        assert_eq!(one.take_this(second.ip()).expect_err("taken").kind(), io::ErrorKind::AddrInUse);
        drop(second);
        let last = Addresses { net: 250, first: ADDRESSES - 1 };
        let (end, begun_again) = (last.take().expect("free"), last.take().expect("free"));
        assert_eq!((end.ip(), begun_again.ip()), (Ipv4Addr::new(127, 250, 255, 254), Ipv4Addr::new(127, 250, 0, 1)));
        assert!(one.take_this(Ipv4Addr::new(127, 250, 0, 2)).is_ok());
        assert!(one.take_this(Ipv4Addr::LOCALHOST).is_err(), "it is nobody's");
    }
}
