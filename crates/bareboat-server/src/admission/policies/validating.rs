//! Validating policies: all that match are evaluated, then the first denial refuses the request.

use super::evaluate::Shared;
use super::params::{ParamSource, collect};
use super::table::{Attachment, Bound};
use super::{Policies, object_of};
use crate::admission::matching::Target;
use crate::admission::pass::Pass;
use crate::admission::stages::ValidatingStage;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Str};
use bareboat_policy::{Inputs, Matched, Verdict};
use std::time::Instant;

/// The stage of validating policies.
pub(crate) struct ValidatingPolicies(pub(crate) Policies);

impl ValidatingStage for ValidatingPolicies {
    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        self.0.concerns(target, aliases)
    }

    fn validate<'a>(&'a self, pass: &'a mut Pass<'_, '_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.evaluate_all(pass))
    }
}

impl ValidatingPolicies {
    async fn evaluate_all(&self, pass: &mut Pass<'_, '_>) -> Result<(), Status> {
        let mut verdict = Verdict::default();
        let mut shared = Shared::default();
        for bound in self.0.candidates(pass) {
            self.evaluate(&bound, pass, &mut shared, &mut verdict)
                .await?;
        }
        for warning in verdict.warnings() {
            pass.warn(warning);
        }
        for (key, text) in verdict.audit_annotations() {
            pass.annotate(key, text);
        }
        match verdict.denial() {
            None => Ok(()),
            Some(denial) => {
                let (what, name) = object_of(pass);
                Err(denial.status(what, name))
            }
        }
    }

    async fn evaluate(
        &self,
        bound: &Bound,
        pass: &mut Pass<'_, '_>,
        shared: &mut Shared,
        verdict: &mut Verdict,
    ) -> Result<(), Status> {
        let policy = &bound.definition.policy;
        let matched = match &bound.definition.criteria {
            Some(criteria) => criteria.matches(pass),
            None => return Ok(()),
        };
        let form = match matched {
            Ok(Some(form)) => form,
            Ok(None) => return Ok(()),
            Err(status) => {
                verdict.misconfigured(policy, None, &status.message);
                return Ok(());
            }
        };
        let source = match ParamSource::of(policy, pass) {
            Ok(source) => source,
            Err(why) => {
                verdict.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        for attachment in &bound.bindings {
            let binding = &attachment.binding;
            let params = match applies(attachment, pass) {
                Ok(false) => continue,
                Ok(true) => collect(source.as_ref(), policy, binding, pass).await,
                Err(why) => Err(why),
            };
            let params = match params {
                Ok(params) => params,
                Err(why) => {
                    verdict.misconfigured(policy, Some(binding), &why);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if let Err(status) = pass.prepare(form).await {
                let why = format!("failed to convert object version: {}", status.message);
                verdict.misconfigured(policy, Some(binding), &why);
                continue;
            }
            let ready = shared.prepare(policy, pass, form).await?;
            for param in params {
                let params = match &param {
                    None => None,
                    Some(param) => match param.read().await {
                        Ok(object) => Some(object),
                        Err(why) => {
                            verdict.misconfigured(policy, Some(binding), &why);
                            continue;
                        }
                    },
                };
                let began = Instant::now();
                let params = params.as_ref();
                let matched = self.0.conditions(policy, &ready, pass, form, params).await;
                let validated = match matched {
                    Matched::No => continue,
                    Matched::Failed(why) => policy.failed(why),
                    Matched::Yes => {
                        let validate = |inputs: &Inputs<'_>| policy.judge(inputs);
                        ready.evaluate(pass, form, params, validate).await
                    }
                };
                for check in verdict.add(policy, binding, validated) {
                    self.0.metrics.validated(&check, began.elapsed());
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a binding applies to a request that its policy applies to.
pub(super) fn applies(attachment: &Attachment, pass: &Pass<'_, '_>) -> Result<bool, String> {
    match &attachment.criteria {
        None => Ok(true),
        Some(criteria) => {
            let matched = criteria.matches(pass).map_err(|status| status.message)?;
            Ok(matched.is_some())
        }
    }
}
