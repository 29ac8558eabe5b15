//! Nothing is created in a namespace that does not exist or is going away.

use bareboat_api::Status;
use bareboat_api::admission::{Mutator, Operation, Review, World};
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::GroupResource;

/// Where namespaces are stored.
const NAMESPACES: &str = "core/namespaces";

/// Guards the life of namespaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamespaceLifecycle;

impl Mutator for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(check(review, world)))
    }
}

fn check(review: &Review<'_>, world: &dyn World) -> Result<(), Status> {
    let creates = review.operation == Operation::Create;
    if !creates || review.namespace.is_empty() || !review.subresource.is_empty() {
        return Ok(());
    }
    // Reviews ask about namespaces; whether those exist is part of the answer.
    if review.kind.group == "authorization.k8s.io" {
        return Ok(());
    }
    let namespaces = GroupResource {
        group: "",
        resource: "namespaces",
    };
    let Some(namespace) = world.brief(NAMESPACES, "", review.namespace) else {
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
