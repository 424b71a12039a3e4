//! Probes, and the actions they share with lifecycle hooks.

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::container::port_number;
use super::errors::{Errors, Path};
use super::names;
use super::pod::text;

pub(super) fn liveness(probe: Option<&k8s::Probe>, path: &Path, errors: &mut Errors) {
    let Some(probe) = probe else { return };
    common(probe, path, errors);
    one_success(probe, path, errors);
}

pub(super) fn readiness(probe: Option<&k8s::Probe>, path: &Path, errors: &mut Errors) {
    let Some(probe) = probe else { return };
    common(probe, path, errors);
    let path = path.child("terminationGracePeriodSeconds");
    let is_set = probe.termination_grace_period_seconds.is_some();
    errors.invalid_if(is_set, &path, "must not be set for readinessProbes");
}

pub(super) fn startup(probe: Option<&k8s::Probe>, path: &Path, errors: &mut Errors) {
    liveness(probe, path, errors);
}

fn one_success(probe: &k8s::Probe, path: &Path, errors: &mut Errors) {
    errors.invalid_if(probe.success_threshold != Some(1), &path.child("successThreshold"), "must be 1");
}

fn common(probe: &k8s::Probe, path: &Path, errors: &mut Errors) {
    let actions = Actions {
        exec: probe.exec.as_ref(),
        http_get: probe.http_get.as_ref(),
        tcp_socket: probe.tcp_socket.as_ref(),
        grpc: probe.grpc.as_ref(),
        sleep: None,
    };
    actions.validate(None, path, errors);
    let table = [
        (probe.initial_delay_seconds, "initialDelaySeconds"),
        (probe.timeout_seconds, "timeoutSeconds"),
        (probe.period_seconds, "periodSeconds"),
        (probe.success_threshold, "successThreshold"),
        (probe.failure_threshold, "failureThreshold"),
    ];
    for (number, field) in table {
        errors.not_negative(i64::from(number.unwrap_or_default()), &path.child(field));
    }
    let is_too_short = probe.termination_grace_period_seconds.is_some_and(|seconds| seconds <= 0);
    errors.invalid_if(is_too_short, &path.child("terminationGracePeriodSeconds"), "must be greater than 0");
}

/// What a probe or hook does: exactly one of these.
pub(super) struct Actions<'a> {
    pub(super) exec: Option<&'a k8s::ExecAction>,
    pub(super) http_get: Option<&'a k8s::HTTPGetAction>,
    pub(super) tcp_socket: Option<&'a k8s::TCPSocketAction>,
    pub(super) grpc: Option<&'a k8s::GRPCAction>,
    pub(super) sleep: Option<&'a k8s::SleepAction>,
}

impl Actions<'_> {
    /// `grace` is the pod's, for hooks that sleep.
    pub(super) fn validate(&self, grace: Option<i64>, path: &Path, errors: &mut Errors) {
        let mut only = Only { has_one: false, path, errors };
        if let Some(action) = only.first(self.exec, "exec") {
            exec(action, &path.child("exec"), only.errors);
        }
        if let Some(action) = only.first(self.http_get, "httpGet") {
            http_get(action, &path.child("httpGet"), only.errors);
        }
        if let Some(action) = only.first(self.tcp_socket, "tcpSocket") {
            port(&action.port, &path.child("tcpSocket").child("port"), only.errors);
        }
        if let Some(action) = only.first(self.grpc, "grpc") {
            let path = path.child("grpc");
            port_number(action.port, &path.child("port"), only.errors);
            if let Some(mode) = action.mode.as_deref() {
                only.errors.one_of(mode, &path.child("mode"), &["Plaintext", "TLS"]);
            }
        }
        if let Some(action) = only.first(self.sleep, "sleep") {
            sleep(action, grace, &path.child("sleep"), only.errors);
        }
        if !only.has_one {
            errors.required(path, "must specify a handler type");
        }
    }
}

/// Lets the first action pass; what is wrong inside others does not matter.
struct Only<'a> {
    has_one: bool,
    path: &'a Path,
    errors: &'a mut Errors,
}

impl Only<'_> {
    fn first<'t, T>(&mut self, action: Option<&'t T>, field: &str) -> Option<&'t T> {
        let action = action?;
        if self.has_one {
            self.errors.forbidden(&self.path.child(field), "may not specify more than 1 handler type");
            return None;
        }
        self.has_one = true;
        Some(action)
    }
}

fn exec(action: &k8s::ExecAction, path: &Path, errors: &mut Errors) {
    if action.command.as_ref().is_none_or(|command| command.is_empty()) {
        errors.required(&path.child("command"), "");
    }
}

fn http_get(action: &k8s::HTTPGetAction, path: &Path, errors: &mut Errors) {
    errors.required_text(action.path.as_deref(), &path.child("path"), "");
    port(&action.port, &path.child("port"), errors);
    errors.one_of(text(&action.scheme), &path.child("scheme"), &["HTTP", "HTTPS"]);
    if let Some(protocol) = action.protocol.as_deref() {
        errors.one_of(protocol, &path.child("protocol"), &["HTTP1", "HTTP2"]);
        let both = protocol == "HTTP2" && text(&action.scheme) == "HTTPS";
        let rule = "HTTP2 is spoken in the clear only; with scheme HTTPS the server chooses";
        errors.invalid_if(both, &path.child("protocol"), rule);
    }
    for header in action.http_headers.iter().flatten() {
        errors.invalid_all(&path.child("httpHeaders"), names::header(&header.name));
    }
}

fn port(port: &IntOrString, path: &Path, errors: &mut Errors) {
    match port {
        IntOrString::Int(number) => port_number(*number, path, errors),
        IntOrString::String(name) => errors.invalid_all(path, names::port(name)),
    }
}

fn sleep(action: &k8s::SleepAction, grace: Option<i64>, path: &Path, errors: &mut Errors) {
    let Some(grace) = grace else { return };
    let rule = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
    errors.invalid_if(action.seconds < 0 || action.seconds > grace, path, &rule);
}
