//! Probes on the wire: exec in the container, HTTP GET, TCP connect.

pub(crate) mod http;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use husk_core::io::ProbeOutcome;
use husk_engine::Container as Running;
use husk_engine::net::Protocol;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;

use self::http::Answer;
use crate::instance::{ExecFailure, exec};

/// What a probe said, and its output.
pub(crate) type Verdict = (ProbeOutcome, String);

/// Runs a probe once; after `timeout` it has failed.
pub(crate) async fn run(
    probe: &Probe,
    container: &Container,
    running: &Running,
    ip: Ipv4Addr,
    timeout: Duration,
) -> Verdict {
    let verdict = async {
        match (&probe.exec, &probe.http_get, &probe.tcp_socket) {
            (Some(exec), _, _) => by_exec(exec.command.as_deref().unwrap_or_default(), running).await,
            (_, Some(action), _) => by_http(action, container, running, ip).await,
            (_, _, Some(action)) => by_tcp(action, container, running, ip).await,
            _ => (ProbeOutcome::Failure, "this kind of probe is not supported yet".into()),
        }
    };
    let limit = humane(timeout);
    tokio::time::timeout(timeout, verdict)
        .await
        .unwrap_or_else(|_| (ProbeOutcome::Failure, format!("timed out after {limit}")))
}

async fn by_exec(command: &[String], running: &Running) -> Verdict {
    match exec(running, command).await {
        Ok(()) => (ProbeOutcome::Success, String::new()),
        Err(ExecFailure::Failed(message)) => (ProbeOutcome::Failure, message),
        // It never ran: that says nothing about the container's health.
        Err(ExecFailure::NotRun(message)) => (ProbeOutcome::Error, message),
    }
}

async fn by_http(action: &HTTPGetAction, container: &Container, running: &Running, ip: Ipv4Addr) -> Verdict {
    let address = match address(action.host.as_deref(), &action.port, container, ip) {
        Ok(address) => address,
        Err(error) => return (ProbeOutcome::Failure, error),
    };
    match http::get(action, address, running.locate(Protocol::Tcp, address)).await {
        Ok(Answer::Well) => (ProbeOutcome::Success, String::new()),
        Ok(Answer::Elsewhere(to)) => (ProbeOutcome::Warning, format!("Probe terminated redirects: {to}")),
        Ok(Answer::Bad(status, _)) => (ProbeOutcome::Failure, format!("HTTP probe failed with statuscode: {status}")),
        Err(error) => (ProbeOutcome::Failure, error),
    }
}

async fn by_tcp(action: &TCPSocketAction, container: &Container, running: &Running, ip: Ipv4Addr) -> Verdict {
    let connected = match address(action.host.as_deref(), &action.port, container, ip) {
        Ok(address) => {
            let at = running.locate(Protocol::Tcp, address);
            TcpStream::connect(at).await.map(drop).map_err(|error| format!("dial tcp {address}: {error}"))
        }
        Err(error) => Err(error),
    };
    match connected {
        Ok(()) => (ProbeOutcome::Success, String::new()),
        Err(error) => (ProbeOutcome::Failure, error),
    }
}

/// Where a handler connects to: the pod, unless it names a host; a port by number or by its name in the container.
pub(crate) fn address(
    host: Option<&str>,
    port: &IntOrString,
    container: &Container,
    pod: Ipv4Addr,
) -> Result<SocketAddr, String> {
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
