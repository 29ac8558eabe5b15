//! The controller around `reconcile`: defines the kind, then follows Foos and their Deployments. kube's `Controller` has the
//! informers, and a queue that passes each Foo to one worker at a time.

use crate::foo::Foo;
use crate::reconcile::{Context, Error, reconcile};
use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller, Error as QueueError};
use kube::runtime::events::Recorder;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResourceExt as _};
use std::sync::Arc;
use std::time::Duration;

/// The name of this controller in events and as field manager.
pub(crate) const NAME: &str = "sample-controller";
/// Number of Foos that are reconciled at once.
const WORKERS: u16 = 2;
/// When a Foo is tried again after an error.
const RETRY: Duration = Duration::from_secs(2);

/// Defines the kind and reconciles its objects until SIGINT or SIGTERM; reconciliations in progress are finished.
pub(crate) async fn run(client: Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let (name, apply) = (Foo::crd_name(), PatchParams::apply(NAME).force());
    definitions
        .patch(name, &apply, &Patch::Apply(Foo::crd()))
        .await?;
    await_condition(definitions, name, conditions::is_crd_established()).await?;
    println!("reconciling {name}");

    let settings = watcher::Config::default;
    let retry = |_: Arc<Foo>, _: &Error, _| Action::requeue(RETRY);
    let context = Arc::new(Context {
        recorder: Recorder::new(client.clone(), NAME.into()),
        client: client.clone(),
    });
    Controller::new(Api::<Foo>::all(client.clone()), settings())
        // A change of a Deployment, also its deletion, is a reason to look at the Foo that owns it.
        .owns(Api::<Deployment>::all(client), settings())
        .with_config(Config::default().concurrency(WORKERS))
        .shutdown_on_signal()
        .run(reconcile, retry, context)
        .for_each(async |outcome| match outcome {
            Ok((foo, _)) => tracing::info!(%foo, "in order"),
            // It was deleted while it waited in the queue; the garbage collector deletes its Deployment.
            Err(QueueError::ObjectNotFound(foo)) => tracing::debug!(%foo, "gone"),
            Err(error) => tracing::warn!(%error, "to be tried again"),
        })
        .await;
    Ok(())
}
