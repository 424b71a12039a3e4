//! When a pod has to be persisted again: whenever what must survive the agent's end changed, and never for mere display.

use alloc::collections::BTreeSet;
use alloc::string::String;

use postcard::ser_flavors::Flavor;
use serde::ser::SerializeTuple;
use serde::{Serialize, Serializer};

use super::generation::Generation;
use super::resize::Resize;
use super::seat::Seat;
use super::slot::{Slot, SlotState};
use super::{Pod, SandboxState};
use crate::backoff::Backoff;
use crate::deletion::Deletion;
use crate::io::{PodUid, Urgency};
use crate::reasons;
use crate::runtime::{Instance, Sandbox, StopReason};
use crate::status::{Phase, PodStatus};
use crate::time::Instant;

impl Pod {
    /// Did what must survive change since this was last asked, and how soon must it be persisted?
    pub(crate) fn has_to_be_persisted(&mut self) -> Option<Urgency> {
        let digest = self.digest();
        match self.persisted.replace(digest) {
            Some(before) if before == digest => None,
            Some(before) if before.kept == digest.kept => Some(Urgency::Calm),
            _ => Some(Urgency::Soon),
        }
    }

    /// As it is persisted.
    pub(crate) fn to_record(&self) -> Self {
        Self { persisted: None, charged: None, deferred: None, queued: false, ..self.clone() }
    }

    /// It is persisted as it is.
    pub(crate) fn go_on(&mut self) {
        self.persisted = Some(self.digest());
    }

    fn digest(&self) -> Digest {
        let durable = Durable {
            deletion: self.deletion,
            gone: self.gone,
            restart_all: self.restart_all,
            ending: self.ending.is_some(),
            sandbox: match self.sandbox {
                SandboxState::None { .. } | SandboxState::SettingUp { .. } => 0,
                SandboxState::Ready { .. } | SandboxState::TearingDown { .. } => 1,
                SandboxState::TornDown => 2,
            },
            ips: &self.runtime.ips,
            sandboxes: &self.runtime.sandboxes,
            instances: Instances(&self.runtime.instances),
            phase: self.status.phase,
            start_time: self.status.start_time,
            conditions: Conditions { status: &self.status, of_readiness: false },
            slots: Slots(&self.slots),
            seat: &self.seat,
            nomination: self.nomination.as_ref(),
            taint_deadline: self.taint_deadline,
            resize: &self.resize,
            generation: self.generation,
        };
        // It can't fail: the sequences know their lengths, and the sink takes everything.
        let kept = postcard::serialize_with_flavor(&durable, Fnv::default()).unwrap_or_default();
        let readiness = Readiness {
            conditions: Conditions { status: &self.status, of_readiness: true },
            verdicts: Verdicts(&self.runtime.instances),
        };
        Digest { kept, readiness: postcard::serialize_with_flavor(&readiness, Fnv::default()).unwrap_or_default() }
    }
}

/// Hashes of what must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    /// What must not be lost.
    kept: u64,
    /// What probes find out again.
    readiness: u64,
}

/// What must survive the agent's end and can change. The spec changes too seldom to be looked at each time.
#[derive(Serialize)]
struct Durable<'a> {
    deletion: Option<Deletion>,
    gone: bool,
    restart_all: bool,
    ending: bool,
    sandbox: u8,
    ips: &'a [String],
    sandboxes: &'a [Sandbox],
    instances: Instances<'a>,
    phase: Phase,
    start_time: Option<Instant>,
    conditions: Conditions<'a>,
    slots: Slots<'a>,
    seat: &'a Seat,
    nomination: Option<&'a BTreeSet<PodUid>>,
    taint_deadline: Option<Instant>,
    resize: &'a Resize,
    generation: Generation,
}

/// What may be lost: probes find it out again.
#[derive(Serialize)]
struct Readiness<'a> {
    conditions: Conditions<'a>,
    verdicts: Verdicts<'a>,
}

/// What readiness probes said of each instance.
struct Verdicts<'a>(&'a [Instance]);

impl Serialize for Verdicts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|instance| instance.verdicts.readiness))
    }
}

/// Instances without what readiness probes said.
struct Instances<'a>(&'a [Instance]);

impl Serialize for Instances<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|instance| {
            // All of them by name: whoever adds a field has to think of this.
            let Instance {
                name,
                id,
                state,
                changed,
                restart_count,
                created_at,
                started_at,
                finished_at,
                exit_code,
                signal,
                reason,
                message,
                image_id,
                stopped_for,
                verdicts: crate::runtime::Verdicts { liveness, startup, readiness: _ },
            } = instance;
            let life = (created_at, started_at, finished_at, exit_code, signal, reason, message, stopped_for);
            (name, id, state, changed, restart_count, image_id, life, liveness, startup)
        }))
    }
}

/// Conditions without what is for people only: those of readiness, or all others.
struct Conditions<'a> {
    status: &'a PodStatus,
    of_readiness: bool,
}

impl Serialize for Conditions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_readiness = |kind: &str| kind == reasons::READY || kind == reasons::CONTAINERS_READY;
        let mut those = self.status.conditions.iter().filter(|c| of_readiness(&c.kind) == self.of_readiness);
        // Their number is not known beforehand, and a hash needs none.
        let mut tuple = serializer.serialize_tuple(0)?;
        those.try_for_each(|c| tuple.serialize_element(&(&*c.kind, c.status, c.last_transition_time)))?;
        tuple.end()
    }
}

struct Slots<'a>(&'a [Slot]);

impl Serialize for Slots<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(DurableSlot::from))
    }
}

/// A container without its orders and its probes' counts: those end with the agent.
#[derive(Serialize)]
struct DurableSlot {
    stopped_for: Option<StopReason>,
    retry_at: Option<Instant>,
    restarts: u32,
    started_hash: Option<u64>,
    last_exit: Option<Instant>,
    backoff: Backoff,
    image_backoff: Backoff,
}

impl From<&Slot> for DurableSlot {
    fn from(slot: &Slot) -> Self {
        let stopped_for = match &slot.state {
            SlotState::Live(live) => live.stop.as_ref().map(|stop| stop.reason),
            SlotState::Idle | SlotState::Pulling { .. } | SlotState::Starting { .. } => None,
        };
        Self {
            stopped_for,
            retry_at: slot.hold.as_ref().and_then(|hold| hold.retry_at),
            restarts: slot.restarts,
            started_hash: slot.started_hash,
            last_exit: slot.last_exit,
            backoff: slot.backoff,
            image_backoff: slot.image_backoff,
        }
    }
}

/// The FNV-1a hash of what is serialised, without a buffer.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Flavor for Fnv {
    type Output = u64;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<u64> {
        Ok(self.0)
    }
}
