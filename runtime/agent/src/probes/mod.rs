//! Probes on the wire: exec in the container, HTTP GET, TCP connect, gRPC health check.

mod carrier;
mod connection;
mod dial;
mod greeting;
mod grpc;
pub(crate) mod http;
mod tls;
mod turns;
mod url;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use husk_core::backoff::Spoken;
use husk_core::io::ProbeOutcome;
use husk_engine::Container as Running;
use husk_engine::net::Protocol;
use k8s_openapi::api::core::v1::{Container, GRPCAction, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use self::dial::{ConnectionError, Endpoint, Reach};
use self::http::{Caller, GetError};
pub(crate) use self::turns::Turns;
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
    pub(crate) fn reach(&self) -> impl Reach {
        |address: SocketAddr| self.running.locate(Protocol::Tcp, address)
    }

    /// Where a handler connects to.
    pub(crate) fn endpoint(&self, host: Option<&str>, port: &IntOrString) -> Result<Endpoint, String> {
        let host = host.filter(|host| !host.is_empty()).map_or_else(|| self.ip.to_string(), str::to_owned);
        Ok(Endpoint { host, port: port_of(port, self.container)? })
    }
}

/// What a probe found that did not find its container well.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unwell {
    /// The container isn't.
    Failed(String),
    /// It wasn't asked: that says nothing about its health.
    NotAsked(String),
}

impl From<ConnectionError> for Unwell {
    fn from(error: ConnectionError) -> Self {
        let said = if error.is_the_nodes() { Self::NotAsked } else { Self::Failed };
        said(error.to_string())
    }
}

impl From<GetError> for Unwell {
    fn from(error: GetError) -> Self {
        let said = match &error {
            GetError::NoAnswer { error, .. } if !error.is_the_nodes() => Self::Failed,
            GetError::NoAnswer { .. } | GetError::Unsendable(_) => Self::NotAsked,
        };
        said(error.to_string())
    }
}

/// Runs a probe once; after `limit` it has failed.
pub(crate) async fn run(probe: &Probe, target: Target<'_>, limit: Duration) -> Verdict {
    let result = match (&probe.exec, &probe.http_get, &probe.tcp_socket, &probe.grpc) {
        (Some(action), ..) => by_exec(action.command.as_deref().unwrap_or_default(), target.running, limit).await,
        (_, Some(action), ..) => by_http(action, target, limit).await,
        (.., Some(action), _) => by_tcp(action, target, limit).await,
        (.., Some(action)) => by_grpc(action, target, limit).await,
        (None, None, None, None) => Err(Unwell::NotAsked("the probe has no handler".into())),
    };
    match result {
        Ok(remark) if remark.is_empty() => (ProbeOutcome::Success, remark),
        // A success that people should look at.
        Ok(remark) => (ProbeOutcome::Warning, remark),
        Err(Unwell::Failed(message)) => (ProbeOutcome::Failure, message),
        Err(Unwell::NotAsked(message)) => (ProbeOutcome::Error, message),
    }
}

async fn by_exec(command: &[String], running: &Running, limit: Duration) -> Result<String, Unwell> {
    match timeout(limit, exec(running, command)).await {
        Ok(Ok(())) => Ok(String::new()),
        Ok(Err(ExecFailure::Failed(message))) => Err(Unwell::Failed(message)),
        Ok(Err(ExecFailure::NotRun(message))) => Err(Unwell::NotAsked(message)),
        Err(_) => Err(Unwell::Failed(format!("timed out after {}", Spoken(limit)))),
    }
}

async fn by_http(action: &HTTPGetAction, target: Target<'_>, limit: Duration) -> Result<String, Unwell> {
    let endpoint = target.endpoint(action.host.as_deref(), &action.port).map_err(Unwell::NotAsked)?;
    let deadline = Instant::now() + limit;
    let late = |doing: &str| {
        let url = http::url(action, &endpoint)?;
        Ok::<_, Unwell>(format!("Get \"{url}\": context deadline exceeded (Client.Timeout {doing})"))
    };
    let Ok(answer) = timeout_at(deadline, http::get(action, &endpoint, Caller::Probe, &target.reach())).await else {
        return Err(Unwell::Failed(late("exceeded while awaiting headers")?));
    };
    let answer = answer?;
    let status = answer.status();
    // Upstream takes an answer that breaks off for no answer, and asks again.
    let body = match timeout_at(deadline, answer.body()).await {
        Ok(body) => body.map_err(|error| Unwell::NotAsked(error.to_string()))?,
        Err(_) => return Err(Unwell::NotAsked(late("or context cancellation while reading body")?)),
    };
    match status {
        200..300 => Ok(String::new()),
        300..400 => Ok(format!("Probe terminated redirects, Response body: {body}")),
        status => Err(Unwell::Failed(format!("HTTP probe failed with statuscode: {status}"))),
    }
}

async fn by_tcp(action: &TCPSocketAction, target: Target<'_>, limit: Duration) -> Result<String, Unwell> {
    let endpoint = target.endpoint(action.host.as_deref(), &action.port).map_err(Unwell::NotAsked)?;
    match timeout(limit, dial::dial(&endpoint, &target.reach())).await {
        Ok(connected) => Ok(connected.map(|_| String::new())?),
        Err(_) => Err(Unwell::Failed(format!("dial tcp {endpoint}: i/o timeout"))),
    }
}

async fn by_grpc(action: &GRPCAction, target: Target<'_>, limit: Duration) -> Result<String, Unwell> {
    let port = IntOrString::Int(action.port);
    let check = grpc::Check {
        service: action.service.as_deref().unwrap_or_default(),
        endpoint: target.endpoint(None, &port).map_err(Unwell::NotAsked)?,
        tls: action.mode.as_deref() == Some("TLS"),
    };
    grpc::check(check, &target.reach(), limit).await.map(|()| String::new())
}

/// A port by number, or by its name in the container.
fn port_of(port: &IntOrString, container: &Container) -> Result<u16, String> {
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
    number.ok_or_else(|| "a port is a number from 1 to 65535".into())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ContainerPort;

    use super::*;

    #[test]
    fn ports_are_numbers_or_names_of_the_container() {
        let ports = vec![ContainerPort { name: Some("web".into()), container_port: 8080, ..ContainerPort::default() }];
        let container = Container { ports: Some(ports), ..Container::default() };
        let of = |port| port_of(&port, &container);
        assert_eq!(of(IntOrString::Int(80)), Ok(80));
        assert_eq!(of(IntOrString::String("81".into())), Ok(81));
        assert_eq!(of(IntOrString::String("web".into())), Ok(8080));
        assert!(of(IntOrString::String("ftp".into())).expect_err("unknown").contains("`ftp`"));
        assert!(of(IntOrString::Int(70_000)).is_err());
    }
}
