//! Two admission rules inside the server: one changes objects, the other rejects them.
//!
//! A `Mutator` runs before validation and may change the object. A `Validator` runs on the object that would be stored.
//! Both see the user, the old object and, with `Lookup`, other objects. They need no webhook, certificate or network.

use bareboat::api::admission::{Lookup, Mutator, Operation, Review, Validator};
use bareboat::api::kind::BoxFuture;
use bareboat::prelude::*;

/// Adds a label with the user's name to every new ConfigMap.
#[derive(Clone, Copy, Debug)]
pub struct CreatedBy;

impl Mutator for CreatedBy {
    fn name(&self) -> &'static str {
        "CreatedBy"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if is_configmap(review) && review.operation == Operation::Create {
            let user = Value::string(review.user.name.replace(':', "."));
            if let Some(object) = &mut review.object {
                let labels = object.metadata_mut().object_mut("labels");
                labels.insert("created-by", user);
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Rejects ConfigMaps with more than three keys, unless their namespace has the label `large`.
#[derive(Clone, Copy, Debug)]
pub struct FewKeys;

impl Validator for FewKeys {
    fn name(&self) -> &'static str {
        "FewKeys"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let data = review
            .object
            .as_ref()
            .and_then(|new| new.get("data")?.as_object());
        let keys = data.map_or(0, |data| data.len());
        let namespace = lookup.get("core/namespaces", "", review.namespace);
        let large =
            namespace.is_some_and(|found| found.at(&["metadata", "labels", "large"]).is_some());
        let answer = match is_configmap(review) && keys > 3 && !large {
            true => Err(Status::forbidden(
                review.kind.group_resource(),
                review.name,
                "at most three keys are allowed in this namespace",
            )),
            false => Ok(()),
        };
        Box::pin(std::future::ready(answer))
    }
}

fn is_configmap(review: &Review<'_>) -> bool {
    review.kind.group.is_empty() && review.kind.names.plural == "configmaps"
}
