//! Guests that attack: each tries one thing, through the real agent, and nobody else may notice.
//!
//! An attack is a row of a table: who attacks, what the pod may have, and how it has to end. What holds for all of them is checked
//! in one place, [`arena`]: the agent answers and stays small, a neighbour goes on, and nothing is left of who attacked.

mod arena;
mod attack;
mod c;
#[path = "../agent/client.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod client;
mod cpu;
mod files;
mod host_calls;
#[path = "../e2e/husk.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod husk;
mod links;
mod memory;
mod modules;
mod output;
mod restarts;
mod sockets;
mod wasm;
mod wat;
#[path = "../agent/world.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod world;
