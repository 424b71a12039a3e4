//! Probes and hooks of real pods, against real listeners.

mod connections;
mod grpc;
mod http;
mod metrics;
mod node;
mod servers;
mod tcp;
mod turns;
