//! An operator: its kinds, and the controllers that keep their objects.

pub mod crew;
pub mod serve;
pub mod yacht;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use std::time::Duration;
use tokio::task::JoinSet;

/// The name of this operator as field manager.
pub const NAME: &str = "yachts";

/// The definitions of all kinds.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![yacht::definition(), crew::definition()]
}

/// Creates or updates the definitions, and waits until the server serves the kinds.
pub async fn install(client: &Client) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions() {
        let name = definition.name_any();
        let apply = PatchParams::apply(NAME).force();
        api.patch(&name, &apply, &Patch::Apply(&definition)).await?;
        let established = await_condition(api.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), established).await??;
    }
    Ok(())
}

/// Runs all controllers until SIGINT or SIGTERM; work in progress is finished.
pub async fn run(client: Client) {
    let mut controllers = JoinSet::new();
    controllers.spawn(yacht::reconcile::run(client.clone()));
    controllers.spawn(crew::reconcile::run(client.clone()));
    controllers.join_all().await;
}
