//! Rejects PersistentVolumeClaim resizes unless the claim is bound and its class allows expansion.
// Upstream: plugin/pkg/admission/storage/persistentvolume/resize.

use super::refuse;
use crate::reach::Reach;
use crate::resources::Amounts;
use bareboat_api::admission::{Lookup, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::quantity::Quantity;
use bareboat_api::{Object, Status};

/// Rejects resizes that the claim's StorageClass does not allow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimGrowth;

fn size(claim: &Object) -> Option<Quantity> {
    let requests = claim.value().members(&["spec", "resources", "requests"]);
    Amounts::read(requests).get("storage")
}

/// Returns the class of a claim, from the annotation or the field.
fn class(claim: &Object) -> &str {
    let annotation = "volume.beta.kubernetes.io/storage-class";
    match claim.value().text(&["metadata", "annotations", annotation]) {
        "" => claim.value().text(&["spec", "storageClassName"]),
        class => class,
    }
}

fn check(new: &Object, old: &Object, lookup: &dyn Lookup) -> Result<(), &'static str> {
    if size(new) <= size(old) {
        return Ok(());
    }
    if old.value().text(&["status", "phase"]) != "Bound" {
        return Err("Only bound persistent volume claims can be expanded");
    }
    let name = class(new);
    let allows = |class: Object| class.value().flag(&["allowVolumeExpansion"]);
    let known = !name.is_empty() && name == class(old);
    if known && (lookup.get("storage.k8s.io/storageclasses", "", name)).is_some_and(allows) {
        return Ok(());
    }
    Err(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    )
}

impl Validator for ClaimGrowth {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let objects = (review.object.as_deref(), review.old);
        let result = match (super::subject(review), objects) {
            (Some(("", "persistentvolumeclaims", Operation::Update)), (Some(new), Some(old))) => {
                check(new, old, lookup).map_err(|why| refuse(review.kind, new, why))
            }
            _ => Ok(()),
        };
        decided(result)
    }
}
