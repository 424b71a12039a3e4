//! What happened to a pod: its phases and conditions, its containers' states, probes and ends, and the events about it.
//!
//! * [`Recorder`] watches one pod as the core sees it: facts, orders, statuses. `husk simulate` and `husk agent` have the same one, so
//!   that what was foreseen and what came of it can be compared. An agent's is bounded: see [`Recorder::bounded`].
//! * [`Timeline`] is what it wrote, for those who draw it.
//! * [`Document`] is the same as JSON, and [`Row`] a line of it.

mod change;
mod document;
mod log;
mod moment;
mod recorder;
mod restored;
mod rows;
mod stretches;
mod timeline;
mod words;

pub use change::{Interruption, LaneState, Role};
pub use document::{ContainerDocument, Document, ExitDocument, ProbeDocument, Unreadable};
pub use recorder::Recorder;
pub use rows::{Kind, Row, rows};
pub use timeline::{ConditionChange, Exit, Lane, Mark, Probed, Timeline};
