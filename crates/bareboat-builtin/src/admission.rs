//! Admission that belongs to built-in kinds: upstream's default plug-ins, as far as they need no network.

mod certificate_subject;
mod claim_growth;
mod completion;
mod default_class;
mod limit_ranger;
mod namespace_lifecycle;
mod pod_resize;
mod priority;
mod runtime_class;
mod signing_requests;
mod tolerations;

pub use certificate_subject::CertificateSubject;
pub use claim_growth::ClaimGrowth;
pub use completion::{Completion, complete_on_create, complete_on_update};
pub use default_class::DefaultClass;
pub use limit_ranger::LimitRanger;
pub use namespace_lifecycle::NamespaceLifecycle;
pub use pod_resize::PodResize;
pub use priority::Priority;
pub use runtime_class::RuntimeClass;
pub use signing_requests::SigningRequests;

use bareboat_api::admission::{Operation, Review};
use bareboat_api::{Kind, Object, Status};

/// What a write of a whole object is about: group, plural and what is done.
fn subject<'a>(review: &Review<'a>) -> Option<(&'a str, &'a str, Operation)> {
    let Kind { group, names, .. } = review.kind;
    let whole = review.subresource.is_empty();
    whole.then_some((group.as_str(), names.plural.as_str(), review.operation))
}

/// 403 for an object that a plug-in does not let in.
fn refuse(kind: &Kind, object: &Object, why: impl Into<String>) -> Status {
    Status::forbidden(kind.group_resource(), object.name(), why.into())
}
