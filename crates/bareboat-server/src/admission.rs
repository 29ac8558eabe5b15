//! The chain of admission: mutators in order, then validators.

use arc_swap::ArcSwap;
use bareboat_api::Status;
use bareboat_api::admission::{Mutator, Review, Validator, World};
use std::sync::{Arc, Weak};

/// Everyone who has a say in writes.
#[derive(Default)]
pub(crate) struct Chain {
    /// May change writes; in order.
    pub(crate) mutators: Vec<Arc<dyn Mutator>>,
    /// May refuse them; in order.
    pub(crate) validators: Vec<Arc<dyn Validator>>,
    /// May refuse them after all others, as long as somebody holds them.
    late: ArcSwap<Vec<Weak<dyn Validator>>>,
}

impl Chain {
    /// One more while the server runs.
    pub(crate) fn add(&self, validator: &Arc<dyn Validator>) {
        self.late.rcu(|known| {
            let mut all = Vec::clone(known);
            all.retain(|known| known.strong_count() > 0);
            all.push(Arc::downgrade(validator));
            all
        });
    }
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
    let late = chain.late.load_full();
    for validator in late.iter().filter_map(Weak::upgrade) {
        validator.validate(review, world).await?;
    }
    Ok(())
}
