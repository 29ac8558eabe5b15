//! The views over a real server, a shelf that the tests fill, and members that exist only as data.

mod collections;
mod conditions;
mod events;
mod forwarding;
mod judges;
mod kubectl;
mod owners;
mod pages;
mod passing;
mod reads;
mod replay;
mod rig;
mod rights;
mod servers;
mod staleness;
mod streams;
mod tables;
mod watches;
