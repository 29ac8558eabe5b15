//! Admission webhooks: the rules, and the HTTPS server that a Kubernetes API server asks.

pub mod crew;
pub mod serve;
pub mod yacht;
