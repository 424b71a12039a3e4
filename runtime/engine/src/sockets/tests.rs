//! Real sockets of pods, used through the same host functions that guests call.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket as HostUdpSocket};
use std::sync::Arc;

use tokio::sync::watch;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynInputStream;
use wasmtime_wasi::p2::bindings::sockets::instance_network::Host as _;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{Host as _, HostResolveAddressStream as _};
use wasmtime_wasi::p2::bindings::sockets::tcp::HostTcpSocket as _;
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket::Host as _;
use wasmtime_wasi::p2::bindings::sockets::udp::{
    HostIncomingDatagramStream as _, HostOutgoingDatagramStream as _, OutgoingDatagram,
};
use wasmtime_wasi::p2::bindings::sockets::udp_create_socket::Host as _;

use super::{ErrorCode, IpAddressFamily, Network, SocketResult, Sockets, TcpSocket, sockets, udp};
use crate::account::Account;
use crate::guest::Guest;
use crate::handles::{Handles, Lease};
use crate::limits::Meter;
use crate::net::{Egress, PodAddress, PodNet, Ports};
use crate::signal::Pending;
use crate::stdio::{Nowhere, Stdio};
use crate::wasi::{self, Setting};

/// A pod on an address of its own, one per test, so that tests don't meet.
fn pod(ports: &Ports, ip: [u8; 4]) -> Guest {
    let address = Arc::new(PodAddress {
        ip: ip.into(),
        hostname: "web-0".into(),
        hosts: vec![("db".into(), Ipv4Addr::new(127, 77, 0, 99))],
        egress: Egress::Deny,
        ports: ports.clone(),
    });
    let wasi = wasi::context(Setting {
        argv: &[],
        env: &[],
        working_dir: None,
        mounts: &[],
        address: Some(&address),
        stdio: Stdio { stdin: None, stdout: Arc::new(Nowhere), stderr: Arc::new(Nowhere), is_terminal: false },
    })
    .expect("context");
    Guest {
        wasi,
        meter: Meter::new(Arc::new(Account::of_node(None))),
        handles: Lease::new(Arc::new(Handles::new(100, 0))),
        signals: Arc::new(Pending::default()),
        ready: watch::Sender::new(None),
        net: PodNet::new(address),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("address")
}

fn refused<T>(result: SocketResult<T>) -> ErrorCode {
    match result {
        Ok(_) => panic!("not refused"),
        Err(error) => error.downcast().expect("an error code"),
    }
}

fn borrow<T: 'static>(handle: u32) -> Resource<T> {
    Resource::new_borrow(handle)
}

/// Calls again until it would not block any more.
async fn again<T>(mut call: impl FnMut() -> SocketResult<T>) -> SocketResult<T> {
    loop {
        match call().map_err(|error| error.downcast().expect("an error code")) {
            Err(ErrorCode::WouldBlock) => tokio::task::yield_now().await,
            other => return other.map_err(Into::into),
        }
    }
}

impl Sockets<'_> {
    fn network(&mut self) -> Resource<Network> {
        self.inner.instance_network().expect("network")
    }

    async fn bound(&mut self, family: IpAddressFamily, to: &str) -> SocketResult<Resource<TcpSocket>> {
        let (network, socket) = (self.network(), self.create_tcp_socket(family)?);
        self.start_bind(borrow(socket.rep()), network, address(to).into()).await?;
        self.finish_bind(borrow(socket.rep()))?;
        Ok(socket)
    }

    async fn listening(&mut self, family: IpAddressFamily, to: &str) -> SocketResult<Resource<TcpSocket>> {
        let socket = self.bound(family, to).await?;
        self.start_listen(borrow(socket.rep())).await?;
        self.finish_listen(borrow(socket.rep()))?;
        Ok(socket)
    }

    async fn connected(&mut self, to: &str) -> SocketResult<Resource<TcpSocket>> {
        let family = if address(to).is_ipv6() { IpAddressFamily::Ipv6 } else { IpAddressFamily::Ipv4 };
        let (network, socket) = (self.network(), self.create_tcp_socket(family)?);
        self.start_connect(borrow(socket.rep()), network, address(to).into())?;
        again(|| self.finish_connect(borrow(socket.rep()))).await?;
        Ok(socket)
    }

    fn local(&mut self, socket: &Resource<TcpSocket>) -> SocketAddr {
        tcp_address(self.local_address(borrow(socket.rep())))
    }

    fn remote(&mut self, socket: &Resource<TcpSocket>) -> SocketAddr {
        tcp_address(self.remote_address(borrow(socket.rep())))
    }

    async fn accepted(&mut self, listener: &Resource<TcpSocket>) -> (Resource<TcpSocket>, Resource<DynInputStream>) {
        let (socket, input, _) = again(|| self.accept(borrow(listener.rep()))).await.expect("accepted");
        (socket, input)
    }

    async fn udp(&mut self, to: &str) -> SocketResult<Resource<super::UdpSocket>> {
        let (network, socket) = (self.network(), self.create_udp_socket(IpAddressFamily::Ipv4).await?);
        udp::HostUdpSocket::start_bind(self, borrow(socket.rep()), network, address(to).into()).await?;
        udp::HostUdpSocket::finish_bind(self, borrow(socket.rep()))?;
        Ok(socket)
    }

    fn resolved(&mut self, name: &str) -> SocketResult<String> {
        let network = self.network();
        let stream = self.resolve_addresses(network, name.into())?;
        let address = self.resolve_next_address(borrow(stream.rep()))?.expect("one address");
        match address {
            super::IpAddress::Ipv4((a, b, c, d)) => Ok(Ipv4Addr::new(a, b, c, d).to_string()),
            super::IpAddress::Ipv6(_) => panic!("pods have IPv4 addresses"),
        }
    }
}

