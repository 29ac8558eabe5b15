//! Admission: the chain of in-process plug-ins, and of policies and webhooks that clients configure.
//!
//! `chain` has the order of everything. With the feature `dynamic`, `stages` calls policies and webhooks: `matching` decides which
//! requests one of them applies to; `pass` is a request as both see it, with the object in every version they ask for.

#[cfg(feature = "dynamic")]
mod access;
mod alone;
mod chain;
#[cfg(feature = "dynamic")]
mod condition_metrics;
mod configuration;
mod connection;
#[cfg(feature = "dynamic")]
mod forms;
mod ground;
#[cfg(feature = "dynamic")]
mod kept;
#[cfg(feature = "dynamic")]
mod matching;
mod options;
#[cfg(feature = "dynamic")]
mod pass;
#[cfg(feature = "dynamic")]
mod policies;
#[cfg(feature = "dynamic")]
mod request;
#[cfg(feature = "dynamic")]
mod stages;
#[cfg(feature = "dynamic")]
mod webhooks;
#[cfg(not(feature = "dynamic"))]
mod without_stages;

#[cfg(not(feature = "dynamic"))]
use without_stages as stages;

pub(crate) use alone::Alone;
pub(crate) use chain::{Chain, mutate, validate};
#[cfg(feature = "dynamic")]
pub(crate) use condition_metrics::ConditionMetrics;
pub use configuration::{AdmissionConfiguration, AdmissionConfigurationError};
pub(crate) use connection::options_of_connection;
pub(crate) use ground::{Ground, Scaled};
pub(crate) use options::OptionsOf;
#[cfg(feature = "dynamic")]
pub(crate) use policies::{MutatingPolicies, Policies, PolicyMetrics, ValidatingPolicies};
#[cfg(feature = "dynamic")]
pub use webhooks::WebhookCredentials;
#[cfg(feature = "dynamic")]
pub(crate) use webhooks::{
    MUTATING, MutatingWebhooks, VALIDATING, ValidatingWebhooks, WebhookMetrics, Webhooks,
};
