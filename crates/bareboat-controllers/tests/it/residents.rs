//! What lives in every namespace.

use crate::world::{World, configs};
use bareboat_api::value;
use bareboat_controllers::Options;

const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\n";

async fn world() -> World {
    let options = Options {
        root_ca: Some(CERTIFICATES.to_owned()),
        ..Options::default()
    };
    World::with(options, |_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_namespace_has_an_account_and_certificates() {
    let world = world().await;
    world.namespace("space").await;
    for namespace in ["default", "kube-system", "space"] {
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        world.until_it(&account, |_| true).await;
        let certificates = format!("{}/kube-root-ca.crt", configs(namespace));
        let right = |it: &bareboat_api::Object| {
            it.at(&["data", "ca.crt"]).and_then(|pem| pem.as_str()) == Some(CERTIFICATES)
        };
        world.until_it(&certificates, right).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_or_changed_comes_back() {
    let world = world().await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    world.until_it(account, |_| true).await;
    let uid = world.get(account).await.unwrap().uid().to_owned();
    world.delete(account, "Background").await;
    world.until_it(account, |it| it.uid() != uid).await;
    let certificates = format!("{}/kube-root-ca.crt", configs("default"));
    world.until_it(&certificates, |_| true).await;
    let patch = value!({"data": {"ca.crt": "other", "more": "x"}});
    world.client.merge(&certificates, &patch).await.unwrap();
    let data = value!({"ca.crt": CERTIFICATES});
    world
        .until_it(&certificates, |it| it.get("data") == Some(&data))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_goes_gets_nothing_new() {
    let world = world().await;
    world.namespace("space").await;
    let space = "/api/v1/namespaces/space";
    world
        .until_it(&format!("{space}/serviceaccounts/default"), |_| true)
        .await;
    world.delete(space, "Background").await;
    world.until_gone(space).await;
    assert!(
        !world
            .exists(&format!("{space}/serviceaccounts/default"))
            .await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_quota_refused_comes_when_there_is_room() {
    let world = world().await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    world.until_it(account, |_| true).await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = value!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/serviceaccounts": "0"}},
    });
    world.create(quotas, quota).await;
    world.delete(account, "Background").await;
    world.settle().await;
    assert!(!world.exists(account).await);
    world.delete(&format!("{quotas}/none"), "Background").await;
    world.until_it(account, |_| true).await;
}
