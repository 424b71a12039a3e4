//! The ways into containers: a real node, real guests, the API server on its sockets, and the real `kubectl` where there is one.

mod attach;
mod client;
mod debug;
mod exec;
mod kubectl;
mod logs;
mod world;
