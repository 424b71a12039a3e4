//! What the example guests share.

pub mod duration;
pub mod http;
pub mod server;
