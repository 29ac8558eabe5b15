//! The work for one Crew: reads what is there, writes what is missing. It can be interrupted anywhere and started again.

use super::{Crew, CrewSpec, CrewStatus};
use crate::NAME;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Why an object could not be reconciled; it is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused a request.
    #[error("the server refused it")]
    Request(#[from] kube::Error),
}

/// Reconciles all objects until SIGINT or SIGTERM.
pub async fn run(client: Client) {
    let objects: Api<Crew> = Api::all(client.clone());
    let config_maps: Api<ConfigMap> = Api::all(client.clone());
    Controller::new(objects, watcher::Config::default())
        .owns(config_maps, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, retry, Arc::new(client))
        .for_each(|outcome| async move {
            match outcome {
                Ok((object, _)) => tracing::info!(%object, "in order"),
                Err(error) => tracing::warn!(%error, "to be tried again"),
            }
        })
        .await;
}

fn retry(_: Arc<Crew>, _: &Error, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

/// Applies the ConfigMap of an object, and writes the object's status.
async fn reconcile(object: Arc<Crew>, client: Arc<Client>) -> Result<Action, Error> {
    if object.meta().deletion_timestamp.is_some() {
        // The garbage collector deletes the ConfigMap.
        return Ok(Action::await_change());
    }
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    let apply = PatchParams::apply(NAME).force();
    let config_maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let wanted = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "ownerReferences": [object.controller_owner_ref(&())] },
        "data": { "text": text(&object.spec) },
    });
    config_maps
        .patch(&name, &apply, &Patch::Apply(wanted))
        .await?;

    let status = CrewStatus {
        ready: true,
        observed_generation: object.metadata.generation.unwrap_or_default(),
    };
    if object.status.as_ref() != Some(&status) {
        let objects: Api<Crew> = Api::namespaced((*client).clone(), &namespace);
        let patch = json!({
            "apiVersion": Crew::api_version(&()),
            "kind": Crew::kind(&()),
            "status": status,
        });
        objects
            .patch_status(&name, &apply, &Patch::Apply(patch))
            .await?;
    }
    Ok(Action::await_change())
}

/// The text of the ConfigMap.
fn text(spec: &CrewSpec) -> String {
    vec![spec.message.as_str(); usize::from(spec.times)].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_repeated() {
        let spec = CrewSpec {
            message: "ahoy".to_owned(),
            times: 2,
        };
        assert_eq!(text(&spec), "ahoy\nahoy");
    }
}
