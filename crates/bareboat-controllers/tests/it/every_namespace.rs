//! Objects that every namespace has: the default service account and `kube-root-ca.crt`.

use crate::fixture::{Fixture, configs};
use bareboat_api::value;
use bareboat_controllers::Options;

const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\n";

async fn fixture() -> Fixture {
    let options = Options {
        root_ca: Some(CERTIFICATES.to_owned()),
        ..Options::default()
    };
    Fixture::with(options, |_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_namespace_has_a_default_account_and_certificates() {
    let fixture = fixture().await;
    fixture.namespace("space").await;
    for namespace in ["default", "kube-system", "space"] {
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        fixture.until_it(&account, |_| true).await;
        let certificates = format!("{}/kube-root-ca.crt", configs(namespace));
        let right = |it: &bareboat_api::Object| {
            it.at(&["data", "ca.crt"]).and_then(|pem| pem.as_str()) == Some(CERTIFICATES)
        };
        fixture.until_it(&certificates, right).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_and_changed_objects_are_repaired() {
    let fixture = fixture().await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    fixture.until_it(account, |_| true).await;
    let uid = fixture.get(account).await.unwrap().uid().to_owned();
    fixture.delete(account, "Background").await;
    fixture.until_it(account, |it| it.uid() != uid).await;
    let certificates = format!("{}/kube-root-ca.crt", configs("default"));
    fixture.until_it(&certificates, |_| true).await;
    let patch = value!({"data": {"ca.crt": "other", "more": "x"}});
    fixture.client.merge(&certificates, &patch).await.unwrap();
    let data = value!({"ca.crt": CERTIFICATES});
    fixture
        .until_it(&certificates, |it| it.get("data") == Some(&data))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_in_a_namespace_under_deletion() {
    let fixture = fixture().await;
    fixture.namespace("space").await;
    let space = "/api/v1/namespaces/space";
    fixture
        .until_it(&format!("{space}/serviceaccounts/default"), |_| true)
        .await;
    fixture.delete(space, "Background").await;
    fixture.until_gone(space).await;
    assert!(
        !fixture
            .exists(&format!("{space}/serviceaccounts/default"))
            .await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_a_quota_refused_is_created_later() {
    let fixture = fixture().await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    fixture.until_it(account, |_| true).await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = value!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/serviceaccounts": "0"}},
    });
    fixture.create(quotas, quota).await;
    fixture.delete(account, "Background").await;
    fixture.settle().await;
    assert!(!fixture.exists(account).await);
    fixture
        .delete(&format!("{quotas}/none"), "Background")
        .await;
    fixture.until_it(account, |_| true).await;
}
