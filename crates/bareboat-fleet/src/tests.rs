//! Tests of the sync with members that are not servers: a model with a history, ghosts with computed objects, and liars.

mod disk;
mod failures;
mod fleets;
mod ghost;
mod hub;
mod lies;
mod model;
mod noise;
mod peers;
mod rig;
mod shared;
mod sync;
mod writer;
