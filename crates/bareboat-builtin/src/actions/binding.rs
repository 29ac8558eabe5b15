//! The pod binding subresource: assigns a pod to a node.

use super::{conditions, pod, posted_type};
use crate::reach::Reach;
use bareboat_api::kind::{Acted, Action, BoxFuture, ObjectAccess, ObjectEdit, Posted, PostedType};
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Map, Object, Status, Value};

/// The action that binds a pod to a node, posted to the pod or to `bindings`.
pub(crate) struct Binding {
    types: [PostedType; 1],
}

impl Binding {
    pub(crate) fn new() -> Binding {
        Binding {
            types: [posted_type("", "v1", "Binding")],
        }
    }
}

impl Action for Binding {
    fn types(&self) -> &[PostedType] {
        &self.types
    }

    fn act<'a>(
        &'a self,
        posted: Posted<'a>,
        objects: &'a dyn ObjectAccess,
    ) -> BoxFuture<'a, Result<Acted, Status>> {
        Box::pin(bind(posted, objects))
    }
}

async fn bind(posted: Posted<'_>, objects: &dyn ObjectAccess) -> Result<Acted, Status> {
    let binding = &posted.object;
    let name = binding.name();
    if name.is_empty() && posted.name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    if !posted.name.is_empty() && posted.name != name {
        return Err(Status::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    validate(binding)?;
    let edit = |pod: Object| {
        check(binding, &pod)?;
        Ok(bound(binding, pod, posted.now))
    };
    let edit = ObjectEdit {
        target: pod(posted.namespace, name),
        // Upstream records no field manager here, either.
        manager: None,
        edit: &edit,
        dry_run: posted.dry_run,
    };
    objects.edit(edit).await.map(|_| Acted::Done)
}

fn validate(binding: &Object) -> Result<(), Status> {
    let mut wrong = Vec::new();
    let target = |member: &str| binding.value().text(&["target", member]);
    let place = |member: &str| FieldPath::new("target").child(member);
    if !matches!(target("kind"), "" | "Node") {
        let choices = ["Node", "<empty>"];
        wrong.push(FieldError::not_supported(
            place("kind"),
            target("kind"),
            choices,
        ));
    }
    if target("name").is_empty() {
        wrong.push(FieldError::required(place("name"), ""));
    }
    let text = match wrong.as_slice() {
        [] => return Ok(()),
        [one] => one.to_string(),
        several => {
            let texts: Vec<String> = several.iter().map(FieldError::to_string).collect();
            format!("[{}]", texts.join(", "))
        }
    };
    // Upstream returns a plain error here, which becomes a 500.
    Err(Status::new(500, "", text))
}

/// Checks that the binding's preconditions match the pod and that the pod can still be bound.
fn check(binding: &Object, pod: &Object) -> Result<(), Status> {
    let name = pod.name();
    let preconditions = [
        ("UID", binding.uid(), pod.uid()),
        (
            "ResourceVersion",
            binding.resource_version(),
            pod.resource_version(),
        ),
    ];
    for (what, wanted, found) in preconditions {
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            return Err(conflict("pods", name, why));
        }
    }
    let value = pod.value();
    let node = value.text(&["spec", "nodeName"]);
    let why = if pod.deletion_timestamp().is_some() {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        let node = bareboat_api::field::go_quote(node);
        format!("pod {name} is already assigned to node {node}")
    } else if !value.list(&["spec", "schedulingGates"]).is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(conflict("pods/binding", name, why))
}

fn conflict(resource: &str, name: &str, why: String) -> Status {
    let what = GroupResource {
        group: "",
        resource,
    };
    Status::conflict(what, name, why)
}

fn bound(binding: &Object, mut pod: Object, now: &str) -> Object {
    let node = binding.value().text(&["target", "name"]).to_owned();
    pod.map_mut()
        .object_mut("spec")
        .insert("nodeName", node.into());
    for member in ["annotations", "labels"] {
        let given = binding.meta(member).and_then(Value::as_object);
        for (key, value) in given.into_iter().flat_map(Map::iter) {
            let own = pod.metadata_mut().object_mut(member);
            own.insert(key, value.clone());
        }
    }
    let status = pod.map_mut().object_mut("status");
    status.remove("nominatedNodeName");
    let mut scheduled = Map::new();
    scheduled.insert("type", "PodScheduled".into());
    scheduled.insert("status", "True".into());
    scheduled.insert("lastProbeTime", Value::Null);
    conditions::set(&mut pod, scheduled, now);
    pod
}
