//! `nslookup`.

use std::io::Write;
use std::net::{IpAddr, ToSocketAddrs};

use super::{Context, Failure, Status};

/// `nslookup NAME`: the addresses that the node's resolver gives.
pub(super) fn nslookup(context: &mut Context<'_>) -> Status {
    let Some(name) = context.operands().iter().find(|arg| !arg.starts_with('-')) else {
        return Err(Failure::from("usage: nslookup NAME".to_owned()));
    };
    let addresses = match (name.as_str(), 0).to_socket_addrs() {
        Ok(addresses) => {
            let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
            addresses.sort();
            addresses.dedup();
            addresses
        }
        Err(error) => return Err(Failure::from(format!("can't resolve '{name}': {}", super::plain(&error)))),
    };
    if addresses.is_empty() {
        return Err(Failure::from(format!("can't resolve '{name}': Name does not resolve")));
    }
    writeln!(context.output, "Name:      {name}")?;
    for (index, address) in addresses.iter().enumerate() {
        writeln!(context.output, "Address {}: {address}", index + 1)?;
    }
    Ok(0)
}
