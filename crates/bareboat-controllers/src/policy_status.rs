//! The status of ValidatingAdmissionPolicies: whether their expressions fit the types of the objects they validate.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{join, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::facts::{MessageRef, Type};
use bareboat_api::{Object, Status, Value, value};
use bareboat_cel::DeclType;
use bareboat_policy::{
    CheckedKind, ExpressionWarning, MAX_CHECKED_KINDS, check_types, declared_type, rules_to_check,
};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::{Backing, Table};
use bareboat_storage::{Event, EventKind, Resource, Store};
use std::sync::Arc;

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
/// The account of Kubernetes' controller.
const ACCOUNT: &str = "validatingadmissionpolicy-status-controller";
/// The field manager of Kubernetes' controller.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Notices new and changed policies.
pub(crate) struct PolicyListener {
    queue: Arc<Queue<Arc<str>>>,
}

impl Listener for PolicyListener {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(POLICIES).snapshot().range("", None) {
            self.queue.add(entry.key().into());
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == POLICIES && event.kind != EventKind::Deleted {
            self.queue.add(event.key().into());
        }
    }
}

/// Checks policies. Keys are names of policies.
pub(crate) struct PolicyChecker {
    client: Client,
}

impl Controller for PolicyChecker {
    const NAME: &'static str = "policy-status";
    const MANAGER: &'static str = MANAGER;
    const PARALLEL: usize = 2;
    type Key = Arc<str>;
    type Listener = PolicyListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes(ACCOUNT)
    }

    fn has_work(server: &Server, _: &crate::Options) -> bool {
        let table = server.catalog().table();
        table.find(GROUP, "validatingadmissionpolicies").is_some()
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (PolicyChecker, PolicyListener) {
        let client = context.client.clone();
        (PolicyChecker { client }, PolicyListener { queue })
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        match self.describe(&name).await {
            Ok(()) => Verdict::Done,
            // It was deleted or changed meanwhile, and an event follows.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(policy = %name, %status, "cannot write the status of a policy");
                Verdict::Retry
            }
        }
    }
}

impl PolicyChecker {
    /// Checks a policy that changed since it was checked last, and writes what was found.
    async fn describe(&self, name: &str) -> Result<(), Status> {
        let server = self.client.server();
        let Some(entry) = server.store().resource(POLICIES).get(name) else {
            return Ok(());
        };
        let policy = read(&entry)?;
        let generation = policy.generation();
        let observed = policy.at(&["status", "observedGeneration"]);
        if observed.and_then(Value::as_i64).unwrap_or(0) >= generation {
            return Ok(());
        }
        let (kinds, params) = types_of(&policy, &server.catalog().table());
        // Checking may take long, so it does not run on a worker.
        let checked = tokio::task::spawn_blocking(move || check_types(&policy, kinds, params));
        let warnings = checked.await.map_err(Status::failed)?;
        let status = value!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": (name)},
            "status": {
                "observedGeneration": (Value::Int(generation)),
                "typeChecking": (type_checking(warnings)),
            },
        });
        let path = format!("{}/status", join(PATH, name));
        self.client.apply(&path, MANAGER, &status).await
    }
}

fn type_checking(warnings: Vec<ExpressionWarning>) -> Value {
    if warnings.is_empty() {
        return Value::object();
    }
    let warnings: Value = warnings
        .into_iter()
        .map(|warning| {
            let (field, text) = (warning.field_ref, warning.warning);
            value!({"fieldRef": (field), "warning": (text)})
        })
        .collect();
    value!({"expressionWarnings": (warnings)})
}

/// Returns the types of the kinds that a policy matches, and of its parameters.
fn types_of(policy: &Object, table: &Table) -> (Vec<CheckedKind>, Option<Arc<DeclType>>) {
    let metadata = metadata(table);
    let mut kinds = Vec::new();
    for (group, version, resource) in rules_to_check(policy) {
        let backing = table.find(&group, &resource);
        let Some((kind, decl)) = backing.and_then(|found| declare(found, &version, metadata))
        else {
            continue;
        };
        kinds.push(CheckedKind {
            gvk: (group, version, kind.into()),
            decl,
        });
        if kinds.len() == MAX_CHECKED_KINDS {
            break;
        }
    }
    let text = |member: &str| policy.at(&["spec", "paramKind", member])?.as_str();
    let params = text("kind")
        .zip(text("apiVersion"))
        .and_then(|(kind, api)| {
            let (group, version) = api.split_once('/').unwrap_or(("", api));
            let found = table.find_kind(group, kind)?;
            declare(found, version, metadata).map(|(_, decl)| decl)
        });
    (kinds, params)
}

/// Returns the kind, and the type of its objects in a version.
fn declare<'t>(
    backing: &'t Backing,
    version: &str,
    metadata: Option<MessageRef>,
) -> Option<(&'t str, Arc<DeclType>)> {
    let kind = backing.kind();
    let mut versions = kind.versions.iter();
    let version = versions.find(|known| known.name == version && known.served)?;
    let name = kind.names.kind.as_str();
    let decl = declared_type(name, &version.shape.published_schema(), metadata)?;
    Some((name, decl))
}

/// Returns the message of metadata, which all built-in kinds share.
fn metadata(table: &Table) -> Option<MessageRef> {
    let policies = table.find(GROUP, "validatingadmissionpolicies")?;
    let message = policies.kind().versions.first()?.shape.message()?;
    match message.get().field("metadata")?.ty {
        Type::Message(metadata) => Some(metadata),
        _ => None,
    }
}
