//! Admission plug-ins of built-in kinds: upstream's default plug-ins that need no network.

mod certificate_subject;
mod claim_growth;
mod completion;
mod default_class;
mod limit_ranger;
mod namespace_lifecycle;
mod owner_references;
mod pod_resize;
mod pod_security;
mod policy_params;
mod priority;
mod runtime_class;
mod service_account;
mod signing_requests;
mod tolerations;

pub use certificate_subject::CertificateSubject;
pub use claim_growth::ClaimGrowth;
pub use completion::{Completion, complete_on_create, complete_on_update};
pub use default_class::DefaultClass;
pub use limit_ranger::LimitRanger;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use owner_references::OwnerReferences;
pub use pod_resize::PodResize;
pub use pod_security::{
    Level, LevelVersion, PodSecurity, PodSecurityConfiguration, PodSecurityConfigurationError,
    PodSecurityMeter, Version, Violations,
};
pub use policy_params::PolicyParams;
pub use priority::Priority;
pub use runtime_class::RuntimeClass;
pub use service_account::ServiceAccount;
pub use signing_requests::SigningRequests;

use bareboat_api::admission::{Operation, Review};
use bareboat_api::{Kind, Object, Status};

/// Returns group, plural and operation of a write to a whole object.
fn subject<'a>(review: &Review<'a>) -> Option<(&'a str, &'a str, Operation)> {
    let Kind { group, names, .. } = review.kind;
    let whole = review.subresource.is_empty();
    whole.then_some((group.as_str(), names.plural.as_str(), review.operation))
}

/// Returns the 403 of a plug-in that rejects an object.
fn refuse(kind: &Kind, object: &Object, why: impl Into<String>) -> Status {
    Status::forbidden(kind.group_resource(), object.name(), why.into())
}
