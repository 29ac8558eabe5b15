//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy without I/O.
//!
//! A [`Policy`] is read from its object; its expressions are compiled at their first use. [`Policy::matches`],
//! [`Policy::validate`] and [`Policy::mutate`] evaluate it for one request, one binding and one parameter object
//! ([`Inputs`]). A [`Verdict`] combines the results of several bindings into warnings, audit annotations and a denial.
//! [`check_types`] finds the warnings of `status.typeChecking`.
//!
//! Which policies apply to a request, and where parameters, namespaces and authorization come from, is left to the caller.
//!
//! ```
//! use bareboat_api::{Object, value};
//! use bareboat_policy::{Binding, Inputs, Matched, Policy, Verdict};
//!
//! let policy = value!({
//!     "metadata": {"name": "few-replicas"},
//!     "spec": {"validations": [{
//!         "expression": "object.spec.replicas <= 5",
//!         "messageExpression": "'not ' + string(object.spec.replicas)",
//!     }]},
//! });
//! let binding = value!({
//!     "metadata": {"name": "everywhere"},
//!     "spec": {"policyName": "few-replicas", "validationActions": ["Deny"]},
//! });
//! let policy = Policy::validating(&Object::try_from(policy)?);
//! let binding = Binding::new(&Object::try_from(binding)?);
//!
//! let deployment = value!({"metadata": {"name": "a"}, "spec": {"replicas": 6}});
//! let request = value!({"operation": "CREATE"});
//! let inputs = Inputs::new(Some(&deployment), None, &request);
//! assert_eq!(policy.matches(&inputs), Matched::Yes);
//! let mut verdict = Verdict::default();
//! verdict.add(&policy, &binding, policy.validate(&inputs));
//! let denial = verdict.denial().expect("six are too many");
//! assert_eq!(denial.code(), 422);
//! assert_eq!(
//!     denial.message,
//!     "ValidatingAdmissionPolicy 'few-replicas' with binding 'everywhere' denied request: not 6"
//! );
//! # Ok::<(), bareboat_api::Value>(())
//! ```

mod apply;
mod binding;
mod code;
mod conditions;
mod first_few;
mod inputs;
mod json_patch;
mod mutating;
mod policy;
mod scope;
mod typecheck;
mod types;
mod validating;
mod verdict;

pub use binding::{Action, Binding, ParamRef, Params};
pub use conditions::{Conditions, Matched};
pub use first_few::{FirstFew, MAX_FAILURES};
pub use inputs::{Inputs, Trial};
pub use json_patch::patch_failure;
pub use mutating::MutationError;
pub use policy::{FailurePolicy, ParamKind, Policy, PolicyKind};
pub use typecheck::{
    CheckedKind, ExpressionWarning, MAX_CHECKED_KINDS, check_types, rules_to_check,
};
pub use types::declared_type;
pub use validating::{AuditAnnotation, Decision, Evaluation, Validated, visible_namespace};
pub use verdict::{Check, Denial, Enforcement, ErrorType, Verdict};

#[cfg(test)]
mod tests;
