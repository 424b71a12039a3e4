//! WASI sockets on the pod's address: a newtype round wasmtime-wasi's view that translates addresses and delegates the rest.

use std::future::Future as _;
use std::net::{SocketAddr, SocketAddrV4};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::{ip_name_lookup, network, tcp, tcp_create_socket, udp, udp_create_socket};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, SocketError, SocketResult};
use wasmtime_wasi::sockets::WasiSocketsCtxView;
use wasmtime_wasi::{WasiCtxView, WasiView as _};

use self::network::{ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Network};
use self::tcp::{ShutdownType, TcpSocket};
use self::udp::{IncomingDatagram, IncomingDatagramStream, OutgoingDatagram, OutgoingDatagramStream, UdpSocket};
use crate::guest::Guest;
use crate::net::{Egress, PodNet, Protocol, Refused};

/// Ports below are root's.
const FIRST_UNPRIVILEGED: u16 = 1024;

/// wasmtime-wasi's sockets and what the pod makes of them.
struct Sockets<'a> {
    inner: WasiSocketsCtxView<'a>,
    net: &'a mut PodNet,
}

struct HasSockets;

impl HasData for HasSockets {
    type Data<'a> = Sockets<'a>;
}

/// Puts the pod's sockets in the place of wasmtime-wasi's own.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    tcp::add_to_linker::<Guest, HasSockets>(linker, sockets)?;
    udp::add_to_linker::<Guest, HasSockets>(linker, sockets)?;
    tcp_create_socket::add_to_linker::<Guest, HasSockets>(linker, sockets)?;
    udp_create_socket::add_to_linker::<Guest, HasSockets>(linker, sockets)?;
    ip_name_lookup::add_to_linker::<Guest, HasSockets>(linker, sockets)
}

fn sockets(guest: &mut Guest) -> Sockets<'_> {
    let WasiCtxView { ctx, table } = guest.wasi.ctx();
    Sockets { inner: WasiSocketsCtxView { ctx: ctx.sockets(), table }, net: &mut guest.net }
}

impl From<Refused> for SocketError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotOurs => ErrorCode::AddressNotBindable,
            Refused::NobodyThere => ErrorCode::ConnectionRefused,
            Refused::Denied => ErrorCode::AccessDenied,
        }
        .into()
    }
}

impl Sockets<'_> {
    /// Binds a socket that is about to connect to the pod's address, so that the other end sees who calls. Without this the
    /// kernel would choose 127.0.0.1.
    fn bind_caller(&mut self, socket: u32, network: u32, remote: SocketAddr) -> SocketResult<()> {
        let handle = || Resource::<TcpSocket>::new_borrow(socket);
        let is_bound = tcp::HostTcpSocket::local_address(&mut self.inner, handle()).is_ok();
        if is_bound || !remote.ip().is_loopback() {
            return Ok(());
        }
        let here = SocketAddr::new(self.net.address.ip.into(), 0).into();
        {
            let bind = tcp::HostTcpSocket::start_bind(&mut self.inner, handle(), Resource::new_borrow(network), here);
            // Nothing in a bind waits: the check of the address answers at once, and the rest is one system call.
            match pin!(bind).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(bound) => bound?,
                Poll::Pending => return Err(ErrorCode::InvalidState.into()),
            }
        }
        tcp::HostTcpSocket::finish_bind(&mut self.inner, handle())
    }

    fn family_of(&self, socket: u32) -> IpAddressFamily {
        if self.net.as_v6.contains(&socket) { IpAddressFamily::Ipv6 } else { IpAddressFamily::Ipv4 }
    }

    fn shown(&self, socket: u32, address: IpSocketAddress) -> IpSocketAddress {
        self.net.shown(socket, address.into()).into()
    }

    fn shown_local(&self, socket: u32, address: IpSocketAddress) -> IpSocketAddress {
        self.net.shown_local(socket, address.into()).into()
    }

    /// After the kernel didn't let the node bind `wanted`: the address to bind in its place.
    fn instead(
        &mut self,
        socket: u32,
        protocol: Protocol,
        wanted: SocketAddr,
        error: SocketError,
    ) -> SocketResult<SocketAddr> {
        let error = error.downcast().map_err(SocketError::trap)?;
        let SocketAddr::V4(wanted) = wanted else { return Err(error.into()) };
        if error != ErrorCode::AccessDenied || !(1..FIRST_UNPRIVILEGED).contains(&wanted.port()) {
            return Err(error.into());
        }
        // Nothing in the kernel keeps two from it, so it is done here.
        if self.net.address.ports.locate(protocol, wanted).is_some() {
            return Err(ErrorCode::AddressInUse.into());
        }
        self.net.stands_for.insert(socket, wanted.port());
        Ok(SocketAddr::new((*wanted.ip()).into(), 0))
    }

    fn made(&mut self, socket: u32, family: IpAddressFamily) {
        if matches!(family, IpAddressFamily::Ipv6) {
            self.net.as_v6.insert(socket);
        }
    }

    /// Lets other guests reach what this socket is bound to.
    fn open(&mut self, socket: u32, protocol: Protocol, local: IpSocketAddress) {
        let SocketAddr::V4(at) = local.into() else { return };
        let port = self.net.stands_for.get(&socket).copied().unwrap_or(at.port());
        let port = self.net.address.ports.open(protocol, SocketAddrV4::new(*at.ip(), port), at);
        self.net.open.insert(socket, port);
    }
}

