//! Images on the node.

mod layout;
mod pods;
mod store;
mod support;
