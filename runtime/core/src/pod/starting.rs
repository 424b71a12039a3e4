//! Starting a container: back-off, image, start (RESTART-02, RESTART-04, STATE-02).

use alloc::format;
use alloc::string::String;

use super::slot::{Hold, SlotState};
use super::{Out, Pod};
use crate::backoff::{self, Spoken};
use crate::event::EventKind;
use crate::io::{Action, InstanceRef};
use crate::reasons;
use crate::spec::{ContainerSpec, PullPolicy};
use crate::status::Word;
use crate::time::Duration;

/// Time between two tries to make a container whose configuration or creation failed: upstream's pod back-off.
const CREATE_RETRY: Duration = Duration::from_secs(10);

/// How long a failed pull is shown as such before it is shown as backing off: upstream's sync period.
const SETTLE: Duration = Duration::from_secs(1);

impl Pod {
    /// Starts a container unless it has an order or an instance already, or is held back.
    pub(super) fn try_start(&mut self, index: usize, out: &mut Out<'_>) {
        let slot = &mut self.slots[index];
        if !matches!(slot.state, SlotState::Idle) {
            return;
        }
        if slot.hold.as_ref().and_then(|hold| hold.retry_at).is_some_and(|at| at > out.now) {
            return;
        }
        if self.crash_loop(index, out) {
            return;
        }
        let slot = &mut self.slots[index];
        let attempt = slot.take_attempt();
        slot.state = SlotState::Pulling { attempt, since: out.now };
        let instance = self.instance_ref(index, attempt);
        if self.container(index).image_pull_policy == PullPolicy::Always {
            self.pulling(index, out);
        }
        out.order(Action::PullImage { instance });
    }

    fn pulling(&mut self, index: usize, out: &mut Out<'_>) {
        let message = format!("Pulling image \"{}\"", self.container(index).image);
        self.event(out, Some(index), EventKind::Normal, "Pulling", message);
    }

    /// Holds a crashing container back. Returns true if it has to wait.
    fn crash_loop(&mut self, index: usize, out: &mut Out<'_>) -> bool {
        let slot = &mut self.slots[index];
        let Some(finished_at) = slot.last_exit else { return false };
        let Some(release_at) = slot.backoff.release_at(finished_at).filter(|release| *release > out.now) else {
            // Let go; the delay for the next time moves on.
            slot.backoff.next(finished_at, out.now, &out.config.crash_loop);
            slot.last_exit = None;
            return false;
        };
        let delay = release_at.saturating_since(finished_at);
        let message = backoff::message(delay, &slot.name, &self.meta.name, &self.meta.namespace, &self.meta.uid);
        let reason = Word::Borrowed(reasons::CRASH_LOOP_BACK_OFF);
        slot.hold = Some(Hold { reason, message, retry_at: Some(release_at), then: None });
        let name = slot.name.clone();
        let message = format!("Back-off restarting failed container {name} in pod {}", self.full_name());
        self.event(out, Some(index), EventKind::Warning, "BackOff", message);
        true
    }

    pub(super) fn image_ready(&mut self, at: &InstanceRef, image_id: String, pulled: Option<u64>, out: &mut Out<'_>) {
        let Some(index) = self.slot_named(&at.container) else { return };
        let SlotState::Pulling { attempt, since } = self.slots[index].state else { return };
        if attempt != at.attempt {
            return;
        }
        let policy = self.container(index).image_pull_policy;
        if policy == PullPolicy::IfNotPresent && pulled.is_some() {
            // Only now is it known that it had to be fetched.
            self.pulling(index, out);
        }
        let ContainerSpec { image, hash, .. } = self.container(index);
        let hash = *hash;
        let took = Spoken(out.now.saturating_since(since));
        let fetched = format!("Successfully pulled image \"{image}\" in {took} ({took} including waiting)");
        let message = match pulled {
            None => format!("Container image \"{image}\" already present on machine and can be accessed by the pod"),
            Some(0) => fetched,
            Some(bytes) => format!("{fetched}. Image size: {bytes} bytes."),
        };
        self.event(out, Some(index), EventKind::Normal, "Pulled", message);
        let slot = &mut self.slots[index];
        slot.image_backoff.reset();
        slot.hold = None;
        slot.state = SlotState::Starting { attempt, image_id, hash, unwanted: None };
        self.starts_with(index);
        out.order(Action::Start { instance: at.clone() });
    }

