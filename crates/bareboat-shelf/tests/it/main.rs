//! Tests of the shelf as its users call it.

mod files;
mod indexes;
mod model;
mod pages;
mod queries;
mod quotas;
mod replay;
mod rig;
mod site;
mod versions;
