//! Mutating policies: one after the other, each sees what the one before it changed.

use super::evaluate::Shared;
use super::params::{Param, ParamSource, collect};
use super::table::Bound;
use super::validating::applies;
use super::{Policies, object_of};
use crate::admission::matching::Target;
use crate::admission::pass::{Pass, Reinvocations};
use crate::admission::stages::MutatingStage;
use bareboat_api::kind::{BoxFuture, Origin};
use bareboat_api::status::GroupResource;
use bareboat_api::typing::{NodeType, TypeNode};
use bareboat_api::{Status, Str, Value};
use bareboat_policy::{Binding, ErrorType, FailurePolicy, FirstFew, Inputs, Matched, Policy};
use std::sync::Arc;
use std::time::Instant;

/// The stage of mutating policies.
pub(crate) struct MutatingPolicies(pub(crate) Policies);

/// A policy that applies to a request, with one of its bindings and one parameter object.
struct Invocation {
    bound: Arc<Bound>,
    binding: usize,
    form: usize,
    params: Option<Param>,
}

impl Invocation {
    fn policy(&self) -> &Policy {
        &self.bound.definition.policy
    }

    fn binding(&self) -> &Binding {
        &self.bound.bindings[self.binding].binding
    }

    /// Returns what identifies it in the second round.
    fn id(&self) -> String {
        let (namespace, name) = match &self.params {
            Some(params) => (params.entry.namespace().unwrap_or(""), params.entry.name()),
            None => ("", ""),
        };
        let (policy, binding) = (&self.policy().name, &self.binding().name);
        format!("{policy}/{binding}/{namespace}/{name}")
    }
}

/// The errors of policies that do not ignore them.
#[derive(Default)]
struct Failures {
    messages: FirstFew,
    /// The reason of the first, if it is not that of a refusal.
    reason: Option<&'static str>,
}

impl Failures {
    fn add(
        &mut self,
        policy: &Policy,
        binding: Option<&Binding>,
        why: &str,
        reason: Option<&'static str>,
    ) {
        if policy.failure_policy == FailurePolicy::Ignore {
            return;
        }
        if self.messages.kept().is_empty() {
            self.reason = reason;
        }
        let binding = binding.map(|binding| binding.name.as_str());
        self.messages.add(|| policy.mutation_denied(binding, why));
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        let part = match binding {
            Some(_) => "binding",
            None => "policy",
        };
        let why = format!("failed to configure {part}: {why}");
        self.add(policy, binding, &why, None);
    }

    /// Returns the refusal of a request for an object, with a cause for each error.
    fn into_result(self, (what, name): (GroupResource<'_>, &str)) -> Result<(), Status> {
        let Some(first) = self.messages.kept().first() else {
            return Ok(());
        };
        let mut status = Status::forbidden(what, name, "");
        status.message.clone_from(first);
        if let Some(reason) = self.reason {
            status.reason = reason.into();
        }
        let messages = &self.messages;
        let messages = messages.with_remark(|more| format!("{more} more errors were left out"));
        Err(messages
            .into_iter()
            .fold(status, |status, message| status.with_cause("", message, "")))
    }
}

impl MutatingStage for MutatingPolicies {
    fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        self.0.concerns(target, aliases)
    }

    fn mutate<'a>(
        &'a self,
        pass: &'a mut Pass<'_, '_>,
        again: &'a mut Reinvocations,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.apply_all(pass, again))
    }
}

impl MutatingPolicies {
    async fn apply_all(
        &self,
        pass: &mut Pass<'_, '_>,
        again: &mut Reinvocations,
    ) -> Result<(), Status> {
        let round = pass.round();
        again.begin(round, pass.object(0));
        let mut failures = Failures::default();
        let mut shared = Shared::default();
        for invocation in self.invocations(pass, &mut failures).await {
            let id = invocation.id();
            if round > 0 && !again.wants(&id) {
                continue;
            }
            let applied = self
                .apply(&invocation, pass, &mut shared, &mut failures)
                .await?;
            if applied == Applied::Changed {
                again.changed();
            }
            if applied != Applied::No && invocation.policy().reinvoked {
                again.called(&id);
            }
        }
        again.end(round, pass.object(0));
        failures.into_result(object_of(pass))
    }

    /// Returns the policies that apply to a request, before any of them changes it.
    async fn invocations(
        &self,
        pass: &mut Pass<'_, '_>,
        failures: &mut Failures,
    ) -> Vec<Invocation> {
        let mut found = Vec::new();
        for bound in self.0.candidates(pass) {
            let policy = &bound.definition.policy;
            let Some(criteria) = &bound.definition.criteria else {
                continue;
            };
            let form = match criteria.matches(pass) {
                Ok(Some(form)) => form,
                Ok(None) => continue,
                Err(status) => {
                    failures.misconfigured(policy, None, &status.message);
                    continue;
                }
            };
            let source = match ParamSource::of(policy, pass) {
                Ok(source) => source,
                Err(why) => {
                    failures.misconfigured(policy, None, &why);
                    continue;
                }
            };
            for (place, attachment) in bound.bindings.iter().enumerate() {
                let binding = &attachment.binding;
                let params = match applies(attachment, pass) {
                    Ok(false) => continue,
                    Ok(true) => collect(source.as_ref(), policy, binding, pass).await,
                    Err(why) => Err(why),
                };
                match params {
                    Err(why) => failures.misconfigured(policy, Some(binding), &why),
                    Ok(params) => found.extend(params.into_iter().map(|params| Invocation {
                        bound: bound.clone(),
                        binding: place,
                        form,
                        params,
                    })),
                }
            }
        }
        found
    }

