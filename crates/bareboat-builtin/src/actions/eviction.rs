//! The pod eviction subresource: deletes a pod if its PodDisruptionBudget allows it.
//!
//! A controller maintains the budget's status. An eviction decrements `disruptionsAllowed` with compare-and-swap, so no
//! two evictions use the same allowance.

use super::{conditions, pod, posted_type};
use crate::reach::Reach;
use bareboat_api::kind::{
    Acted, Action, BoxFuture, ObjectAccess, ObjectEdit, ObjectRef, Posted, PostedType,
};
use bareboat_api::labels::Selector;
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Map, Object, Status, Value, value};

const BUDGETS: (&str, &str) = ("policy", "poddisruptionbudgets");
/// Field manager and subresource recorded when an eviction changes a budget.
const MANAGER: (&str, &str) = ("kube-apiserver", "status");
/// Maximum number of evictions that the disruption controller has not processed yet.
const MOST_UNCONFIRMED: usize = 2000;
/// Number of retries when the pod changes during the eviction.
const TRIES: usize = 20;

const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const SEVERAL: &str = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// The eviction action.
pub(crate) struct Eviction {
    types: [PostedType; 2],
}

impl Eviction {
    pub(crate) fn new() -> Eviction {
        Eviction {
            types: ["v1", "v1beta1"].map(|version| posted_type("policy", version, "Eviction")),
        }
    }
}

impl Action for Eviction {
    fn types(&self) -> &[PostedType] {
        &self.types
    }

    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        objects: &'a dyn ObjectAccess,
    ) -> BoxFuture<'a, Result<Acted, Status>> {
        Box::pin(evict(posted, objects))
    }
}

async fn evict(posted: Posted<'_>, objects: &dyn ObjectAccess) -> Result<Acted, Status> {
    if posted.object.name() != posted.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let wish = Wish::read(&posted)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let found = objects.get(pod(posted.namespace, posted.name));
        let found = found.ok_or_else(|| not_found(posted.name))?;
        let budget = match is_beyond_budgets(&found) {
            true => None,
            false => budget_of(objects, &found)?,
        };
        let guard = match &budget {
            // A pod that starts running now must not be deleted if a budget begins to count it.
            None if is_beyond_budgets(&found) && is_pending(&found) => Guard::Version,
            None => Guard::Nothing,
            Some(budget) if may_go_unhealthy(budget, &found) => Guard::Budget,
            Some(budget) => {
                take_disruption(objects, budget, &found, &posted, wish.dry_run).await?;
                Guard::Nothing
            }
        };
        match delete(objects, &found, &wish, guard, posted.now).await {
            Ok(()) => return Ok(Acted::Done),
            Err(status) if status.reason != "Conflict" || wish.version.is_some() => {
                return Err(status);
            }
            Err(status) => match (guard, &budget) {
                (Guard::Budget, Some(budget)) => return Err(still_processed(budget.name())),
                (Guard::Version, _) if tries < TRIES => {}
                _ => return Err(status),
            },
        }
    }
}

/// What must be unchanged when the pod is deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Only the client's own preconditions.
    Nothing,
    /// The pod's resource version; on a conflict the eviction retries.
    Version,
    /// The pod's resource version; on a conflict the client may retry.
    Budget,
}

/// The delete options of the client.
struct Wish {
    options: Map,
    uid: Option<String>,
    version: Option<String>,
    dry_run: bool,
}

