//! Admission: the chain of in-process plug-ins, and of policies and webhooks that clients configure.
//!
//! `chain` has the order of everything. `matching` decides which requests a webhook or a policy applies to; `pass` is a
//! request as both see it, with the object in every version they ask for.

mod access;
mod alone;
mod chain;
mod condition_metrics;
mod configuration;
mod connection;
mod forms;
mod kept;
mod matching;
mod options;
mod pass;
mod policies;
mod request;
mod webhooks;

pub(crate) use alone::Alone;
pub(crate) use chain::{Chain, mutate, validate};
pub(crate) use condition_metrics::ConditionMetrics;
pub use configuration::{AdmissionConfiguration, AdmissionConfigurationError};
pub(crate) use connection::options_of_connection;
pub(crate) use options::OptionsOf;
pub(crate) use pass::{Ground, Scaled};
pub(crate) use policies::{MutatingPolicies, Policies, PolicyMetrics, ValidatingPolicies};
pub use webhooks::WebhookCredentials;
pub(crate) use webhooks::{
    MUTATING, MutatingWebhooks, VALIDATING, ValidatingWebhooks, WebhookMetrics, Webhooks,
};
