//! A pod's status as a function of what the runtime reports: the tables of the Kubernetes documents.

mod conditions;
mod phase;
mod states;
mod termination_message;
mod world;