impl Wish {
    fn read(posted: &Posted<'_>) -> Result<Wish, Status> {
        let given = posted
            .object
            .get("deleteOptions")
            .and_then(Value::as_object);
        let mut options = given.cloned().unwrap_or_default();
        const IGNORE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
        if options.get(IGNORE).and_then(Value::as_bool) == Some(true) {
            let place = FieldPath::new("deleteOptions").child(IGNORE);
            let why = "can not be set for pod eviction, try after removing the option";
            let what = GroupResource {
                group: "policy",
                resource: "Eviction",
            };
            let error = FieldError::invalid(place, true, why);
            return Err(Status::invalid(what, posted.name, &[error]));
        }
        let wishes_none = options
            .get("dryRun")
            .and_then(Value::as_array)
            .is_none_or(<[Value]>::is_empty);
        if wishes_none && posted.dry_run {
            options.insert("dryRun", value!(["All"]));
        }
        let precondition = |member: &str| {
            let found = given?.get("preconditions")?.get(member)?.as_str()?;
            Some(found.to_owned())
        };
        Ok(Wish {
            uid: precondition("uid").filter(|uid| !uid.is_empty()),
            version: precondition("resourceVersion"),
            dry_run: posted.dry_run || !wishes_none,
            options,
        })
    }
}

/// Marks the pod as disrupted and deletes it.
async fn delete(
    objects: &dyn ObjectAccess,
    seen: &Object,
    wish: &Wish,
    guard: Guard,
    now: &str,
) -> Result<(), Status> {
    let target = pod(seen.namespace(), seen.name());
    let mut version = match (&wish.version, guard) {
        (Some(version), _) => Some(version.clone()),
        (None, Guard::Nothing) => None,
        (None, _) => Some(seen.resource_version().to_owned()),
    };
    if !wish.dry_run {
        let edit = |mut pod: Object| {
            check(wish.uid.as_deref(), version.as_deref(), &pod)?;
            let mut target = Map::new();
            for (member, text) in [
                ("type", "DisruptionTarget"),
                ("status", "True"),
                ("reason", "EvictionByEvictionAPI"),
                ("message", "Eviction API: evicting"),
            ] {
                target.insert(member, text.into());
            }
            target.insert("lastProbeTime", Value::Null);
            conditions::set(&mut pod, target, now);
            Ok(pod)
        };
        let edit = ObjectEdit {
            target,
            manager: None,
            edit: &edit,
            dry_run: false,
        };
        let marked = objects.edit(edit).await?;
        // The condition was written by this eviction; later preconditions refer to that revision.
        version = version.map(|_| marked.resource_version().to_owned());
    }
    let mut options = wish.options.clone();
    if let Some(version) = version {
        let preconditions = options.object_mut("preconditions");
        preconditions.insert("resourceVersion", version.into());
    }
    objects.delete(target, &Value::Object(options)).await
}

fn check(uid: Option<&str>, version: Option<&str>, pod: &Object) -> Result<(), Status> {
    let what = GroupResource {
        group: "",
        resource: "Pod",
    };
    if let Some(uid) = uid.filter(|uid| *uid != pod.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            pod.uid()
        );
        return Err(Status::conflict(what, pod.name(), why));
    }
    let version = version.filter(|version| !version.is_empty());
    if let Some(version) = version.filter(|version| *version != pod.resource_version()) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            pod.resource_version()
        );
        return Err(Status::conflict(what, pod.name(), why));
    }
    Ok(())
}

fn phase(pod: &Object) -> &str {
    pod.value().text(&["status", "phase"])
}

/// Returns whether no budget counts the pod: it is pending, finished or terminating.
fn is_beyond_budgets(pod: &Object) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed" | "Pending") || pod.deletion_timestamp().is_some()
}

fn is_pending(pod: &Object) -> bool {
    phase(pod) == "Pending" && pod.deletion_timestamp().is_none()
}

/// Returns the budget that selects a pod, if any.
fn budget_of(objects: &dyn ObjectAccess, pod: &Object) -> Result<Option<Object>, Status> {
    let mut found = objects
        .list(BUDGETS.0, BUDGETS.1, pod.namespace())
        .into_iter()
        .filter(|budget| counts(budget, pod));
    let budget = found.next();
    match found.next() {
        None => Ok(budget),
        Some(_) => Err(Status::new(500, "", SEVERAL)),
    }
}

fn counts(budget: &Object, pod: &Object) -> bool {
    // A missing selector selects nothing, an empty one selects everything.
    let Some(selector) = budget.at(&["spec", "selector"]) else {
        return false;
    };
    Selector::from_object(selector).is_ok_and(|selector| {
        let labels = pod.meta("labels").and_then(Value::as_object);
        selector.matches(|key| labels.and_then(|labels| labels.get_str(key)))
    })
}

