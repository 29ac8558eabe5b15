//! Policies: expressions that clients store and that change or refuse requests.
//!
//! `table` holds policies with their bindings; `params` finds parameters; `evaluate` gives expressions what they read;
//! `mutating` and `validating` are the two stages of the chain. `bareboat-policy` has the rules themselves.

mod evaluate;
mod metrics;
mod mutating;
mod params;
mod table;
mod validating;

pub(crate) use metrics::PolicyMetrics;
pub(crate) use mutating::MutatingPolicies;
pub(crate) use validating::ValidatingPolicies;

use super::condition_metrics::{ConditionMetrics, Judge};
use super::matching::Target;
use super::pass::Pass;
use arc_swap::ArcSwap;
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Str};
use bareboat_policy::{Inputs, Matched, Policy, PolicyKind};
use bareboat_storage::Observer;
use evaluate::Ready;
use std::sync::Arc;
use std::time::Instant;
use table::{Bound, Known, Part, Source, Table};

/// What both stages share.
pub(crate) struct Policies {
    kind: PolicyKind,
    table: Arc<ArcSwap<Table>>,
    metrics: Arc<PolicyMetrics>,
    conditions: Arc<ConditionMetrics>,
}

impl Policies {
    /// No policies yet; the observers add them.
    pub(crate) fn new(
        kind: PolicyKind,
        metrics: Arc<PolicyMetrics>,
        conditions: Arc<ConditionMetrics>,
    ) -> Policies {
        Policies {
            kind,
            table: Arc::default(),
            metrics,
            conditions,
        }
    }

    /// Returns what keeps the table up to date inside each commit, with the storage resources to observe.
    pub(crate) fn observers(&self) -> [(&'static str, Arc<dyn Observer>); 2] {
        let known = Arc::new(Known::new(self.kind, self.table.clone()));
        let (policies, bindings) = match self.kind {
            PolicyKind::Validating => (
                "admissionregistration.k8s.io/validatingadmissionpolicies",
                "admissionregistration.k8s.io/validatingadmissionpolicybindings",
            ),
            PolicyKind::Mutating => (
                "admissionregistration.k8s.io/mutatingadmissionpolicies",
                "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
            ),
        };
        [
            (
                policies,
                Arc::new(Source::new(known.clone(), Part::Policies)),
            ),
            (bindings, Arc::new(Source::new(known, Part::Bindings))),
        ]
    }

    /// Evaluates the match conditions of a policy, and measures it.
    async fn conditions(
        &self,
        policy: &Policy,
        ready: &Ready,
        pass: &Pass<'_, '_>,
        form: usize,
        params: Option<&Object>,
    ) -> Matched {
        if !policy.has_conditions() {
            return Matched::Yes;
        }
        let began = Instant::now();
        let conditions = |inputs: &Inputs<'_>| policy.conditions(inputs);
        let found = ready.evaluate(pass, form, params, conditions).await;
        let judge = Judge {
            name: &policy.name,
            kind: "policy",
            // kube-apiserver says this of mutating policies, too.
            step: "validate",
        };
        let (operation, took) = (pass.review().operation, began.elapsed());
        self.conditions
            .evaluated(judge, operation, took, found.errors);
        found.matched
    }

    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        self.table.load().index.concerns(target, aliases) && !is_review(target)
    }

    /// Returns the policies whose rules may match a request, in order.
    fn candidates(&self, pass: &Pass<'_, '_>) -> Vec<Arc<Bound>> {
        let table = self.table.load();
        let target = pass.target();
        if is_review(&target) {
            return Vec::new();
        }
        let found = table.index.candidates(&target, pass.aliases()).into_iter();
        found.map(|place| table.bound[place].clone()).collect()
    }
}

/// Returns whether a request only asks who someone is or what they may do. Policies never see these: a wrong one could
/// lock everyone out.
fn is_review(target: &Target<'_>) -> bool {
    matches!(
        (target.place.group, target.place.resource),
        (
            "authentication.k8s.io",
            "selfsubjectreviews" | "tokenreviews"
        ) | (
            "authorization.k8s.io",
            "localsubjectaccessreviews"
                | "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
        )
    )
}

/// Returns the object of a request as a Status names it.
fn object_of<'p>(pass: &'p Pass<'_, '_>) -> (GroupResource<'p>, &'p str) {
    let review = pass.review();
    let object = review.object.as_deref();
    let named = [
        review.name,
        object.map_or("", |object| object.name()),
        object.map_or("", |object| object.meta_str("generateName")),
        "Unknown",
    ];
    let name = named.into_iter().find(|name| !name.is_empty());
    (review.kind.group_resource(), name.unwrap_or_default())
}
