//! Admission rules for notes, inside the server: no webhook, certificate or network.

use super::GROUP;
use bareboat::api::admission::{Lookup, Mutator, Operation, Review, Validator};
use bareboat::api::kind::BoxFuture;
use bareboat::prelude::*;

/// Adds the rules to a server.
pub fn serve(builder: ServerBuilder) -> ServerBuilder {
    builder.mutator(Rules).validator(Rules)
}

/// The rules.
#[derive(Clone, Copy, Debug)]
struct Rules;

impl Mutator for Rules {
    fn name(&self) -> &'static str {
        "NoteDefaults"
    }

    /// Changes an object before it is validated.
    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let user = Value::string(review.user.name.replace(':', "."));
        if is_ours(review)
            && let Some(object) = &mut review.object
        {
            object
                .metadata_mut()
                .object_mut("labels")
                .insert("changed-by", user);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Validator for Rules {
    fn name(&self) -> &'static str {
        "NoteRules"
    }

    /// Refuses an object, with the reason.
    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let answer = match is_ours(review) && review.name.starts_with("forbidden") {
            true => Err(Status::forbidden(
                review.kind.group_resource(),
                review.name,
                "names must not begin with \"forbidden\"",
            )),
            false => Ok(()),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Whether an object of the kind itself is written: connections and other subresources have other objects.
fn is_ours(review: &Review<'_>) -> bool {
    let written = matches!(review.operation, Operation::Create | Operation::Update);
    let ours = review.kind.group == GROUP && review.kind.names.plural == "notes";
    written && ours && review.subresource.is_empty()
}
