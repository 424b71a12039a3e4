//! The API over real sockets: with a plain HTTP client, and with the real `kubectl`.

mod bad_input;
mod changes;
mod client;
mod deletion;
mod kubectl;
mod kubectl_pods;
mod objects;
mod processes;
mod server;
mod streams;
mod until;
mod watches;
