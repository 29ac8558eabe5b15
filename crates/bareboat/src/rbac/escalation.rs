//! Checks writes of roles and bindings: users cannot grant permissions they do not have.
//!
//! It runs as the last validator, on the object that will be stored, so every kind of write is covered.

use bareboat_api::admission::{Lookup, Operation, Review, Right, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::status::GroupResource;
use bareboat_api::{Object, Status, Str, Value};
use bareboat_rbac::{Policy, Rule, Scope};
use std::sync::Arc;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Rejects roles and bindings that grant more than the user has.
#[derive(Debug)]
pub struct EscalationCheck {
    policy: Arc<Policy>,
}

impl EscalationCheck {
    /// Creates a check against a policy.
    pub fn new(policy: Arc<Policy>) -> EscalationCheck {
        EscalationCheck { policy }
    }

    async fn check(&self, review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
        let resource = review.kind.names.plural.as_str();
        let writes = matches!(review.operation, Operation::Create | Operation::Update);
        let (Some(object), true) = (review.object.as_deref(), writes) else {
            return Ok(());
        };
        if review.user.is_in("system:masters")
            || review.old.is_some_and(|old| is_clean_up(object, old))
        {
            return Ok(());
        }
        match resource {
            "roles" | "clusterroles" => self.check_role(review, object, lookup).await,
            _ => self.check_binding(review, object, lookup).await,
        }
    }

    async fn check_role(
        &self,
        review: &Review<'_>,
        role: &Object,
        lookup: &dyn Lookup,
    ) -> Result<(), Status> {
        let resource = review.kind.names.plural.as_str();
        let escalate = Right {
            verb: "escalate",
            group: GROUP,
            resource,
            namespace: review.namespace,
            name: match review.operation {
                // The permission is checked for the collection, as the request was.
                Operation::Create => "",
                _ => review.name,
            },
            ..Right::default()
        };
        if lookup.may(review.user, escalate).await {
            return Ok(());
        }
        let refuse = |why: &str| Status::forbidden(resource_of(review), &name_of(review), why);
        let scope = scope_of(review);
        self.policy
            .check_grant(review.user, scope, &Rule::list(role.value()))
            .map_err(|error| refuse(&error.to_string()))?;
        let aggregates = |object: &Object| {
            object
                .get("aggregationRule")
                .is_some_and(|rule| !rule.is_null())
        };
        if aggregates(role) || review.old.is_some_and(aggregates) {
            self.policy
                .check_grant(review.user, scope, &everything())
                .map_err(|_| {
                    refuse("must have cluster-admin privileges to use the aggregationRule")
                })?;
        }
        Ok(())
    }

    async fn check_binding(
        &self,
        review: &Review<'_>,
        binding: &Object,
        lookup: &dyn Lookup,
    ) -> Result<(), Status> {
        let text = |key: &str| {
            binding
                .at(&["roleRef", key])
                .and_then(Value::as_str)
                .unwrap_or("")
        };
        let cluster = text("kind") == "ClusterRole";
        let resource = if cluster { "clusterroles" } else { "roles" };
        let bind = Right {
            verb: "bind",
            group: text("apiGroup"),
            resource,
            namespace: review.namespace,
            name: text("name"),
            ..Right::default()
        };
        if lookup.may(review.user, bind).await {
            return Ok(());
        }
        let place = match cluster {
            true => Scope::Cluster,
            false => scope_of(review),
        };
        let Some(rules) = self.policy.rules_of(place, text("name")) else {
            let what = GroupResource {
                group: GROUP,
                resource,
            };
            return Err(Status::not_found(what, text("name")));
        };
        self.policy
            .check_grant(review.user, scope_of(review), &rules)
            .map_err(|error| {
                Status::forbidden(resource_of(review), &name_of(review), error.to_string())
            })
    }
}

impl Validator for EscalationCheck {
    fn name(&self) -> &'static str {
        "RBACEscalationCheck"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if review.kind.group != GROUP {
            return decided(Ok(()));
        }
        Box::pin(self.check(review, lookup))
    }
}

fn scope_of<'a>(review: &Review<'a>) -> Scope<'a> {
    match review.namespace {
        "" => Scope::Cluster,
        namespace => Scope::Namespace(namespace),
    }
}

fn resource_of<'a>(review: &Review<'a>) -> GroupResource<'a> {
    GroupResource {
        group: GROUP,
        resource: &review.kind.names.plural,
    }
}

/// Returns the name of the object, which may have been generated.
fn name_of(review: &Review<'_>) -> Str {
    match review.object.as_deref().map(Object::name) {
        Some(name) if !name.is_empty() => Str::new(name),
        _ => Str::new(review.name),
    }
}

/// Returns the rules of an administrator.
fn everything() -> [Rule; 2] {
    let all = || vec![Str::const_new("*")];
    [
        Rule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Rule::default()
        },
        Rule {
            verbs: all(),
            non_resource_urls: all(),
            ..Rule::default()
        },
    ]
}

/// Returns whether an update only changes owners, finalizers and managed fields, as deletion does.
fn is_clean_up(new: &Object, old: &Object) -> bool {
    let rest = |object: &Object| {
        let mut value = object.value().clone();
        let map = value.make_object();
        map.object_mut("metadata").retain(|key, _| {
            !matches!(
                key,
                "ownerReferences" | "finalizers" | "managedFields" | "resourceVersion"
            )
        });
        value
    };
    rest(new) == rest(old)
}