impl network::Host for Sockets<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        network::Host::convert_error_code(&mut self.inner, error)
    }

    fn network_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        network::Host::network_error_code(&mut self.inner, error)
    }
}

impl network::HostNetwork for Sockets<'_> {
    fn drop(&mut self, this: Resource<Network>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.inner, this)
    }
}

impl tcp_create_socket::Host for Sockets<'_> {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        let socket = tcp_create_socket::Host::create_tcp_socket(&mut self.inner, IpAddressFamily::Ipv4)?;
        self.made(socket.rep(), family);
        Ok(socket)
    }
}

impl udp_create_socket::Host for Sockets<'_> {
    async fn create_udp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        let socket = udp_create_socket::Host::create_udp_socket(&mut self.inner, IpAddressFamily::Ipv4).await?;
        self.made(socket.rep(), family);
        Ok(socket)
    }
}

impl ip_name_lookup::Host for Sockets<'_> {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ip_name_lookup::ResolveAddressStream>> {
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        // An address in the place of a name is answered with itself, so the pod's own names go that way.
        let name = match self.net.address.resolve(&name) {
            Some(ip) => ip.to_string(),
            None if is_address || self.net.address.egress == Egress::Allow => name,
            None => return Err(ErrorCode::NameUnresolvable.into()),
        };
        ip_name_lookup::Host::resolve_addresses(&mut self.inner, network, name)
    }
}

impl ip_name_lookup::HostResolveAddressStream for Sockets<'_> {
    fn resolve_next_address(
        &mut self,
        this: Resource<ip_name_lookup::ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        ip_name_lookup::HostResolveAddressStream::resolve_next_address(&mut self.inner, this)
    }

    fn subscribe(
        &mut self,
        this: Resource<ip_name_lookup::ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        ip_name_lookup::HostResolveAddressStream::subscribe(&mut self.inner, this)
    }

    fn drop(&mut self, this: Resource<ip_name_lookup::ResolveAddressStream>) -> wasmtime::Result<()> {
        ip_name_lookup::HostResolveAddressStream::drop(&mut self.inner, this)
    }
}

impl tcp::Host for Sockets<'_> {}

/// Methods of a socket that have nothing to do with addresses.
macro_rules! delegate {
    ($host:path, $socket:ty: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&mut self, this: Resource<$socket>, $($argument: $type),*) -> $result {
            <WasiSocketsCtxView<'_> as $host>::$name(&mut self.inner, this, $($argument),*)
        })*
    };
}

