//! Operations on a node: whatever happens in whatever order, what is promised of a pod's life holds.

mod check;
mod world;

use crate::life::Life;
use world::World;

/// Plays a life to its end.
pub fn operations(life: Life) {
    let mut world = World::new(life.wild, life.collects);
    for operation in life.operations {
        world.perform(operation);
    }
    world.finish();
}

/// The records of a life's pods, as they are before it ends.
pub(crate) fn records(life: Life) -> Vec<Vec<u8>> {
    let mut world = World::new(life.wild, life.collects);
    for operation in life.operations {
        world.perform(operation);
    }
    world.stored.into_values().collect()
}
