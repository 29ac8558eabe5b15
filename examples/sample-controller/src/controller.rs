//! The controller around `reconcile`: two informers fill two caches, every change names a Foo, and a queue passes the
//! named Foos to workers, each Foo to one worker at a time.

use crate::foo::Foo;
use crate::limits::Limits;
use crate::reconcile::{Context, Error, reconcile};
use futures_util::{Stream, StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::controller::{
    Action, Config, Error as QueueError, trigger_owners, trigger_self,
};
use kube::runtime::events::Recorder;
use kube::runtime::reflector::{ObjectRef, store};
use kube::runtime::{WatchStreamExt as _, applier, watcher};
use kube::{Api, Client};
use std::future::Future;
use std::sync::{Arc, Mutex};

/// The name of this controller in events and as field manager.
pub(crate) const NAME: &str = "sample-controller";

/// Number of Foos that are reconciled at once.
const WORKERS: u16 = 2;

/// Reconciles all Foos until `stop` completes; reconciliations in progress are finished.
pub(crate) async fn run(client: Client, stop: impl Future<Output = ()>) {
    let (foos, foo_writer) = store();
    let (deployments, deployment_writer) = store();
    let settings = watcher::Config::default;
    // An informer lists, then watches, and retries after a failure with a growing delay.
    let foo_changes = watcher(Api::<Foo>::all(client.clone()), settings())
        .default_backoff()
        .reflect(foo_writer)
        .applied_objects();
    // A deleted Deployment also triggers its Foo, which creates it again.
    let deployment_changes = watcher(Api::<Deployment>::all(client.clone()), settings())
        .default_backoff()
        .reflect(deployment_writer)
        .touched_objects();
    let changes = stream::select(
        trigger_self(foo_changes, ()),
        trigger_owners(deployment_changes, (), ()),
    );
    let context = Arc::new(Context {
        recorder: Recorder::new(client.clone(), NAME.into()),
        limits: Mutex::new(Limits::default()),
        deployments,
        client,
    });
    let done = applier(
        |foo, context| Box::pin(reconcile(foo, context)),
        retry,
        context,
        foos,
        Box::pin(changes).take_until(Box::pin(stop)),
        Config::default().concurrency(WORKERS),
    );
    report(done).await;
}

/// Returns when to retry: the more failures in a row, the later.
fn retry(foo: Arc<Foo>, _: &Error, context: Arc<Context>) -> Action {
    let mut limits = context
        .limits
        .lock()
        .expect("no panic while the limits are locked");
    Action::requeue(limits.failed(ObjectRef::from_obj(&*foo)))
}

async fn report(
    done: impl Stream<Item = Result<(ObjectRef<Foo>, Action), QueueError<Error, watcher::Error>>>,
) {
    let mut done = std::pin::pin!(done);
    while let Some(outcome) = done.next().await {
        match outcome {
            Ok((foo, _)) => tracing::info!(%foo, "in order"),
            // It was deleted while it waited in the queue; the garbage collector deletes its Deployment.
            Err(QueueError::ObjectNotFound(foo)) => tracing::debug!(%foo, "gone"),
            Err(QueueError::ReconcilerFailed(error, foo)) => {
                tracing::warn!(%foo, %error, "to be tried again")
            }
            Err(error) => tracing::warn!(%error, "the watch is interrupted"),
        }
    }
}