impl tcp::HostTcpSocket for Sockets<'_> {
    async fn start_bind(
        &mut self,
        this: Resource<TcpSocket>,
        network: Resource<Network>,
        local: IpSocketAddress,
    ) -> SocketResult<()> {
        let (socket, network) = (this.rep(), network.rep());
        let local = self.net.address.bind(local.into())?;
        let first =
            tcp::HostTcpSocket::start_bind(&mut self.inner, this, Resource::new_borrow(network), local.into()).await;
        let Err(error) = first else { return Ok(()) };
        let local = self.instead(socket, Protocol::Tcp, local, error)?.into();
        let (this, network) = (Resource::new_borrow(socket), Resource::new_borrow(network));
        tcp::HostTcpSocket::start_bind(&mut self.inner, this, network, local).await
    }

    fn start_connect(
        &mut self,
        this: Resource<TcpSocket>,
        network: Resource<Network>,
        remote: IpSocketAddress,
    ) -> SocketResult<()> {
        let remote = self.net.address.remote(Protocol::Tcp, remote.into())?;
        self.bind_caller(this.rep(), network.rep(), remote)?;
        tcp::HostTcpSocket::start_connect(&mut self.inner, this, network, remote.into())
    }

    async fn start_listen(&mut self, this: Resource<TcpSocket>) -> SocketResult<()> {
        let socket = this.rep();
        tcp::HostTcpSocket::start_listen(&mut self.inner, this).await?;
        let local = tcp::HostTcpSocket::local_address(&mut self.inner, Resource::new_borrow(socket))?;
        self.open(socket, Protocol::Tcp, local);
        Ok(())
    }

    fn accept(
        &mut self,
        this: Resource<TcpSocket>,
    ) -> SocketResult<(Resource<TcpSocket>, Resource<DynInputStream>, Resource<DynOutputStream>)> {
        let (listener, family) = (this.rep(), self.family_of(this.rep()));
        let accepted = tcp::HostTcpSocket::accept(&mut self.inner, this)?;
        self.made(accepted.0.rep(), family);
        if let Some(port) = self.net.stands_for.get(&listener).copied() {
            self.net.stands_for.insert(accepted.0.rep(), port);
        }
        Ok(accepted)
    }

    fn local_address(&mut self, this: Resource<TcpSocket>) -> SocketResult<IpSocketAddress> {
        let socket = this.rep();
        let address = tcp::HostTcpSocket::local_address(&mut self.inner, this)?;
        Ok(self.shown_local(socket, address))
    }

    fn remote_address(&mut self, this: Resource<TcpSocket>) -> SocketResult<IpSocketAddress> {
        let socket = this.rep();
        let address = tcp::HostTcpSocket::remote_address(&mut self.inner, this)?;
        Ok(self.shown(socket, address))
    }

    fn address_family(&mut self, this: Resource<TcpSocket>) -> wasmtime::Result<IpAddressFamily> {
        Ok(self.family_of(this.rep()))
    }

    fn drop(&mut self, this: Resource<TcpSocket>) -> wasmtime::Result<()> {
        self.net.forget(this.rep());
        tcp::HostTcpSocket::drop(&mut self.inner, this)
    }

    delegate! { tcp::HostTcpSocket, TcpSocket:
        finish_bind() -> SocketResult<()>;
        finish_connect() -> SocketResult<(Resource<DynInputStream>, Resource<DynOutputStream>)>;
        finish_listen() -> SocketResult<()>;
        is_listening() -> wasmtime::Result<bool>;
        set_listen_backlog_size(value: u64) -> SocketResult<()>;
        keep_alive_enabled() -> SocketResult<bool>;
        set_keep_alive_enabled(value: bool) -> SocketResult<()>;
        keep_alive_idle_time() -> SocketResult<u64>;
        set_keep_alive_idle_time(value: u64) -> SocketResult<()>;
        keep_alive_interval() -> SocketResult<u64>;
        set_keep_alive_interval(value: u64) -> SocketResult<()>;
        keep_alive_count() -> SocketResult<u32>;
        set_keep_alive_count(value: u32) -> SocketResult<()>;
        hop_limit() -> SocketResult<u8>;
        set_hop_limit(value: u8) -> SocketResult<()>;
        receive_buffer_size() -> SocketResult<u64>;
        set_receive_buffer_size(value: u64) -> SocketResult<()>;
        send_buffer_size() -> SocketResult<u64>;
        set_send_buffer_size(value: u64) -> SocketResult<()>;
        subscribe() -> wasmtime::Result<Resource<DynPollable>>;
        shutdown(how: ShutdownType) -> SocketResult<()>;
    }
}

impl udp::Host for Sockets<'_> {}

