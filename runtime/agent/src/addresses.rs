//! Every pod has its own loopback address, so that two pods may use the same port (NET-01).
//!
//! Several agents may run on one machine, each with pods of its own. An address is taken by locking a file that is named for it;
//! the lock goes with the process that holds it, however that ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Addresses per user of the machine.
const ADDRESSES: u32 = 65_534;
/// The first second octet; those below are for what is configured by hand.
const FIRST_NET: u32 = 40;
/// Users have different second octets as far as there are any.
const NETS: u32 = 200;

/// Gives out addresses.
#[derive(Debug)]
pub struct Addresses {
    folder: PathBuf,
    net: u32,
}

/// An address that is taken as long as this lives.
#[derive(Debug)]
pub struct Address {
    ip: Ipv4Addr,
    /// Holds the lock.
    _lock: File,
}

impl Address {
    /// The address.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }
}

impl Addresses {
    /// The addresses of this user.
    pub fn of_this_user() -> io::Result<Self> {
        let uid = fs::metadata("/proc/self")?.uid();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
        let folder = match runtime {
            Some(runtime) => runtime.join("husk/addresses"),
            None => std::env::temp_dir().join(format!("husk-{uid}/addresses")),
        };
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, net: FIRST_NET + uid % NETS })
    }

    /// Takes the first address that is free.
    pub fn take(&self) -> io::Result<Address> {
        for host in 1..=ADDRESSES {
            let [_, _, third, fourth] = host.to_be_bytes();
            let net = u8::try_from(self.net).unwrap_or(u8::MAX);
            let ip = Ipv4Addr::new(127, net, third, fourth);
            let lock =
                File::options().create(true).truncate(false).write(true).open(self.folder.join(ip.to_string()))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Address { ip, _lock: lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other("all pod addresses of this machine are in use"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_once_and_free_again_after_its_pod() {
        let folder = tempfile::tempdir().expect("a folder");
        let addresses = Addresses { folder: folder.path().to_owned(), net: 40 };
        let (first, second) = (addresses.take().expect("free"), addresses.take().expect("free"));
        assert_eq!(first.ip(), Ipv4Addr::new(127, 40, 0, 1));
        assert_eq!(second.ip(), Ipv4Addr::new(127, 40, 0, 2));
        drop(first);
        assert_eq!(addresses.take().expect("free").ip(), Ipv4Addr::new(127, 40, 0, 1));
    }
}
