//! The Lease of the server's identity.

use crate::fixture::Fixture;
use bareboat_api::{Value, value};
use bareboat_controllers::Options;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LABEL: &str = "apiserver.kubernetes.io/identity";

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_this_server_is_kept_and_old_ones_go() {
    let options = Options {
        hostname: Some("harbour".to_owned()),
        ..Options::default()
    };
    let fixture = Fixture::with(options, |_| {}).await;
    let own = async || {
        let list = fixture.client.get(LEASES).await.expect("a list");
        let items = list.at(&["items"]).and_then(Value::as_array);
        let items = items.unwrap_or(&[]).to_vec();
        let is_own = |lease: &Value| {
            let name = lease.at(&["metadata", "name"]).and_then(Value::as_str);
            name.is_some_and(|name| name.starts_with("apiserver-") && name.len() == 36)
        };
        items.into_iter().find(is_own)
    };
    fixture
        .until("the Lease", async || own().await.is_some())
        .await;
    let lease = own().await.expect("it is there");
    let labels = ["metadata", "labels"];
    assert_eq!(
        lease.at(&labels),
        Some(&value!({
            "apiserver.kubernetes.io/identity": "kube-apiserver",
            "kubernetes.io/hostname": "harbour",
        }))
    );
    assert_eq!(
        lease.at(&["spec", "leaseDurationSeconds"]),
        Some(&value!(3600))
    );
    let name = lease.at(&["metadata", "name"]).and_then(Value::as_str);
    let name = name.expect("a name").to_owned();
    let mut labels = value!({});
    labels.make_object().insert(LABEL, value!("kube-apiserver"));
    let old = |name: &str, labels: Value| {
        value!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
            "spec": {"leaseDurationSeconds": 3600, "renewTime": "2020-01-01T00:00:00.000000Z"},
        })
    };
    fixture.create(LEASES, old("apiserver-gone", labels)).await;
    fixture.create(LEASES, old("of-others", value!({}))).await;
    // A deleted Lease is made again, and then old ones are looked for.
    fixture
        .delete(&format!("{LEASES}/{name}"), "Background")
        .await;
    fixture
        .until_gone(&format!("{LEASES}/apiserver-gone"))
        .await;
    fixture
        .until("the Lease", async || own().await.is_some())
        .await;
    assert!(fixture.exists(&format!("{LEASES}/of-others")).await);
}
