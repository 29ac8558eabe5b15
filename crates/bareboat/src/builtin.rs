//! The built-in kinds of Kubernetes: table, strategies, and service addresses.

pub use bareboat_builtin::{admission, kinds, services};