fn tcp_address(address: SocketResult<super::IpSocketAddress>) -> SocketAddr {
    address.expect("bound").into()
}

#[tokio::test]
async fn two_pods_use_the_same_port_and_reach_each_other_at_their_addresses() {
    let ports = Ports::default();
    let (mut one, mut other) = (pod(&ports, [127, 77, 1, 1]), pod(&ports, [127, 77, 1, 2]));
    let (mut one, mut other) = (sockets(&mut one), sockets(&mut other));
    let listener = one.listening(IpAddressFamily::Ipv4, "0.0.0.0:8080").await.expect("listens");
    let others = other.listening(IpAddressFamily::Ipv4, "127.0.0.1:8080").await.expect("same port");
    assert_eq!(one.local(&listener), address("127.77.1.1:8080"));
    assert_eq!(other.local(&others), address("127.77.1.2:8080"));

    let call = other.connected("127.77.1.1:8080").await.expect("reaches the other pod");
    let (accepted, _) = one.accepted(&listener).await;
    assert_eq!(one.remote(&accepted), other.local(&call), "the caller shows its own address");
    assert_eq!(other.local(&call).ip(), Ipv4Addr::new(127, 77, 1, 2));

    let call = one.connected("127.0.0.1:8080").await.expect("its own localhost");
    assert_eq!(one.remote(&call), address("127.77.1.1:8080"));
}

#[tokio::test]
async fn another_pods_localhost_and_the_hosts_are_not_reachable() {
    let ports = Ports::default();
    let (mut one, mut other) = (pod(&ports, [127, 77, 2, 1]), pod(&ports, [127, 77, 2, 2]));
    let (mut one, mut other) = (sockets(&mut one), sockets(&mut other));
    let _listener = one.listening(IpAddressFamily::Ipv4, "127.0.0.1:8080").await.expect("listens");
    assert_eq!(refused(other.connected("127.0.0.1:8080").await), ErrorCode::ConnectionRefused);

    // A service of the host, on its localhost and on every address: the second would answer at each pod's address.
    for everywhere in ["127.0.0.1:0", "0.0.0.0:0"] {
        let host = TcpListener::bind(everywhere).expect("host's service");
        let port = host.local_addr().expect("bound").port();
        for target in ["127.0.0.1", "127.77.2.1", "127.0.0.53"] {
            assert_eq!(refused(one.connected(&format!("{target}:{port}")).await), ErrorCode::ConnectionRefused);
        }
    }
    assert_eq!(refused(one.connected("192.0.2.1:80").await), ErrorCode::AccessDenied);
    assert_eq!(refused(one.bound(IpAddressFamily::Ipv4, "127.77.2.2:9").await), ErrorCode::AddressNotBindable);

    // The node can open a port of its own.
    let host = TcpListener::bind("127.0.0.1:0").expect("node's service");
    let SocketAddr::V4(at) = host.local_addr().expect("bound") else { panic!("IPv4") };
    let here = SocketAddrV4::new(Ipv4Addr::new(127, 77, 2, 9), at.port());
    let open = ports.open(super::Protocol::Tcp, here, here);
    let wanted = format!("127.77.2.9:{}", at.port());
    assert_eq!(
        refused(one.connected(&wanted).await),
        ErrorCode::ConnectionRefused,
        "nobody listens: the kernel's answer"
    );
    drop(open);
}