    /// Applies the mutations of a policy for one binding and one parameter object.
    async fn apply(
        &self,
        invocation: &Invocation,
        pass: &mut Pass<'_, '_>,
        shared: &mut Shared,
        failures: &mut Failures,
    ) -> Result<Applied, Status> {
        const INVALID: Option<&str> = Some("Invalid");
        let (policy, binding) = (invocation.policy(), invocation.binding());
        let form = invocation.form;
        let params = match &invocation.params {
            None => None,
            Some(param) => match param.read().await {
                Ok(object) => Some(object),
                Err(why) => {
                    failures.misconfigured(policy, Some(binding), &why);
                    return Ok(Applied::No);
                }
            },
        };
        let params = params.as_ref();
        if let Err(status) = pass.prepare(form).await {
            failures.misconfigured(policy, None, &status.message);
            return Ok(Applied::No);
        }
        let ready = shared.prepare(policy, pass, form).await?;
        let conditions = self.0.conditions(policy, &ready, pass, form, params);
        match conditions.await {
            Matched::Yes => {}
            Matched::No => return Ok(Applied::No),
            Matched::Failed(why) => {
                failures.add(policy, Some(binding), &why, INVALID);
                return Ok(Applied::No);
            }
        }
        let mut applied = Applied::Unchanged;
        for index in 0..policy.mutations() {
            // The change of an earlier mutation may have to be converted for the next.
            pass.prepare(form).await?;
            if pass.object(form).is_none() {
                break;
            }
            let began = Instant::now();
            let result = {
                let shown = pass.form(form);
                let typing = shown.shape(pass.ground()).map(|shape| shape.typing());
                let mutate = |inputs: &Inputs<'_>| match &typing {
                    Some(typing) => policy.mutate(index, inputs, &**typing),
                    None => policy.mutate(index, inputs, &Untyped),
                };
                ready.evaluate(pass, form, params, mutate).await
            };
            let error = match &result {
                Ok(_) => ErrorType::None,
                Err(error) => ErrorType::of(&error.0),
            };
            let names = (policy.name.as_str(), binding.name.as_str());
            self.0.metrics.mutated(names, error, began.elapsed());
            match result {
                Ok(Some(changed)) => {
                    if policy.is_json_patch(index) {
                        decode_strictly(&changed, pass, form)?;
                    }
                    if pass.replace(form, changed).await? {
                        applied = Applied::Changed;
                    }
                }
                Ok(None) => {}
                Err(error) => failures.add(policy, Some(binding), &error.0, INVALID),
            }
        }
        Ok(applied)
    }
}

/// Refuses a patched object of a built-in kind with unknown fields.
fn decode_strictly(patched: &Value, pass: &Pass<'_, '_>, form: usize) -> Result<(), Status> {
    if pass.review().kind.origin != Origin::BuiltIn {
        return Ok(());
    }
    let form = pass.form(form);
    let Some(shape) = form.shape(pass.ground()) else {
        return Ok(());
    };
    let mut unknown = Vec::new();
    let conformed = shape.conform(&mut patched.clone(), &mut unknown);
    conformed.map_err(Status::internal)?;
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(Status::internal(format!(
            "strict decoding error: {}",
            unknown.join(", ")
        ))),
    }
}

/// What a policy did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    /// Its conditions did not match.
    No,
    /// The object is as before.
    Unchanged,
    Changed,
}

/// The type of objects of unknown types, such as a Scale.
struct Untyped;

impl TypeNode for Untyped {
    fn node_type(&self) -> NodeType {
        NodeType::Untyped
    }

    fn field(&self, _: &str) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }

    fn items(&self) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::{Object, value};
    use bareboat_policy::MAX_FAILURES;

    #[test]
    fn the_errors_of_many_parameter_objects_are_cut() {
        let spec = value!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail"}});
        let policy = Policy::mutating(&Object::try_from(spec).unwrap_or_default());
        let mut failures = Failures::default();
        for number in 0..MAX_FAILURES + 3 {
            failures.add(&policy, None, &format!("error {number}"), Some("Invalid"));
        }
        let what = GroupResource {
            group: "",
            resource: "pods",
        };
        let status = failures
            .into_result((what, "a"))
            .expect_err("it is refused");
        assert!(status.message.contains("error 0"), "{}", status.message);
        let causes = status.details.unwrap_or_default().causes;
        assert_eq!(causes.len(), MAX_FAILURES + 1);
        let last = causes.last().map(|cause| cause.message.as_str());
        assert_eq!(last, Some("3 more errors were left out"));
    }
}
