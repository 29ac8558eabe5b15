//! Decisions and messages, in tables of expressions.

mod budgets;
mod mutations;
mod typechecks;
mod verdicts;

use crate::{Binding, Inputs, Policy, Verdict};
use bareboat_api::{Object, Value, value};

pub(crate) fn object(value: Value) -> Object {
    Object::try_from(value).unwrap_or_else(|value| panic!("{value} is no object"))
}

/// Returns a validating policy `p` with this spec.
pub(crate) fn policy(spec: Value) -> Policy {
    Policy::validating(&object(value!({"metadata": {"name": "p"}, "spec": (spec)})))
}

/// Returns a binding `b` of `p` with these actions.
pub(crate) fn binding(actions: Value) -> Binding {
    Binding::new(&object(value!({
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": (actions)},
    })))
}

/// Evaluates a policy on a small deployment.
pub(crate) fn verdict(policy: &Policy, actions: Value) -> Verdict {
    let deployment = value!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"team": "blue"}}, "spec": {"replicas": 6},
    });
    let old = value!({"metadata": {"name": "d"}, "spec": {"replicas": 1}});
    let request = value!({"operation": "UPDATE", "userInfo": {"username": "ann"}});
    let namespace = value!({"metadata": {"name": "n", "labels": {"env": "prod"}}});
    let params = value!({"max": 5});
    let mut inputs = Inputs::new(Some(&deployment), Some(&old), &request);
    inputs.namespace = Some(&namespace);
    inputs.params = Some(&params);
    let mut verdict = Verdict::default();
    verdict.add(policy, &binding(actions), policy.validate(&inputs));
    verdict
}

/// Returns the denial of a policy without its beginning; empty if it admits.
pub(crate) fn denied(spec: Value) -> String {
    let verdict = verdict(&policy(spec), value!(["Deny"]));
    let message = verdict.denial().map_or("", |denial| &denial.message);
    let start = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";
    match message.strip_prefix(start) {
        Some(rest) => rest.to_owned(),
        None => message.to_owned(),
    }
}