fn number(budget: &Object, member: &str) -> i64 {
    budget.value().int(&["status", member]).unwrap_or(0)
}

/// Returns whether a pod that is not ready can be evicted without using up the budget.
fn may_go_unhealthy(budget: &Object, pod: &Object) -> bool {
    let ready = conditions::find(pod, "Ready");
    if ready.is_some_and(|ready| ready.text(&["status"]) == "True") {
        return false;
    }
    let policy = budget.value().text(&["spec", "unhealthyPodEvictionPolicy"]);
    let wanted = number(budget, "desiredHealthy");
    policy == "AlwaysAllow" || (number(budget, "currentHealthy") >= wanted && wanted > 0)
}

/// Decrements the allowed disruptions of a budget, or returns why it allows none.
async fn take_disruption(
    objects: &dyn ObjectAccess,
    budget: &Object,
    pod: &Object,
    posted: &Posted<'_>,
    dry_run: bool,
) -> Result<(), Status> {
    let edit = |mut budget: Object| {
        allow(&budget)?;
        let left = number(&budget, "disruptionsAllowed") - 1;
        let generation = budget.generation();
        let status = budget.map_mut().object_mut("status");
        status.insert("disruptionsAllowed", Value::Int(left));
        let pods = status.object_mut("disruptedPods");
        pods.insert(pod.name(), posted.now.into());
        if left == 0 {
            let mut exhausted = Map::new();
            for (member, text) in [
                ("type", "DisruptionAllowed"),
                ("status", "False"),
                ("reason", "InsufficientPods"),
                ("message", ""),
            ] {
                exhausted.insert(member, text.into());
            }
            exhausted.insert("observedGeneration", Value::Int(generation));
            conditions::set(&mut budget, exhausted, posted.now);
        }
        Ok(budget)
    };
    let edit = ObjectEdit {
        target: ObjectRef {
            group: BUDGETS.0,
            resource: BUDGETS.1,
            namespace: budget.namespace(),
            name: budget.name(),
        },
        manager: Some(MANAGER),
        edit: &edit,
        dry_run,
    };
    objects.edit(edit).await.map(|_| ())
}

// Upstream: pkg/registry/core/pod/storage/eviction.go, checkAndDecrement.
fn allow(budget: &Object) -> Result<(), Status> {
    let name = budget.name();
    if number(budget, "observedGeneration") < budget.generation() {
        return Err(still_processed(name));
    }
    let forbid = |why: &str| {
        let what = GroupResource {
            group: "policy",
            resource: "poddisruptionbudget",
        };
        Err(Status::forbidden(what, name, why))
    };
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return forbid("pdb disruptions allowed is negative");
    }
    let unconfirmed = budget
        .at(&["status", "disruptedPods"])
        .and_then(Value::as_object);
    if unconfirmed.is_some_and(|pods| pods.len() > MOST_UNCONFIRMED) {
        return forbid(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed > 0 {
        return Ok(());
    }
    let (healthy, wanted) = (
        number(budget, "currentHealthy"),
        number(budget, "desiredHealthy"),
    );
    let condition = conditions::find(budget, "DisruptionAllowed").filter(|condition| {
        condition.text(&["status"]) == "False" && !condition.text(&["message"]).is_empty()
    });
    let cause = condition.map(|cause| (cause.text(&["reason"]), cause.text(&["message"])));
    let why = match cause {
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= wanted => format!(
            "The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    };
    Err(Status::too_many_requests(VIOLATION, 0).with_cause("DisruptionBudget", why, ""))
}

fn still_processed(budget: &str) -> Status {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    Status::too_many_requests(VIOLATION, 10).with_cause("DisruptionBudget", why, "")
}

fn not_found(name: &str) -> Status {
    let what = GroupResource {
        group: "",
        resource: "pods",
    };
    Status::not_found(what, name)
}
