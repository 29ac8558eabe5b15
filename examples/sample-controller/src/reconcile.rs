//! Reconciles one Foo: reads the present state, writes what is missing, and records an event. It can be interrupted
//! anywhere and started again.

use crate::controller::NAME;
use crate::foo::{Foo, FooStatus};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;
use std::sync::Arc;

/// What all workers share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
}

/// Why a Foo could not be reconciled; it is retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A Deployment of another owner has the name.
    #[error("Resource {0:?} already exists and is not managed by Foo")]
    Taken(String),
    /// The request failed.
    #[error("the server does not do it")]
    Request(#[from] kube::Error),
}

/// Creates or updates the Deployment of a Foo, updates the Foo's status, and records an event.
pub(crate) async fn reconcile(foo: Arc<Foo>, context: Arc<Context>) -> Result<Action, Error> {
    if foo.meta().deletion_timestamp.is_some() {
        // The garbage collector deletes its Deployment: nothing to clean up here.
        return Ok(Action::await_change());
    }
    let outcome = keep(&foo, &context).await;
    let (type_, reason, note) = match &outcome {
        Ok(true) => (
            EventType::Normal,
            "Synced",
            "Foo synced successfully".to_owned(),
        ),
        Err(taken @ Error::Taken(_)) => {
            (EventType::Warning, "ErrResourceExists", taken.to_string())
        }
        Ok(false) | Err(Error::Request(_)) => return outcome.map(|_| Action::await_change()),
    };
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: "Sync".to_owned(),
        secondary: None,
    };
    let reference = foo.object_ref(&());
    context.recorder.publish(&event, &reference).await?;
    outcome.map(|_| Action::await_change())
}

/// Reconciles a Foo; returns whether anything changed.
async fn keep(foo: &Foo, context: &Context) -> Result<bool, Error> {
    let namespace = foo.namespace().unwrap_or_default();
    let deployments: Api<Deployment> = Api::namespaced(context.client.clone(), &namespace);
    let found = deployments.get_opt(&foo.spec.deployment_name).await?;
    let (deployment, written) = match found {
        // It fails if the name was taken in the meantime; the next try finds that.
        None => (deployments.create(&writes(), &wanted(foo)).await?, true),
        Some(found) if !is_controlled_by(&found, foo) => {
            return Err(Error::Taken(found.name_any()));
        }
        Some(found) if replicas_differ(&found, foo) => {
            let mut wanted = wanted(foo);
            // The precondition protects another Deployment that took the name in the meantime.
            wanted.metadata.uid = found.uid();
            let (name, wanted) = (found.name_any(), Patch::Apply(&wanted));
            (deployments.patch(&name, &applies(), &wanted).await?, true)
        }
        Some(found) => (found, false),
    };
    Ok(tell(foo, context, &deployment).await? || written)
}

/// Writes the status if it differs from the Deployment's; returns whether it was written.
async fn tell(foo: &Foo, context: &Context, deployment: &Deployment) -> Result<bool, Error> {
    let available = deployment
        .status
        .as_ref()
        .and_then(|status| status.available_replicas);
    let status = FooStatus {
        available_replicas: available.unwrap_or(0),
    };
    if foo.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    let foos: Api<Foo> =
        Api::namespaced(context.client.clone(), &foo.namespace().unwrap_or_default());
    let patch = Patch::Apply(json!({
        "apiVersion": Foo::api_version(&()), "kind": Foo::kind(&()),
        "metadata": { "uid": foo.uid() }, "status": status,
    }));
    foos.patch_status(&foo.name_any(), &applies(), &patch)
        .await?;
    Ok(true)
}

/// Returns the desired Deployment of a Foo. The owner reference makes the garbage collector delete it with the Foo.
fn wanted(foo: &Foo) -> Deployment {
    let labels = json!({ "app": "nginx", "controller": foo.name_any() });
    let deployment = json!({
        "metadata": {
            "name": foo.spec.deployment_name,
            "ownerReferences": [foo.controller_owner_ref(&())],
        },
        "spec": {
            "replicas": foo.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
            },
        },
    });
    serde_json::from_value(deployment).expect("this is a Deployment")
}

fn is_controlled_by(deployment: &Deployment, foo: &Foo) -> bool {
    let ours = |uid: &String| foo.uid().as_ref() == Some(uid);
    let mut owners = deployment.owner_references().iter();
    owners.any(|owner| owner.controller == Some(true) && ours(&owner.uid))
}

fn replicas_differ(deployment: &Deployment, foo: &Foo) -> bool {
    let has = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    foo.spec.replicas.is_some() && foo.spec.replicas != has
}

fn writes() -> PostParams {
    PostParams {
        field_manager: Some(NAME.to_owned()),
        ..PostParams::default()
    }
}

/// Forces conflicts: this controller owns the fields that it applies.
fn applies() -> PatchParams {
    PatchParams::apply(NAME).force()
}
