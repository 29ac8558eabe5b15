//! The chain of admission: mutators in order, then validators.

use bareboat_api::Status;
use bareboat_api::admission::{Mutator, Review, Validator, World};
use std::sync::Arc;

/// Everyone who has a say in writes.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    /// May change writes; in order.
    pub(crate) mutators: Vec<Arc<dyn Mutator>>,
    /// May refuse them; in order.
    pub(crate) validators: Vec<Arc<dyn Validator>>,
}

/// Lets the mutators change a write.
pub(crate) async fn mutate(
    chain: &Chain,
    review: &mut Review<'_>,
    world: &dyn World,
) -> Result<(), Status> {
    for mutator in &chain.mutators {
        mutator.admit(review, world).await?;
    }
    Ok(())
}

/// Lets the validators judge a write.
pub(crate) async fn validate(
    chain: &Chain,
    review: &mut Review<'_>,
    world: &dyn World,
) -> Result<(), Status> {
    for validator in &chain.validators {
        validator.validate(review, world).await?;
    }
    Ok(())
}
