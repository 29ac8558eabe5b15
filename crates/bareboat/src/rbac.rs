//! RBAC for a server: connects the policy of `bareboat-rbac` to the store and the server.
//!
//! ```
//! use bareboat::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The default control plane already uses RBAC; this replaces the authorizer.
//! let server = Server::builder().control_plane().authorizer(AllowAll).build()?;
//! # Ok(()) }
//! ```

mod escalation;

use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Str, Value};
use bareboat_rbac::{Outcome, Policy, Request, Rule, Scope};
use bareboat_server::authz::{Attributes, Authorizer, Decision, UserRules};
use bareboat_server::request::info::RequestInfo;
use bareboat_server::{Revocations, ServerBuilder};
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use std::sync::Arc;

pub use escalation::EscalationCheck;

/// Authorizes requests by the roles and bindings in the store.
#[derive(Clone, Debug, Default)]
pub struct Rbac {
    policy: Arc<Policy>,
}

/// Where roles and bindings are stored.
const STORES: [&str; 4] = [
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/rolebindings",
];
/// What is stored there, in the same order.
const CONTENTS: [Content; 4] = [
    Content::ClusterRoles,
    Content::Roles,
    Content::ClusterRoleBindings,
    Content::RoleBindings,
];

impl Rbac {
    /// Creates a policy that allows nothing until it is installed.
    pub fn new() -> Rbac {
        Rbac::default()
    }

    /// Returns the index of roles and bindings that decides.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Makes this the authorizer of a server, keeps it up to date, and adds the check against privilege escalation.
    #[must_use]
    pub fn install(&self, mut builder: ServerBuilder) -> ServerBuilder {
        for (resource, content) in STORES.into_iter().zip(CONTENTS) {
            let view = View {
                policy: self.policy.clone(),
                content,
                revocations: builder.revocations().clone(),
            };
            builder = builder.observe(resource, Arc::new(view));
        }
        builder
            .validator(EscalationCheck::new(self.policy.clone()))
            .authorizer(self.clone())
    }
}

/// Converts a request for the policy.
pub(crate) fn request(info: &RequestInfo) -> Request<'_> {
    if info.is_resource {
        Request::Resource {
            verb: &info.verb,
            group: &info.group,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
        }
    } else {
        Request::Url {
            verb: &info.verb,
            path: &info.path,
        }
    }
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let decision = self
            .decide(attributes)
            .unwrap_or_else(|| Decision::from_bool(false));
        Box::pin(std::future::ready(decision))
    }

    fn decide(&self, attributes: Attributes<'_>) -> Option<Decision> {
        let request = request(attributes.info);
        Some(match self.policy.decide(attributes.user, &request) {
            Outcome::Allowed => Decision::from_bool(true),
            Outcome::Refused => Decision::from_bool(false),
            Outcome::RefusedForMissingRole => {
                Decision::NoOpinion(self.policy.explain(attributes.user, &request).reason)
            }
        })
    }

    fn explain<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let found = self
            .policy
            .explain(attributes.user, &request(attributes.info));
        let decision = match found.allowed {
            true => Decision::Allow(found.reason),
            false => Decision::NoOpinion(found.reason),
        };
        Box::pin(std::future::ready(decision))
    }

    fn rules(&self, user: &User, namespace: &str) -> Option<UserRules> {
        let held = self.policy.rules_for(user, namespace);
        let (urls, resources): (Vec<Rule>, Vec<Rule>) =
            held.rules.into_iter().partition(Rule::is_about_urls);
        let mut errors = held.missing;
        if held.is_cut {
            errors.push("the user has more rules than a review lists".to_owned());
        }
        let values = |rules: Vec<Rule>| rules.iter().map(Rule::to_value).collect();
        Some(UserRules {
            resources: values(resources),
            urls: values(urls),
            incomplete: !errors.is_empty(),
            error: errors.join(", "),
        })
    }

    fn uses_roles(&self) -> bool {
        true
    }

    fn depends_on(&self, user: &User) -> Vec<Str> {
        match user.is_in("system:masters") {
            // Members may do everything, whatever roles say.
            true => Vec::new(),
            false => STORES.map(Str::const_new).to_vec(),
        }
    }
}

/// The kind of objects in a storage resource.
#[derive(Clone, Copy)]
enum Content {
    ClusterRoles,
    Roles,
    ClusterRoleBindings,
    RoleBindings,
}

/// Updates the policy inside each commit.
struct View {
    policy: Arc<Policy>,
    content: Content,
    /// Streams are judged again when the policy changed.
    revocations: Revocations,
}

impl View {
    fn set(&self, key: &str, value: Option<&Value>) {
        let (scope, name) = match key.split_once('/') {
            Some((namespace, name)) => (Scope::Namespace(namespace), name),
            None => (Scope::Cluster, key),
        };
        match self.content {
            Content::ClusterRoles | Content::Roles => self.policy.set_role(scope, name, value),
            _ => self.policy.set_binding(scope, name, value),
        }
    }

    fn read(&self, entry: &Entry) {
        match bareboat_wire::json::parse(entry.json()) {
            Ok(parsed) => self.set(entry.key(), Some(&parsed.value)),
            // An unreadable object grants nothing.
            Err(error) => {
                tracing::error!(key = entry.key(), %error, "a stored role or binding does not parse");
                self.set(entry.key(), None);
            }
        }
    }
}

impl Observer for View {
    fn reset(&self, snapshot: &Snapshot) {
        match self.content {
            Content::ClusterRoles => self.policy.clear_roles(true),
            Content::Roles => self.policy.clear_roles(false),
            Content::ClusterRoleBindings => self.policy.clear_bindings(true),
            Content::RoleBindings => self.policy.clear_bindings(false),
        }
        for entry in snapshot.range("", None) {
            self.read(entry);
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Deleted => self.set(event.key(), None),
            _ => self.read(&event.entry),
        }
        self.revocations.everything_changed();
    }
}