impl udp::HostUdpSocket for Sockets<'_> {
    async fn start_bind(
        &mut self,
        this: Resource<UdpSocket>,
        network: Resource<Network>,
        local: IpSocketAddress,
    ) -> SocketResult<()> {
        let (socket, network) = (this.rep(), network.rep());
        let local = self.net.address.bind(local.into())?;
        let first =
            udp::HostUdpSocket::start_bind(&mut self.inner, this, Resource::new_borrow(network), local.into()).await;
        let Err(error) = first else { return Ok(()) };
        let local = self.instead(socket, Protocol::Udp, local, error)?.into();
        let (this, network) = (Resource::new_borrow(socket), Resource::new_borrow(network));
        udp::HostUdpSocket::start_bind(&mut self.inner, this, network, local).await
    }

    fn finish_bind(&mut self, this: Resource<UdpSocket>) -> SocketResult<()> {
        let socket = this.rep();
        udp::HostUdpSocket::finish_bind(&mut self.inner, this)?;
        let local = udp::HostUdpSocket::local_address(&mut self.inner, Resource::new_borrow(socket))?;
        self.open(socket, Protocol::Udp, local);
        Ok(())
    }

    async fn stream(
        &mut self,
        this: Resource<UdpSocket>,
        remote: Option<IpSocketAddress>,
    ) -> SocketResult<(Resource<IncomingDatagramStream>, Resource<OutgoingDatagramStream>)> {
        let family = self.family_of(this.rep());
        let remote = remote.map(|remote| self.net.destination(remote.into())).transpose()?.map(IpSocketAddress::from);
        let streams = udp::HostUdpSocket::stream(&mut self.inner, this, remote).await?;
        self.made(streams.0.rep(), family);
        Ok(streams)
    }

    fn local_address(&mut self, this: Resource<UdpSocket>) -> SocketResult<IpSocketAddress> {
        let socket = this.rep();
        let address = udp::HostUdpSocket::local_address(&mut self.inner, this)?;
        Ok(self.shown_local(socket, address))
    }

    fn remote_address(&mut self, this: Resource<UdpSocket>) -> SocketResult<IpSocketAddress> {
        let socket = this.rep();
        let address = udp::HostUdpSocket::remote_address(&mut self.inner, this)?;
        Ok(self.shown(socket, address))
    }

    fn address_family(&mut self, this: Resource<UdpSocket>) -> wasmtime::Result<IpAddressFamily> {
        Ok(self.family_of(this.rep()))
    }

    fn drop(&mut self, this: Resource<UdpSocket>) -> wasmtime::Result<()> {
        self.net.forget(this.rep());
        udp::HostUdpSocket::drop(&mut self.inner, this)
    }

    delegate! { udp::HostUdpSocket, UdpSocket:
        unicast_hop_limit() -> SocketResult<u8>;
        set_unicast_hop_limit(value: u8) -> SocketResult<()>;
        receive_buffer_size() -> SocketResult<u64>;
        set_receive_buffer_size(value: u64) -> SocketResult<()>;
        send_buffer_size() -> SocketResult<u64>;
        set_send_buffer_size(value: u64) -> SocketResult<()>;
        subscribe() -> wasmtime::Result<Resource<DynPollable>>;
    }
}

impl udp::HostIncomingDatagramStream for Sockets<'_> {
    fn receive(&mut self, this: Resource<IncomingDatagramStream>, max: u64) -> SocketResult<Vec<IncomingDatagram>> {
        let stream = this.rep();
        let mut datagrams = udp::HostIncomingDatagramStream::receive(&mut self.inner, this, max)?;
        for datagram in &mut datagrams {
            let from = SocketAddr::from(datagram.remote_address);
            self.net.heard_from(from);
            datagram.remote_address = self.net.shown(stream, from).into();
        }
        Ok(datagrams)
    }

    fn drop(&mut self, this: Resource<IncomingDatagramStream>) -> wasmtime::Result<()> {
        self.net.forget(this.rep());
        udp::HostIncomingDatagramStream::drop(&mut self.inner, this)
    }

    delegate! { udp::HostIncomingDatagramStream, IncomingDatagramStream:
        subscribe() -> wasmtime::Result<Resource<DynPollable>>;
    }
}

impl udp::HostOutgoingDatagramStream for Sockets<'_> {
    fn send(
        &mut self,
        this: Resource<OutgoingDatagramStream>,
        mut datagrams: Vec<OutgoingDatagram>,
    ) -> SocketResult<u64> {
        let mut refused = None;
        for (index, datagram) in datagrams.iter_mut().enumerate() {
            let Some(remote) = datagram.remote_address else { continue };
            match self.net.destination(remote.into()) {
                Ok(remote) => datagram.remote_address = Some(remote.into()),
                Err(error) => {
                    refused = Some((index, error));
                    break;
                }
            }
        }
        // Those before the refused one are sent; the guest is told of it when it sends the rest.
        match refused {
            Some((0, error)) => return Err(error.into()),
            Some((index, _)) => datagrams.truncate(index),
            None => {}
        }
        udp::HostOutgoingDatagramStream::send(&mut self.inner, this, datagrams)
    }

    async fn drop(&mut self, this: Resource<OutgoingDatagramStream>) -> wasmtime::Result<()> {
        udp::HostOutgoingDatagramStream::drop(&mut self.inner, this).await
    }

    delegate! { udp::HostOutgoingDatagramStream, OutgoingDatagramStream:
        check_send() -> SocketResult<u64>;
        subscribe() -> wasmtime::Result<Resource<DynPollable>>;
    }
}

#[cfg(test)]
mod tests;
