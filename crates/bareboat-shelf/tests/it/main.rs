//! Tests of the shelf as its users call it.

mod indexes;
mod model;
mod pages;
mod queries;
mod replay;
mod rig;
mod versions;
