//! What stands for policies and webhooks in a build without the feature `dynamic`: there are none.

use super::chain::Chain;
use super::ground::Ground;
use bareboat_api::admission::Review;
use bareboat_api::{Kind, Status};

/// No stages.
#[derive(Default)]
pub(crate) struct Stages;

impl Stages {
    pub(super) fn note_kinds<'k>(&mut self, _: impl Iterator<Item = &'k Kind>) {}
}

/// Changes nothing.
pub(super) async fn mutate(_: &Chain, _: &mut Review<'_>, _: &Ground<'_>) -> Result<bool, Status> {
    Ok(false)
}

/// Refuses nothing.
pub(super) async fn validate(_: &Stages, _: &mut Review<'_>, _: &Ground<'_>) -> Result<(), Status> {
    Ok(())
}
