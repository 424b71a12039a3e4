//! What the world answers to an order.

use husk_core::io::{Action, Input, Outcome, ProbeOutcome};

/// An answer, a good or a bad one; none if the order has none or if a bad world doesn't give it.
pub(crate) fn answer(order: Action, well: bool) -> Option<Input> {
    let message = || "as drawn".to_owned();
    Some(match order {
        Action::SetUp { pod, attempt } if well => Input::SandboxReady { pod, attempt, ips: vec!["127.1.2.3".into()] },
        Action::SetUp { pod, attempt } => {
            Input::SandboxFailed { pod, attempt, reason: "FailedMount".into(), message: message() }
        }
        Action::PullImage { instance } if well => {
            Input::ImageReady { instance, image_id: "sha256:1".into(), pulled: None }
        }
        Action::PullImage { instance } => {
            Input::ImageFailed { instance, reason: "ErrImagePull".into(), message: message() }
        }
        Action::Start { instance } if well => {
            let id = format!("husk://{}-{}", instance.container, instance.attempt);
            Input::Started { instance, id }
        }
        Action::Start { instance } => {
            Input::StartFailed { instance, reason: "RunContainerError".into(), message: message() }
        }
        Action::Signal { instance, .. } if well => {
            Input::Exited { instance, outcome: Outcome::Signal(15), message: String::new() }
        }
        Action::Kill { instance } => Input::Exited { instance, outcome: Outcome::Signal(9), message: String::new() },
        Action::RunProbe { instance, kind, run, .. } => {
            let result = if well { ProbeOutcome::Success } else { ProbeOutcome::Failure };
            Input::ProbeResult { instance, kind, run, result, message: message() }
        }
        Action::RunHook { instance, hook } => {
            Input::HookDone { instance, hook, result: if well { Ok(()) } else { Err(message()) } }
        }
        Action::UpdateResources { instance, revision, .. } if well => Input::ResourcesUpdated { instance, revision },
        Action::UpdateResources { instance, revision, .. } => {
            Input::ResourcesFailed { instance, revision, message: message() }
        }
        Action::Teardown { pod, attempt } => Input::TornDown { pod, attempt },
        Action::Signal { .. }
        | Action::CancelHook { .. }
        | Action::StatusChanged { .. }
        | Action::Gone { .. }
        | Action::Persist { .. }
        | Action::Forget { .. }
        | Action::Record { .. } => return None,
    })
}