#[tokio::test]
async fn a_port_is_closed_with_its_socket_and_with_its_guest() {
    let ports = Ports::default();
    let mut caller = pod(&ports, [127, 77, 3, 2]);
    let mut caller = sockets(&mut caller);
    let at = |port| SocketAddrV4::new(Ipv4Addr::new(127, 77, 3, 1), port);
    let mut one = pod(&ports, [127, 77, 3, 1]);
    {
        let mut one = sockets(&mut one);
        let listener = one.listening(IpAddressFamily::Ipv4, "0.0.0.0:8080").await.expect("listens");
        one.listening(IpAddressFamily::Ipv4, "0.0.0.0:8081").await.expect("listens");
        super::tcp::HostTcpSocket::drop(&mut one, listener).expect("closed");
    }
    assert!(
        ports.locate(super::Protocol::Tcp, at(8080)).is_none()
            && ports.locate(super::Protocol::Tcp, at(8081)).is_some()
    );
    drop(one);
    assert!(ports.locate(super::Protocol::Tcp, at(8081)).is_none());
    assert_eq!(refused(caller.connected("127.77.3.1:8081").await), ErrorCode::ConnectionRefused);
}

#[tokio::test]
async fn ipv6_sockets_are_on_the_pods_address_too() {
    let ports = Ports::default();
    let mut one = pod(&ports, [127, 77, 4, 1]);
    let mut one = sockets(&mut one);
    let listener = one.listening(IpAddressFamily::Ipv6, "[::]:8080").await.expect("listens");
    let family = one.address_family(borrow(listener.rep())).expect("family");
    assert!(matches!(family, IpAddressFamily::Ipv6));
    assert_eq!(one.local(&listener), address("[::ffff:127.77.4.1]:8080"));

    let call = one.connected("[::1]:8080").await.expect("localhost");
    let (accepted, _) = one.accepted(&listener).await;
    assert_eq!(one.remote(&accepted), one.local(&call));
    one.connected("127.0.0.1:8080").await.expect("localhost by IPv4");
}

#[tokio::test]
async fn the_node_reaches_a_pod_at_its_address() {
    let ports = Ports::default();
    let mut one = pod(&ports, [127, 77, 5, 1]);
    let mut one = sockets(&mut one);
    let listener = one.listening(IpAddressFamily::Ipv4, "0.0.0.0:8080").await.expect("listens");
    let probe = tokio::task::spawn_blocking(|| {
        let mut stream = TcpStream::connect("127.77.5.1:8080").expect("connects");
        stream.write_all(b"hello").expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("end of stream");
        answer
    });
    let (socket, input) = one.accepted(&listener).await;
    let stream = one.inner.table.get_mut(&input).expect("stream");
    assert_eq!(stream.blocking_read(16).await.expect("read"), "hello");
    one.inner.table.delete(input).expect("stream");
    one.shutdown(socket, super::ShutdownType::Both).expect("shut down");
    assert_eq!(probe.await.expect("probe"), b"");
}

