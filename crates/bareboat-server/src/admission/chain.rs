//! The order of admission: in-process mutators, then policies and webhooks that mutate, once more if something changed;
//! after preparation and validation the in-process validators, then policies and webhooks that validate, then late
//! validators. `stages` calls policies and webhooks.

use super::ground::Ground;
use super::stages::{self, Stages};
use arc_swap::ArcSwap;
use bareboat_api::admission::{Lookup, Mutator, Review, Validator};
use bareboat_api::{Kind, Status};
use std::sync::{Arc, Weak};

/// All of admission.
#[derive(Default)]
pub(crate) struct Chain {
    /// May change writes; called in order.
    pub(crate) mutators: Vec<Arc<dyn Mutator>>,
    /// May refuse writes; called in order.
    pub(crate) validators: Vec<Arc<dyn Validator>>,
    /// What clients configure.
    pub(crate) stages: Stages,
    /// Validators that run last; each is removed when its last `Arc` is dropped.
    late: ArcSwap<Vec<Weak<dyn Validator>>>,
}

impl Chain {
    /// Adds a validator while the server runs.
    pub(crate) fn add(&self, validator: &Arc<dyn Validator>) {
        self.late.rcu(|known| {
            let mut all = Vec::clone(known);
            all.retain(|known| known.strong_count() > 0);
            all.push(Arc::downgrade(validator));
            all
        });
    }

    /// Registers the kinds that a server has from its start.
    pub(crate) fn note_kinds<'k>(&mut self, kinds: impl Iterator<Item = &'k Kind>) {
        self.stages.note_kinds(kinds);
    }
}

/// Runs mutating admission. Returns whether a policy or a webhook changed the object.
pub(crate) async fn mutate(
    chain: &Chain,
    review: &mut Review<'_>,
    ground: &Ground<'_>,
) -> Result<bool, Status> {
    let lookup: &dyn Lookup = ground.state.as_ref();
    call_mutators(chain, review, lookup).await?;
    stages::mutate(chain, review, ground).await
}

pub(super) async fn call_mutators(
    chain: &Chain,
    review: &mut Review<'_>,
    lookup: &dyn Lookup,
) -> Result<(), Status> {
    for mutator in &chain.mutators {
        let admitted = mutator.admit(review, lookup).await;
        admitted.inspect_err(|status| refused(mutator.name(), status))?;
    }
    Ok(())
}

/// Runs validating admission.
pub(crate) async fn validate(
    chain: &Chain,
    review: &mut Review<'_>,
    ground: &Ground<'_>,
) -> Result<(), Status> {
    let lookup: &dyn Lookup = ground.state.as_ref();
    for validator in &chain.validators {
        let validated = validator.validate(review, lookup).await;
        validated.inspect_err(|status| refused(validator.name(), status))?;
    }
    stages::validate(&chain.stages, review, ground).await?;
    let late = chain.late.load_full();
    for validator in late.iter().filter_map(Weak::upgrade) {
        let validated = validator.validate(review, lookup).await;
        validated.inspect_err(|status| refused(validator.name(), status))?;
    }
    Ok(())
}

/// Logs which plug-in refused a write, without its message: that may quote the object, and the log line about the answer
/// decides whether it is shown.
fn refused(plugin: &str, status: &Status) {
    tracing::debug!(
        target: "bareboat_server::request",
        plugin,
        code = status.code,
        reason = %status.reason,
        "refused by an admission plug-in"
    );
}
