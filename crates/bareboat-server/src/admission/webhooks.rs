//! Webhooks: other servers that change or refuse requests.
//!
//! `table` holds the compiled configurations; `call` sends an AdmissionReview and reads the answer; `mutating` and
//! `validating` are the two stages of the chain.

mod annotations;
mod call;
mod conditions;
mod credentials;
mod hook;
mod metrics;
mod mutating;
mod path;
mod response;
mod review_text;
mod table;
mod validating;

pub use credentials::WebhookCredentials;
pub(crate) use metrics::WebhookMetrics;
pub(crate) use mutating::MutatingWebhooks;
pub(crate) use validating::ValidatingWebhooks;

use super::condition_metrics::{ConditionMetrics, Judge};
use super::matching::{Index, Target};
use super::pass::Pass;
use crate::outbound::Outbound;
use arc_swap::ArcSwap;
use bareboat_api::names::qualified_name;
use bareboat_api::{Status, Str};
use bareboat_storage::Observer;
use conditions::Matched;
use hook::Hook;
use response::Answer;
use std::sync::Arc;
use std::time::Instant;
use table::{Configurations, Table};

/// The storage resource of mutating configurations.
pub(crate) const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
/// The storage resource of validating configurations.
pub(crate) const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// What both stages share.
pub(crate) struct Webhooks {
    table: Arc<ArcSwap<Table>>,
    caller: call::Caller,
    metrics: Arc<WebhookMetrics>,
    condition_metrics: Arc<ConditionMetrics>,
}

impl Webhooks {
    /// No webhooks yet; the observer adds them.
    pub(crate) fn new(
        outbound: Arc<Outbound>,
        credentials: WebhookCredentials,
        (metrics, condition_metrics): (Arc<WebhookMetrics>, Arc<ConditionMetrics>),
    ) -> Webhooks {
        Webhooks {
            table: Arc::default(),
            caller: call::Caller::new(outbound, credentials),
            metrics,
            condition_metrics,
        }
    }

    /// Returns what keeps the table up to date inside each commit.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(Configurations::new(self.table.clone()))
    }

    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        self.table.load().index.concerns(target, aliases)
    }

    /// Returns the hooks whose rules may match a request, with their places among all hooks.
    fn candidates(&self, target: &Target<'_>, aliases: &[Str]) -> Vec<(usize, Arc<Hook>)> {
        let table = self.table.load();
        let index: &Index = &table.index;
        let found = index.candidates(target, aliases).into_iter();
        found
            .map(|place| (place, table.hooks[place].clone()))
            .collect()
    }
}

impl Webhooks {
    /// Returns the form in which a hook matches a request, with the objects prepared in it.
    async fn matches(
        &self,
        hook: &Hook,
        pass: &mut Pass<'_, '_>,
        step: &'static str,
    ) -> Result<Option<usize>, Status> {
        let Some(form) = hook.criteria.matches(pass)? else {
            return Ok(None);
        };
        pass.prepare(form).await?;
        if hook.conditions.is_empty() {
            return Ok(Some(form));
        }
        let (began, operation) = (Instant::now(), pass.review().operation);
        let matched = hook.conditions.check(pass, form).await;
        let counted = match &matched {
            Matched::Yes => (0, false),
            Matched::No => (0, true),
            Matched::Failed(_, errors) => (*errors, hook.fails_open),
        };
        let judge = Judge {
            name: &hook.name,
            kind: "webhook",
            step,
        };
        let (errors, excluded) = counted;
        let metrics = &self.condition_metrics;
        metrics.evaluated(judge, operation, began.elapsed(), errors);
        if excluded {
            metrics.excluded(judge, operation);
        }
        match matched {
            Matched::Yes => Ok(Some(form)),
            Matched::No => Ok(None),
            Matched::Failed(..) if hook.fails_open => Ok(None),
            Matched::Failed(why, _) => {
                let review = pass.review();
                let what = review.kind.group_resource();
                Err(Status::forbidden(what, review.name, why))
            }
        }
    }
}

/// Passes on the warnings and audit annotations of an answer.
fn remark(hook: &Hook, pass: &mut Pass<'_, '_>, answer: &Answer) {
    for (key, text) in &answer.annotations {
        let key = format!("{}/{key}", hook.name);
        // Other keys cannot be told apart from the server's own.
        if qualified_name(&key).is_empty() {
            pass.annotate(key, text.clone());
        }
    }
    for text in &answer.warnings {
        pass.warn(text.clone());
    }
}