#[tokio::test]
async fn datagrams_go_where_connections_go_and_may_be_answered() {
    let ports = Ports::default();
    let (mut one, mut other) = (pod(&ports, [127, 77, 6, 1]), pod(&ports, [127, 77, 6, 2]));
    let (mut one, mut other) = (sockets(&mut one), sockets(&mut other));
    let server = one.udp("0.0.0.0:5353").await.expect("bound");
    let client = other.udp("0.0.0.0:5353").await.expect("same port");
    let (input, output) = udp::HostUdpSocket::stream(&mut one, server, None).await.expect("streams");
    let (_, client_output) = udp::HostUdpSocket::stream(&mut other, client, None).await.expect("streams");

    let to = |to: &str, data: &[u8]| {
        vec![OutgoingDatagram { data: data.to_vec(), remote_address: Some(address(to).into()) }]
    };
    other.check_send(borrow(client_output.rep())).expect("may send");
    assert_eq!(other.send(borrow(client_output.rep()), to("127.77.6.1:5353", b"pod")).expect("sent"), 1);
    assert_eq!(
        refused(other.send(borrow(client_output.rep()), to("127.0.0.1:53", b"x"))),
        ErrorCode::ConnectionRefused
    );

    // A client on the node has an address that a guest couldn't call, but may answer.
    let host = HostUdpSocket::bind("127.0.0.1:0").expect("bound");
    let host_address = host.local_addr().expect("bound");
    assert_eq!(
        refused(one.send(borrow(output.rep()), to(&host_address.to_string(), b"x"))),
        ErrorCode::ConnectionRefused
    );
    host.send_to(b"node", "127.77.6.1:5353").expect("sent");
    let mut received = Vec::new();
    while received.len() < 2 {
        received.extend(one.receive(borrow(input.rep()), 8).expect("received"));
        tokio::task::yield_now().await;
    }
    let mut senders: Vec<_> =
        received.iter().map(|datagram| (datagram.data.as_slice(), SocketAddr::from(datagram.remote_address))).collect();
    senders.sort();
    assert_eq!(senders, [(&b"node"[..], host_address), (&b"pod"[..], address("127.77.6.2:5353"))]);

    one.check_send(borrow(output.rep())).expect("may send");
    one.send(borrow(output.rep()), to(&host_address.to_string(), b"answer")).expect("sent");
    let mut answer = [0; 16];
    let length = tokio::task::spawn_blocking(move || host.recv(&mut answer).map(|length| (length, answer)));
    let (length, answer) = length.await.expect("task").expect("received");
    assert_eq!(&answer[..length], b"answer");
}

#[tokio::test]
async fn names_resolve_from_the_pods_list_alone() {
    let ports = Ports::default();
    let mut one = pod(&ports, [127, 77, 7, 1]);
    let mut one = sockets(&mut one);
    for (name, expected) in
        [("localhost", "127.77.7.1"), ("web-0", "127.77.7.1"), ("DB.", "127.77.0.99"), ("127.1.2.3", "127.1.2.3")]
    {
        assert_eq!(one.resolved(name).expect("resolves"), expected, "{name}");
    }
    assert_eq!(refused(one.resolved("example.com")), ErrorCode::NameUnresolvable);
}

/// Gives up the right to bind ports below 1024. It belongs to the thread, and a test has one of its own.
fn give_up_low_ports() {
    const VERSION_3: u32 = 0x2008_0522;
    const NET_BIND_SERVICE: u32 = 10;
    let mut header = [VERSION_3, 0];
    // Effective, permitted and inheritable rights: the lower halves of the three, then the upper.
    let mut rights = [0_u32; 6];
    // SAFETY: header and rights have the layout that the calls expect for this version, and live as long as they.
    let answers = unsafe {
        let got = libc::syscall(libc::SYS_capget, header.as_mut_ptr(), rights.as_mut_ptr());
        rights[0] &= !(1 << NET_BIND_SERVICE);
        [got, libc::syscall(libc::SYS_capset, header.as_mut_ptr(), rights.as_ptr())]
    };
    assert_eq!(answers, [0, 0], "{}", std::io::Error::last_os_error());
}

#[tokio::test]
async fn a_node_that_is_not_root_has_ports_below_1024() {
    give_up_low_ports();
    let ports = Ports::default();
    let (mut one, mut other) = (pod(&ports, [127, 77, 8, 1]), pod(&ports, [127, 77, 8, 2]));
    let (mut one, mut other) = (sockets(&mut one), sockets(&mut other));
    let listener = one.listening(IpAddressFamily::Ipv4, "0.0.0.0:80").await.expect("listens");
    assert_eq!(one.local(&listener), address("127.77.8.1:80"));
    assert_eq!(refused(one.bound(IpAddressFamily::Ipv4, "0.0.0.0:80").await), ErrorCode::AddressInUse);

    other.connected("127.77.8.1:80").await.expect("connects");
    let (accepted, _) = one.accepted(&listener).await;
    assert_eq!(one.local(&accepted), address("127.77.8.1:80"));
    one.connected("127.0.0.1:80").await.expect("its own localhost");
    one.udp("0.0.0.0:53").await.expect("datagrams, too");

    let SocketAddr::V4(wanted) = address("127.77.8.1:80") else { panic!("IPv4") };
    let at = ports.locate(super::Protocol::Tcp, wanted).expect("open");
    TcpStream::connect(at).expect("the node knows where it is");
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").expect("Linux");
    let everybodys = first.trim().parse::<u16>().expect("a port") <= 80;
    assert_eq!(at == wanted, everybodys, "elsewhere, unless this system lets everybody bind port 80");
}
