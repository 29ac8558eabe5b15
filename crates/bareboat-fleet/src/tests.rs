//! Tests of the sync with members that are not servers: a model with a history, ghosts with computed objects, and liars;
//! and with members that are servers, where it matters what goes over the network.

mod disk;
mod failures;
mod fleets;
mod ghost;
mod hub;
mod lies;
mod model;
mod network;
mod noise;
mod peers;
mod rig;
mod secrets;
mod shared;
mod sync;
mod writer;
