//! What there is to say about the node itself, as events of its object.

use husk_apiserver::{Involved, Objects};
use husk_core::event::EventKind;
use husk_core::record::Interruption;
use husk_store::Opened;

/// Something about the node: for information or to look at, a reason, and words for people.
pub(crate) type Remark = (EventKind, &'static str, String);

/// What a start has to say: that it is one, what ended the life before, and what is wrong with the state.
pub(crate) fn of_start(opened: &Opened, node: &str, boot_id: &str) -> Vec<Remark> {
    let version = env!("CARGO_PKG_VERSION");
    let mut remarks = vec![(EventKind::Normal, "Starting", format!("Starting husk agent {version}."))];
    if opened.interruption == Some(Interruption::Reboot) {
        let message = format!("Node {node} has been rebooted, boot id: {boot_id}");
        remarks.push((EventKind::Warning, "Rebooted", message));
    }
    if let Some(set_aside) = &opened.set_aside {
        remarks.push((EventKind::Warning, "StateSetAside", set_aside.to_string()));
    }
    for unreadable in &opened.unreadable {
        let message = format!("pod {}: {}", unreadable.uid, unreadable.error);
        remarks.push((EventKind::Warning, "StateUnreadable", message));
    }
    if let Some(error) = &opened.degraded {
        remarks.push((EventKind::Warning, "StateNotWritten", error.to_string()));
    }
    remarks
}

/// Records them. What can't be recorded was logged by who knew it first.
pub(crate) async fn record(objects: &Objects, node: &str, remarks: Vec<Remark>) {
    for (kind, reason, message) in remarks {
        if let Err(error) = objects.record_remark(Involved::Node, node, kind, reason, &message).await {
            tracing::warn!(%error, reason, "an event about the node can't be recorded");
        }
    }
}
