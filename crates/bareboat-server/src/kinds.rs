//! The catalog of served kinds, and how each kind is stored, rendered or computed.

pub mod calls;
pub mod catalog;
pub mod computed;
pub mod connector;
#[cfg(feature = "dynamic")]
pub mod custom;
pub mod stored_kind;

#[cfg(feature = "dynamic")]
pub use custom::kind_of_definition;

/// The store resource of CustomResourceDefinitions.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
