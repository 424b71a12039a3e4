//! What the fuzz targets do with their bytes: each file of `fuzz_targets/` is one line that calls a function here.
//!
//! A target panics if something that must hold doesn't. The rest is found by libFuzzer itself: a panic, a loop without end
//! (`-timeout`), memory without bound (`-rss_limit_mb`, `-malloc_limit_mb`).

mod answer;
mod life;
mod manifest;
mod mutate;
mod node;
mod quantity;
mod record;
mod scenario;
mod shape;
mod words;

pub use life::Life;
pub use manifest::manifest;
pub use mutate::{crossed, mutated};
pub use node::operations;
pub use quantity::quantity;
pub use record::record;
pub use scenario::scenario;
pub use words::words;
