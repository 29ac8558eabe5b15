//! The stages of admission that clients configure: policies and webhooks that mutate, and those that validate.

use super::chain::{Chain, call_mutators};
use super::ground::{Ground, Scaled};
use super::kept::KeptMetadata;
use super::matching::{Target, is_exempt};
use super::pass::{Pass, Reinvocations};
use ahash::HashMap;
use bareboat_api::admission::{Lookup, Review};
use bareboat_api::kind::{BoxFuture, Reservations};
use bareboat_api::{Kind, Object, Status, Str};
use std::sync::Arc;

/// A stage of mutating admission that clients configure: policies, or webhooks.
pub(crate) trait MutatingStage: Send + Sync {
    /// Returns whether a request may match something. Every write asks this, so it must be quick.
    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool;

    /// Changes the object, or refuses the request. If a policy or webhook changed the object, all stages are called
    /// once more, with [`Pass::round`] 1.
    fn mutate<'a>(
        &'a self,
        pass: &'a mut Pass<'_, '_>,
        again: &'a mut Reinvocations,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// A stage of validating admission that clients configure: policies, or webhooks.
pub(crate) trait ValidatingStage: Send + Sync {
    /// Returns whether a request may match something. Every write asks this, so it must be quick.
    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool;

    /// Accepts or refuses the request.
    fn validate<'a>(&'a self, pass: &'a mut Pass<'_, '_>) -> BoxFuture<'a, Result<(), Status>>;
}

/// All stages.
#[derive(Default)]
pub(crate) struct Stages {
    /// Mutating policies, then mutating webhooks.
    pub(crate) mutating: Vec<Arc<dyn MutatingStage>>,
    /// Validating policies, then validating webhooks.
    pub(crate) validating: Vec<Arc<dyn ValidatingStage>>,
    /// The groups of kinds that share a storage resource, by that resource.
    shared: HashMap<Str, Vec<Str>>,
}

impl Stages {
    /// Registers the kinds that a server has from its start: some have the same objects in two groups.
    pub(super) fn note_kinds<'k>(&mut self, kinds: impl Iterator<Item = &'k Kind>) {
        let mut groups: HashMap<Str, Vec<Str>> = HashMap::default();
        for kind in kinds {
            groups
                .entry(kind.store.clone())
                .or_default()
                .push(kind.group.clone());
        }
        groups.retain(|_, groups| groups.len() > 1);
        self.shared = groups;
    }

    /// Returns the groups in which objects of a kind are found, if there are several.
    pub(crate) fn groups_of(&self, kind: &Kind) -> &[Str] {
        match self.shared.is_empty() {
            true => &[],
            false => self.shared.get(&kind.store).map_or(&[], Vec::as_slice),
        }
    }

    fn may_mutate(&self, review: &Review<'_>) -> bool {
        if self.mutating.is_empty() || is_exempt(review.kind) {
            return false;
        }
        let (target, aliases) = (Target::of(review), self.groups_of(review.kind));
        let mut stages = self.mutating.iter();
        stages.any(|stage| stage.concerns(&target, aliases))
    }

    fn may_refuse(&self, review: &Review<'_>) -> bool {
        if self.validating.is_empty() || is_exempt(review.kind) {
            return false;
        }
        let (target, aliases) = (Target::of(review), self.groups_of(review.kind));
        let mut stages = self.validating.iter();
        stages.any(|stage| stage.concerns(&target, aliases))
    }
}

/// Calls the mutating stages that concern a request, after the plug-ins. Returns whether one of them changed the object.
pub(super) async fn mutate(
    chain: &Chain,
    review: &mut Review<'_>,
    ground: &Ground<'_>,
) -> Result<bool, Status> {
    if !chain.stages.may_mutate(review) {
        return Ok(false);
    }
    let lookup: &dyn Lookup = ground.state.as_ref();
    let stages = &chain.stages;
    let kept = review.object.as_deref().map(KeptMetadata::of);
    let mut again: Vec<Reinvocations> = Vec::new();
    again.resize_with(stages.mutating.len(), Reinvocations::default);
    let first = call_stages(stages, review, ground, &mut again, 0).await?;
    if !first {
        return Ok(false);
    }
    // What changed the object may have undone or required something that came earlier in the chain.
    call_mutators(chain, review, lookup).await?;
    call_stages(stages, review, ground, &mut again, 1).await?;
    if let (Some(object), Some(kept)) = (review.object.as_deref_mut(), kept)
        && let Some(warning) = kept.restore(object)
    {
        review.warnings.push(warning);
    }
    Ok(true)
}

