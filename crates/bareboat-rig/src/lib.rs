//! What the tests of shared stores have in common. Nothing here is part of the program.
//!
//! - [`history`]: what clients did and saw, and the checker that compares it with the log.
//! - [`model`]: the protocol of appends as a small state machine, explored completely.
//! - [`proxy`]: a TCP proxy that loses, delays and holds back data.
//! - [`balancer`]: a TCP balancer before several servers.
//! - [`plan`]: how long and how often tests run, in `make test` and in `make torture`.
//! - [`mod@checks`]: tests of every engine that several stores share.
//! - [`small_disk`]: a small file system.
//! - [`failing_disk`]: a disk that loses its power.
//! - [`link`]: a network link that loses packets.
//! - [`wall_clock`]: the clock of a process, which jumps.
//! - [`alternating`]: a log that is used through two engines in turn.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

pub mod alternating;
pub mod balancer;
pub mod checks;
pub mod failing_disk;
pub mod history;
pub mod link;
pub mod model;
pub mod plan;
pub mod proxy;
pub mod small_disk;
pub mod wall_clock;
