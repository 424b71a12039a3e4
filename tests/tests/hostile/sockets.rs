//! Attacks on the network: sockets to where a guest has no business, and more of them than anybody needs.

use std::net::{TcpListener, UdpSocket};

use crate::arena::Arena;
use crate::attack::{Attack, Guest};

/// Errors of the intruder's C library.
const ACCES: i64 = 2;
const IN_USE: i64 = 3;
const ADDRESS_NOT_AVAILABLE: i64 = 4;
const REFUSED: i64 = 14;
/// A rule was broken that ends who breaks it: to hold more sockets than there may be is one.
const ABORTED: i64 = 134;

/// What the guest in Rust tries.
fn intruder(name: &'static str, arguments: &str) -> Attack {
    Attack::new(name, Guest::Intruder(arguments.split(' ').map(str::to_owned).collect()))
}

// spec: RES-06
#[test]
fn sockets_lead_nowhere_but_to_pods() {
    // Services of the host, which listen where a careless one does.
    let everywhere = TcpListener::bind("0.0.0.0:0").expect("a port");
    let datagrams = UdpSocket::bind("0.0.0.0:0").expect("a port");
    datagrams.set_nonblocking(true).expect("told");
    let [tcp, udp] = [everywhere.local_addr(), datagrams.local_addr()].map(|address| address.expect("bound").port());
    // The agent's own.
    let own = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut arena = Arena::new(&["--listen", &own.to_string()]);
    let neighbour =
        arena.world.pod("neighbour").expect("there")["status"]["podIP"].as_str().expect("an address").to_owned();
    let connect = |name, address: &str| intruder(name, &format!("connect {address}"));
    arena.withstands([
        connect("the agent's API", &own.to_string()).exits(REFUSED),
        connect("a service of the host", &format!("127.0.0.1:{tcp}")).exits(REFUSED),
        connect("the same by another way to say here", &format!("0.0.0.0:{tcp}")).exits(REFUSED),
        connect("the same by IPv6", &format!("[::1]:{tcp}")).exits(REFUSED),
        connect("the same by IPv4 in IPv6", &format!("[::ffff:127.0.0.1]:{tcp}")).exits(REFUSED),
        connect("the same by a neighbour's address", &format!("{neighbour}:{tcp}")).exits(REFUSED),
        connect("the same by an address of nobody's", &format!("127.254.254.254:{tcp}")).exits(REFUSED),
        connect("what a cloud tells its machines", "169.254.169.254:80").exits(ACCES),
        connect("the network beyond", "192.0.2.1:80").exits(ACCES),
        connect("the network beyond by IPv6", "[2001:db8::1]:80").exits(ACCES),
        connect("everybody at once", "255.255.255.255:80").exits(ACCES),
        intruder("datagrams to a service of the host", &format!("send 127.0.0.1:{udp}")).exits(REFUSED),
        intruder("datagrams to what a cloud tells", "send 169.254.169.254:53").exits(ACCES),
        intruder("names of the network beyond", "lookup example.com:80").exits(1),
        intruder("the address of a neighbour", &format!("bind {neighbour}:8080")).exits(ADDRESS_NOT_AVAILABLE),
        intruder("the address of nobody", "bind 10.0.0.1:8080").exits(ADDRESS_NOT_AVAILABLE),
        intruder("every address, at a port of the host", &format!("bind 0.0.0.0:{tcp}")).exits(IN_USE),
        intruder("a port of root's", "bind 0.0.0.0:22").exits(0),
        intruder("more sockets than there may be", "hoard-listeners").exits(ABORTED),
        intruder("calls that nobody takes", "hoard-calls").writes("calling"),
        intruder("connections that nobody reads from", "deaf").writes("full"),
        intruder("datagrams without end", "flood").writes("flooding"),
        intruder("connections without end", "churn").writes("churning"),
        intruder("names without end", "names").writes("asking"),
    ]);
    everywhere.set_nonblocking(true).expect("told");
    assert!(everywhere.accept().is_err(), "somebody has called");
    assert!(datagrams.recv(&mut [0]).is_err(), "somebody has sent something");
}
