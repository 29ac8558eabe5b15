//! Creates the default roles and bindings at the start, and repairs those that miss something. The roles that controllers
//! need are among them.
//!
//! This runs as the server itself, in the group `system:masters`: it must not depend on the roles that it repairs. It runs
//! before the server listens. An object that misses nothing costs a comparison and no write.

use crate::Client;
use crate::controller;
use crate::identity::{self, Identity};
use crate::options::{DefaultRoles, Options};
use crate::startup::Startup;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Value, value};
use bareboat_rbac::defaults::{self, Repair, Set};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use futures_util::StreamExt as _;
use std::collections::HashSet;

const GROUP: &str = "rbac.authorization.k8s.io";
/// How many objects are written at the same time. They share commits. Each costs memory while it is written.
const PARALLEL: usize = 16;

/// Creates and repairs the default roles and bindings, if the server serves roles.
pub(crate) fn run(startup: &mut Startup) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        let (server, options) = (&startup.server, &startup.options);
        let table = server.catalog().table();
        let serves = |group: &str, plural: &str| table.find(group, plural).is_some();
        if !serves(GROUP, "clusterroles") {
            return;
        }
        let defaults = match options.default_roles {
            // A server without pods has no nodes, and none of the controllers that manage workloads.
            DefaultRoles::All if serves("", "pods") => Some(Set::Full),
            DefaultRoles::All => Some(Set::Bare),
            DefaultRoles::ControllersOnly => None,
        };
        let defaults = defaults
            .into_iter()
            .flat_map(|set| defaults::objects(set, &serves));
        let of_controllers = match server.uses_roles() {
            true => roles_of_controllers(server, options, &table),
            false => Vec::new(),
        };
        let client = Client::new(server.clone()).named("kube-apiserver");
        let mut done = HashSet::new();
        // Made one after the other: a server does not hold all of them at once.
        let wanted = defaults
            .chain(of_controllers)
            .filter(move |object| done.insert(path(object)));
        futures_util::stream::iter(wanted)
            .for_each_concurrent(PARALLEL, |object| create_or_repair(&client, object))
            .await;
    })
}

/// The roles and bindings of the controllers that this server runs.
fn roles_of_controllers(server: &Server, options: &Options, table: &Table) -> Vec<Value> {
    let on = controller::ALL
        .iter()
        .filter(|entry| entry.is_on(server, options));
    let identities: Vec<Identity> = on.filter_map(|entry| entry.identity(table)).collect();
    identity::roles(&identities)
}

async fn create_or_repair(client: &Client, default: Value) {
    if let Err(status) = try_create_or_repair(client, &default).await {
        let name = text(&default, &["metadata", "name"]);
        tracing::error!(name, %status, "cannot write a default role or binding");
    }
}

async fn try_create_or_repair(client: &Client, default: &Value) -> Result<(), Status> {
    let collection = collection(default);
    let path = path(default);
    let (namespace, name) = place(default);
    let key = match namespace {
        "" => name.to_owned(),
        _ => format!("{namespace}/{name}"),
    };
    let store = client.server().store();
    let resource = store.resource(&format!("{GROUP}/{}", plural(default)));
    let Some(entry) = resource.get(&key) else {
        return client.ensure(&collection, default).await;
    };
    let stored = crate::kinds::read(&entry)?;
    match defaults::repair(stored.value(), default) {
        Repair::Nothing => Ok(()),
        Repair::Update(wanted) => client.update(&path, &wanted).await.map(|_| ()),
        Repair::Recreate => {
            let options = value!({"preconditions": {"uid": (&*entry.facets().uid)}});
            client.remove(&path, &options).await?;
            client.ensure(&collection, default).await
        }
    }
}

fn plural(object: &Value) -> &'static str {
    match text(object, &["kind"]) {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        "ClusterRoleBinding" => "clusterrolebindings",
        _ => "rolebindings",
    }
}

fn place(object: &Value) -> (&str, &str) {
    (
        text(object, &["metadata", "namespace"]),
        text(object, &["metadata", "name"]),
    )
}

fn collection(object: &Value) -> String {
    let plural = plural(object);
    match place(object).0 {
        "" => format!("/apis/{GROUP}/v1/{plural}"),
        namespace => format!("/apis/{GROUP}/v1/namespaces/{namespace}/{plural}"),
    }
}

fn path(object: &Value) -> String {
    crate::kinds::join(&collection(object), place(object).1)
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or("")
}
