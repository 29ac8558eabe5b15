//! The default roles and bindings: created at the start, and repaired when something of them is missing.
//!
//! Runs before the server listens. An object that has all it should have costs a comparison and no write.

use crate::Client;
use bareboat_api::{Status, Value, value};
use bareboat_rbac::defaults::{self, Repair, Set};
use futures_util::StreamExt as _;

const GROUP: &str = "rbac.authorization.k8s.io";
/// How many objects are written at once. They share commits.
const AT_ONCE: usize = 64;

/// Creates and repairs the default roles and bindings, if the server serves roles.
pub(crate) async fn run(client: &Client) {
    let table = client.server().catalog().table();
    let serves = |group: &str, plural: &str| table.find(group, plural).is_some();
    if !serves(GROUP, "clusterroles") {
        return;
    }
    // A server without pods has no nodes, and none of the controllers that Kubernetes has roles for.
    let set = if serves("", "pods") {
        Set::Full
    } else {
        Set::Bare
    };
    let objects = defaults::objects(set, &serves);
    futures_util::stream::iter(&objects)
        .for_each_concurrent(AT_ONCE, |object| async move {
            if let Err(status) = bring_up_to_date(client, object).await {
                let name = text(object, &["metadata", "name"]);
                tracing::error!(name, %status, "a default role or binding could not be written");
            }
        })
        .await;
}

async fn bring_up_to_date(client: &Client, default: &Value) -> Result<(), Status> {
    let plural = match text(default, &["kind"]) {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        "ClusterRoleBinding" => "clusterrolebindings",
        _ => "rolebindings",
    };
    let (namespace, name) = (
        text(default, &["metadata", "namespace"]),
        text(default, &["metadata", "name"]),
    );
    let (key, collection) = match namespace {
        "" => (name.to_owned(), format!("/apis/{GROUP}/v1/{plural}")),
        _ => (
            format!("{namespace}/{name}"),
            format!("/apis/{GROUP}/v1/namespaces/{namespace}/{plural}"),
        ),
    };
    let path = crate::kinds::join(&collection, name);
    let store = client.server().store();
    let Some(entry) = store.resource(&format!("{GROUP}/{plural}")).get(&key) else {
        return create(client, &collection, default).await;
    };
    let stored = bareboat_wire::json::parse(entry.json()).map_err(Status::internal)?;
    match defaults::repair(&stored.value, default) {
        Repair::Nothing => Ok(()),
        Repair::Update(wanted) => client.update(&path, &wanted).await.map(|_| ()),
        Repair::Recreate => {
            let options = value!({"preconditions": {"uid": (&*entry.facets().uid)}});
            client.remove(&path, &options).await?;
            create(client, &collection, default).await
        }
    }
}

async fn create(client: &Client, collection: &str, object: &Value) -> Result<(), Status> {
    match client.create(collection, object).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or("")
}
