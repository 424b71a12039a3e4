//! Probes on the wire: exec in the container, HTTP GET, TCP connect.

mod connection;
pub(crate) mod http;
mod tls;
mod url;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use husk_core::io::ProbeOutcome;
use husk_engine::Container as Running;
use husk_engine::net::Protocol;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::time;

pub(crate) use self::connection::ConnectionError;
use self::http::Caller;
use crate::instance::{ExecFailure, exec};

/// What a probe said, and its output.
pub(crate) type Verdict = (ProbeOutcome, String);

/// A container that is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// Its definition.
    pub(crate) container: &'a Container,
    /// Its instance.
    pub(crate) running: &'a Running,
    /// Its pod's address.
    pub(crate) ip: Ipv4Addr,
}

impl Target<'_> {
    /// Where the node connects to for an address of the pod.
    pub(crate) fn reach(&self, address: SocketAddr) -> SocketAddr {
        self.running.locate(Protocol::Tcp, address)
    }

    /// Where a handler connects to.
    pub(crate) fn address(&self, host: Option<&str>, port: &IntOrString) -> Result<SocketAddr, String> {
        address(host, port, self.container, self.ip)
    }
}

/// Runs a probe once; after `timeout` it has failed.
pub(crate) async fn run(probe: &Probe, target: Target<'_>, timeout: Duration) -> Verdict {
    let result = match (&probe.exec, &probe.http_get, &probe.tcp_socket) {
        (Some(exec), _, _) => {
            return by_exec(exec.command.as_deref().unwrap_or_default(), target.running, timeout).await;
        }
        (_, Some(action), _) => by_http(action, target, timeout).await,
        (_, _, Some(action)) => by_tcp(action, target, timeout).await,
        (None, None, None) => Err("this kind of probe is not supported yet".into()),
    };
    match result {
        Ok(remark) if remark.is_empty() => (ProbeOutcome::Success, remark),
        Ok(remark) => (ProbeOutcome::Warning, remark),
        Err(message) => (ProbeOutcome::Failure, message),
    }
}

async fn by_exec(command: &[String], running: &Running, timeout: Duration) -> Verdict {
    match time::timeout(timeout, exec(running, command)).await {
        Ok(Ok(())) => (ProbeOutcome::Success, String::new()),
        Ok(Err(ExecFailure::Failed(message))) => (ProbeOutcome::Failure, message),
        // It never ran: that says nothing about the container's health.
        Ok(Err(ExecFailure::NotRun(message))) => (ProbeOutcome::Error, message),
        Err(_) => (ProbeOutcome::Failure, format!("timed out after {}", humane(timeout))),
    }
}

/// A remark is a success that people should look at.
async fn by_http(action: &HTTPGetAction, target: Target<'_>, timeout: Duration) -> Result<String, String> {
    let address = target.address(action.host.as_deref(), &action.port)?;
    let answer = http::get(action, address, Caller::Probe, |address| target.reach(address));
    let answer = match time::timeout(timeout, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string())?,
        Err(_) => {
            let url = http::url(action, address).map_err(|error| error.to_string())?;
            return Err(format!(
                "Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            ));
        }
    };
    let body = answer.body?;
    match answer.status {
        200..300 => Ok(String::new()),
        300..400 => Ok(format!("Probe terminated redirects, Response body: {body}")),
        status => Err(format!("HTTP probe failed with statuscode: {status}")),
    }
}

async fn by_tcp(action: &TCPSocketAction, target: Target<'_>, timeout: Duration) -> Result<String, String> {
    let address = target.address(action.host.as_deref(), &action.port)?;
    match time::timeout(timeout, TcpStream::connect(target.reach(address))).await {
        Ok(Ok(_)) => Ok(String::new()),
        Ok(Err(error)) => Err(ConnectionError::Dial { address, error }.to_string()),
        Err(_) => Err(format!("dial tcp {address}: i/o timeout")),
    }
}

/// Where a handler connects to: the pod, unless it names a host; a port by number or by its name in the container.
fn address(host: Option<&str>, port: &IntOrString, container: &Container, pod: Ipv4Addr) -> Result<SocketAddr, String> {
    let ip = match host {
        None | Some("") => IpAddr::V4(pod),
        // The agent would reach its own host there, while upstream's documents mean the node's: they are the same here.
        Some(host) => {
            host.parse().map_err(|_| format!("host `{host}` is not an address: names can't be probed yet"))?
        }
    };
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => match name.parse() {
            Ok(number) => number,
            Err(_) => container
                .ports
                .iter()
                .flatten()
                .find(|port| port.name.as_deref() == Some(name))
                .map(|port| port.container_port)
                .ok_or_else(|| format!("the container has no port of name `{name}`"))?,
        },
    };
    let number = u16::try_from(number).ok().filter(|number| *number > 0);
    number.map(|number| SocketAddr::new(ip, number)).ok_or_else(|| "a port is a number from 1 to 65535".into())
}

fn humane(span: Duration) -> String {
    if span.subsec_millis() == 0 { format!("{}s", span.as_secs()) } else { format!("{span:?}") }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ContainerPort;

    use super::*;

    #[test]
    fn ports_are_numbers_or_names_of_the_container() {
        let ports = vec![ContainerPort { name: Some("web".into()), container_port: 8080, ..ContainerPort::default() }];
        let container = Container { ports: Some(ports), ..Container::default() };
        let pod = Ipv4Addr::new(127, 40, 0, 1);
        let of = |port| address(None, &port, &container, pod).map(|address| address.to_string());
        assert_eq!(of(IntOrString::Int(80)), Ok("127.40.0.1:80".into()));
        assert_eq!(of(IntOrString::String("web".into())), Ok("127.40.0.1:8080".into()));
        assert!(of(IntOrString::String("ftp".into())).expect_err("unknown").contains("`ftp`"));
        assert!(of(IntOrString::Int(70_000)).is_err());
    }
}