/// Calls the mutating stages. Returns whether one of them changed the object.
async fn call_stages(
    stages: &Stages,
    review: &mut Review<'_>,
    ground: &Ground<'_>,
    again: &mut [Reinvocations],
    round: usize,
) -> Result<bool, Status> {
    let Some(scaled) = ground.scaled else {
        let mut pass = Pass::new(review, ground, round);
        for (stage, again) in stages.mutating.iter().zip(again) {
            stage.mutate(&mut pass, again).await?;
        }
        return Ok(pass.has_changed());
    };
    let mut shown = ScaleReview::of(review, scaled)?;
    let mut inner = shown.review(review);
    let mut pass = Pass::new(&mut inner, ground, round);
    let mut result = Ok(());
    for (stage, again) in stages.mutating.iter().zip(again) {
        result = stage.mutate(&mut pass, again).await;
        if result.is_err() {
            break;
        }
    }
    let changed = pass.has_changed();
    let remarks = Remarks::take(&mut inner);
    remarks.give(review);
    result?;
    if let (true, Some(scale), Some(whole)) = (changed, &shown.object, &mut review.object) {
        scaled.write_back(scale, whole)?;
    }
    Ok(changed)
}

/// Calls the validating stages that concern a request.
pub(super) async fn validate(
    stages: &Stages,
    review: &mut Review<'_>,
    ground: &Ground<'_>,
) -> Result<(), Status> {
    if !stages.may_refuse(review) {
        return Ok(());
    }
    let Some(scaled) = ground.scaled else {
        let mut pass = Pass::new(review, ground, 0);
        for stage in &stages.validating {
            stage.validate(&mut pass).await?;
        }
        return Ok(());
    };
    let mut shown = ScaleReview::of(review, scaled)?;
    let mut inner = shown.review(review);
    let mut result = Ok(());
    {
        let mut pass = Pass::new(&mut inner, ground, 0);
        for stage in &stages.validating {
            result = stage.validate(&mut pass).await;
            if result.is_err() {
                break;
            }
        }
    }
    let remarks = Remarks::take(&mut inner);
    remarks.give(review);
    result
}

/// The Scales of an object, which policies and webhooks see in place of it.
struct ScaleReview {
    object: Option<Object>,
    old: Option<Object>,
}

impl ScaleReview {
    fn of(review: &Review<'_>, scaled: &dyn Scaled) -> Result<ScaleReview, Status> {
        let show = |whole: &Object| scaled.show(whole);
        Ok(ScaleReview {
            object: review.object.as_deref().map(show).transpose()?,
            old: review.old.map(show).transpose()?,
        })
    }

    fn review<'a>(&'a mut self, of: &Review<'a>) -> Review<'a> {
        Review {
            operation: of.operation,
            kind: of.kind,
            version: of.version,
            subresource: of.subresource,
            namespace: of.namespace,
            name: of.name,
            object: self.object.as_mut(),
            old: self.old.as_ref(),
            options: of.options,
            user: of.user,
            dry_run: of.dry_run,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            reservations: Reservations::default(),
        }
    }
}

/// Warnings and audit annotations.
struct Remarks(Vec<String>, Vec<(String, String)>);

impl Remarks {
    fn take(review: &mut Review<'_>) -> Remarks {
        Remarks(
            std::mem::take(&mut review.warnings),
            std::mem::take(&mut review.audit_annotations),
        )
    }

    fn give(self, review: &mut Review<'_>) {
        review.warnings.extend(self.0);
        review.audit_annotations.extend(self.1);
    }
}