    pub(super) fn image_failed(&mut self, at: &InstanceRef, reason: Word, message: String, out: &mut Out<'_>) {
        let Some(index) = self.slot_named(&at.container) else { return };
        if !matches!(self.slots[index].state, SlotState::Pulling { attempt, .. } if attempt == at.attempt) {
            return;
        }
        let image = self.container(index).image.clone();
        if reason == reasons::ERR_IMAGE_PULL && self.container(index).image_pull_policy == PullPolicy::IfNotPresent {
            self.pulling(index, out);
        }
        // What a pull comes to is shown as it is; of the others upstream shows the words of the event.
        let (event, text, message) = match &*reason {
            reasons::ERR_IMAGE_NEVER_PULL => {
                let text = format!("Container image \"{image}\" is not present with pull policy of Never");
                ("ErrImageNeverPull", text.clone(), text)
            }
            reasons::INVALID_IMAGE_NAME => {
                let text = format!("Failed to apply default image tag \"{image}\": {message}");
                ("InspectFailed", text.clone(), text)
            }
            reasons::IMAGE_INSPECT_ERROR => {
                let text = format!("Failed to inspect image \"{image}\": {message}");
                ("InspectFailed", text.clone(), text)
            }
            _ => ("Failed", format!("Failed to pull image \"{image}\": {message}"), message),
        };
        self.event(out, Some(index), EventKind::Warning, event, text);
        self.event(out, Some(index), EventKind::Warning, "Failed", format!("Error: {reason}"));
        let slot = &mut self.slots[index];
        slot.state = SlotState::Idle;
        slot.image_backoff.next(out.now, out.now, &out.config.image_pull);
        let delay = slot.image_backoff.delay().unwrap_or_default();
        // What can't become better by itself keeps its reason; a failed pull turns into a back-off.
        let then = (reason == reasons::ERR_IMAGE_PULL).then(|| {
            let message = format!("Back-off pulling image \"{image}\": {reason}: {message}");
            (out.now + SETTLE, Word::Borrowed(reasons::IMAGE_PULL_BACK_OFF), message)
        });
        slot.hold = Some(Hold { reason, message, retry_at: Some(out.now + delay), then });
    }

    /// A container could not be made or started: it is tried again.
    pub(super) fn hold_back(&mut self, index: usize, reason: Word, message: String, out: &Out<'_>) {
        let retry_at = Some(out.now + CREATE_RETRY);
        self.slots[index].hold = Some(Hold { reason, message, retry_at, then: None });
    }

    /// A failed pull that was shown as such turns into a back-off.
    pub(super) fn settle_hold(&mut self, index: usize, out: &mut Out<'_>) {
        let Some(hold) = &mut self.slots[index].hold else { return };
        if hold.then.as_ref().is_none_or(|(at, ..)| *at > out.now) {
            return;
        }
        let Some((_, reason, message)) = hold.then.take() else { return };
        let error = format!("Error: {reason}");
        (hold.reason, hold.message) = (reason, message);
        let message = format!("Back-off pulling image \"{}\"", self.container(index).image);
        self.event(out, Some(index), EventKind::Normal, "BackOff", message);
        self.event(out, Some(index), EventKind::Warning, "Failed", error);
    }

    /// `name_namespace(uid)`, as upstream's messages have it.
    fn full_name(&self) -> String {
        format!("{}_{}({})", self.meta.name, self.meta.namespace, self.uid)
    }
}
