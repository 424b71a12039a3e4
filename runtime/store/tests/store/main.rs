//! The store through its public face.

mod cuts;
mod damage;
mod day;
mod failures;
mod files;
mod format;
mod lives;
mod objects;
mod records;
mod simulator;
mod size;
mod support;
mod threads;
