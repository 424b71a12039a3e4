//! Lifecycle hooks and stop signals.

use k8s_openapi::api::core::v1 as k8s;

use super::container::Scope;
use super::errors::{Errors, Path};
use super::pod::text;
use super::probe::Actions;

/// Signals that a container on Linux can be stopped with, in the order that they are listed to people.
#[rustfmt::skip]
const LINUX_SIGNALS: [&str; 65] = [
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10",
    "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5",
    "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9", "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11",
    "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5",
    "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM",
    "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU",
    "SIGXFSZ",
];
const WINDOWS_SIGNALS: [&str; 2] = ["SIGKILL", "SIGTERM"];

pub(super) fn validate(lifecycle: Option<&k8s::Lifecycle>, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let Some(lifecycle) = lifecycle else { return };
    for (hook, field) in [(&lifecycle.post_start, "postStart"), (&lifecycle.pre_stop, "preStop")] {
        let Some(hook) = hook else { continue };
        let actions = Actions {
            exec: hook.exec.as_ref(),
            http_get: hook.http_get.as_ref(),
            tcp_socket: hook.tcp_socket.as_ref(),
            grpc: None,
            sleep: hook.sleep.as_ref(),
        };
        actions.validate(scope.grace, &path.child(field), errors);
    }
    if lifecycle.stop_signal.is_some() {
        stop_signal(text(&lifecycle.stop_signal), scope.spec, &path.child("stopSignal"), errors);
    }
}

fn stop_signal(signal: &str, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        None => errors.forbidden(path, "may not be set for containers with empty `spec.os.name`"),
        Some("windows") => errors.one_of(signal, path, &WINDOWS_SIGNALS),
        Some("linux") => errors.one_of(signal, path, &LINUX_SIGNALS),
        // An unknown system is an error of its own.
        Some(_) => {}
    }
}
