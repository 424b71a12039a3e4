//! What the node decides about pods beside their own life: who has a place, who has to go, who gets how much.

mod admission;
mod disruption;
mod eviction;
mod in_turn;
mod placement;
mod property;
mod resize;
mod support;
#[path = "../world/mod.rs"]
mod world;
