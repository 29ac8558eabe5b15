//! Rejects new objects in namespaces that do not exist or are terminating.

use bareboat_api::Status;
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::GroupResource;

/// The storage resource of namespaces.
const NAMESPACES: &str = "core/namespaces";

/// Checks that the namespace of a new object exists and is not terminating.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamespaceLifecycle;

impl Mutator for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        decided(check(review, lookup))
    }
}

fn check(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let creates = review.operation == Operation::Create;
    if !creates || review.namespace.is_empty() || !review.subresource.is_empty() {
        return Ok(());
    }
    // Access reviews may name a namespace that does not exist.
    if review.kind.group == "authorization.k8s.io" {
        return Ok(());
    }
    let namespaces = GroupResource {
        group: "",
        resource: "namespaces",
    };
    let Some(namespace) = lookup.brief(NAMESPACES, "", review.namespace) else {
        return Err(Status::not_found(namespaces, review.namespace));
    };
    if !namespace.terminating {
        return Ok(());
    }
    let name = review.object.as_ref().map_or("", |object| object.name());
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        review.namespace
    );
    let text = format!("namespace {} is being terminated", review.namespace);
    Err(
        Status::forbidden(review.kind.group_resource(), name, why).with_cause(
            "NamespaceTerminating",
            text,
            "metadata.namespace",
        ),
    )
}
