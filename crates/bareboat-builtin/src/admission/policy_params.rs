//! Authorizes the parameters of admission policies: expressions read them with the rights of the server, so the author
//! of a policy or a binding must have the right to read them.
// Upstream: pkg/registry/admissionregistration/*/authz.go.

use super::subject;
use crate::reach::Reach;
use bareboat_api::admission::{Lookup, Operation, Review, Right, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{FieldError, FieldPath, Object, Status, Str, Value};

const GROUP: &str = "admissionregistration.k8s.io";

/// Rejects policies and bindings whose author may not read their parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyParams;

impl Validator for PolicyParams {
    fn name(&self) -> &'static str {
        "PolicyParams"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let plural = match subject(review) {
            Some((GROUP, plural, Operation::Create | Operation::Update)) => plural,
            _ => "",
        };
        let policies = match plural {
            "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
                return Box::pin(check_policy(review, lookup));
            }
            "validatingadmissionpolicybindings" => {
                "admissionregistration.k8s.io/validatingadmissionpolicies"
            }
            "mutatingadmissionpolicybindings" => {
                "admissionregistration.k8s.io/mutatingadmissionpolicies"
            }
            _ => return decided(Ok(())),
        };
        Box::pin(check_binding(review, lookup, policies))
    }
}

/// The author of a policy must have the right to read all objects of its paramKind.
async fn check_policy(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let policy = review.object.as_deref();
    let Some(kind) = policy.and_then(|policy| given(policy, "paramKind")) else {
        return Ok(());
    };
    if review.old.and_then(|old| given(old, "paramKind")) == Some(kind) {
        return Ok(());
    }
    let (group, resource) = resolve(kind, lookup);
    let right = Right {
        verb: "get",
        group,
        resource: resource.as_deref().unwrap_or("*"),
        namespace: "*",
        name: "*",
        ..Right::default()
    };
    if lookup.may(review.user, right).await {
        return Ok(());
    }
    let why = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
        review.user.name,
        kind.text(&["kind"]),
        kind.text(&["apiVersion"]),
    );
    Err(refused(review, "paramKind", why))
}

/// The author of a binding must have the right to read the objects that its paramRef names.
async fn check_binding(
    review: &Review<'_>,
    lookup: &dyn Lookup,
    policies: &str,
) -> Result<(), Status> {
    let Some(binding) = review.object.as_deref() else {
        return Ok(());
    };
    let Some(reference) = given(binding, "paramRef") else {
        return Ok(());
    };
    let unchanged = |old: &Object| {
        given(old, "paramRef") == Some(reference)
            && given(old, "policyName") == given(binding, "policyName")
    };
    if review.old.is_some_and(unchanged) {
        return Ok(());
    }
    let policy_name = binding.value().text(&["spec", "policyName"]);
    let policy = lookup.get(policies, "", policy_name);
    let kind = policy
        .as_ref()
        .and_then(|policy| given(policy, "paramKind"));
    let resolved = kind.map(|kind| resolve(kind, lookup));
    // An unknown resource needs the right to all of them.
    let (group, resource) = match &resolved {
        Some((group, resource)) => (*group, resource.as_deref().unwrap_or("*")),
        None => ("*", "*"),
    };
    let name = reference.text(&["name"]);
    let verb = match name.is_empty() {
        true => "list",
        false => "get",
    };
    let right = Right {
        verb,
        group,
        resource,
        // Without a namespace, parameters of every namespace may be read.
        namespace: reference.text(&["namespace"]),
        name,
        ..Right::default()
    };
    if lookup.may(review.user, right).await {
        return Ok(());
    }
    let user = &review.user.name;
    let everything = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
    );
    let why = match (&policy, kind, &resolved) {
        (None, _, _) => format!("unable to get policy {policy_name} {everything}"),
        (Some(_), Some(kind), Some((_, None))) => format!(
            "unable to resolve paramKind {}, Kind={} {everything}",
            kind.text(&["apiVersion"]),
            kind.text(&["kind"]),
        ),
        _ => format!(
            "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
        ),
    };
    Err(refused(review, "paramRef", why))
}

/// Returns a field of the spec, unless it is missing or null.
fn given<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    let value = object.at(&["spec", field]);
    value.filter(|value| !value.is_null())
}

/// Returns the group of a paramKind and its resource, if it is served.
fn resolve<'a>(kind: &'a Value, lookup: &dyn Lookup) -> (&'a str, Option<Str>) {
    let (group, _) = kind
        .text(&["apiVersion"])
        .rsplit_once('/')
        .unwrap_or_default();
    let resource = lookup.resource(group, kind.text(&["kind"]));
    (group, resource.map(|resource| resource.plural))
}

fn refused(review: &Review<'_>, field: &str, why: String) -> Status {
    let error = FieldError::forbidden(FieldPath::new("spec").child(field), why);
    Status::invalid(review.kind.group_kind(), review.name, &[error])
}
