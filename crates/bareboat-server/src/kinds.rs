//! Who serves what: the catalog of kinds, and how each is stored, viewed or computed.

pub mod catalog;
pub mod computed;
pub mod connector;
pub mod custom;
pub mod served;
mod view;
