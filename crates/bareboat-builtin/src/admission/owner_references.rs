//! Authorizes changes of owners: the deletion of an owner deletes its dependents, so setting an owner can delete an
//! object.
//!
//! A user who changes the ownerReferences of an object needs the permission to delete it. A user who sets
//! `blockOwnerDeletion` needs the permission to update finalizers of the owner.
// Upstream: plugin/pkg/admission/gc.

use super::refuse;
use crate::reach::Reach;
use bareboat_api::admission::{Lookup, Operation, Review, Right, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use std::collections::HashMap;

/// Rejects changes of ownerReferences by users without these permissions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnerReferences;

impl Validator for OwnerReferences {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        let changed = writes
            && review.object.as_deref().map(owners).unwrap_or_default()
                != review.old.map(owners).unwrap_or_default();
        // A write to the status of a pod cannot change its owners. Old kubelets send them anyway.
        let pod_status = review.kind.group.is_empty()
            && review.kind.names.plural == "pods"
            && review.subresource == "status";
        match changed && !pod_status {
            true => Box::pin(check(review, lookup)),
            false => decided(Ok(())),
        }
    }
}

fn owners(object: &Object) -> &[Value] {
    let list = object.meta("ownerReferences").and_then(Value::as_array);
    list.unwrap_or(&[])
}

async fn check(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let Some(object) = review.object.as_deref() else {
        return Ok(());
    };
    let refused = |why: String| refuse(review.kind, object, why);
    if review.operation != Operation::Create {
        let delete = Right {
            verb: "delete",
            group: &review.kind.group,
            resource: &review.kind.names.plural,
            subresource: review.subresource,
            namespace: review.namespace,
            name: review.name,
        };
        if !lookup.may(review.user, delete).await {
            let why = "cannot set an ownerRef on a resource you can't delete: , <nil>";
            return Err(refused(why.to_owned()));
        }
    }
    for owner in newly_blocked(object, review.old) {
        let (api_version, kind) = (owner.text(&["apiVersion"]), owner.text(&["kind"]));
        // Permissions do not depend on the version, which may no longer be served.
        let (group, _) = api_version.rsplit_once('/').unwrap_or_default();
        let Some(resource) = lookup.resource(group, kind) else {
            return Err(refused(format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
            )));
        };
        let update = Right {
            verb: "update",
            group,
            resource: &resource.plural,
            subresource: "finalizers",
            namespace: match resource.namespaced {
                true => review.namespace,
                false => "",
            },
            name: owner.text(&["name"]),
        };
        if !lookup.may(review.user, update).await {
            let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>";
            return Err(refused(why.to_owned()));
        }
    }
    Ok(())
}

/// Returns the references that newly block the deletion of their owner.
fn newly_blocked<'a>(object: &'a Object, old: Option<&Object>) -> Vec<&'a Value> {
    let blocks = |owner: &&Value| owner.flag(&["blockOwnerDeletion"]);
    let before: HashMap<&str, bool> = old
        .map(owners)
        .unwrap_or_default()
        .iter()
        .map(|owner| (owner.text(&["uid"]), blocks(&owner)))
        .collect();
    let new = owners(object).iter().filter(blocks);
    new.filter(|owner| before.get(owner.text(&["uid"])) != Some(&true))
        .collect()
}
