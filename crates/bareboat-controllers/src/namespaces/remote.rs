//! Deletes the objects that other API servers have in a namespace.

use super::conditions::Findings;
use crate::Client;
use crate::kinds::join;
use crate::remote::{self, RemoteResource};
use bareboat_api::{Status, Value, value};
use http::Method;

/// Deletes what other servers have in a namespace, and counts what is left. Versions that are not available are reported.
pub(super) async fn empty(client: &Client, namespace: &str, findings: &mut Findings) {
    let (resources, unavailable) = remote::removable(client.server());
    findings.undiscovered = unavailable;
    for resource in resources {
        if let Err(status) = empty_one(client, namespace, &resource, findings).await {
            let text = format!("{}: {}", resource.name(), status.message);
            findings.failures.push(text);
        }
    }
}

async fn empty_one(
    client: &Client,
    namespace: &str,
    resource: &RemoteResource,
    findings: &mut Findings,
) -> Result<(), Status> {
    let collection = resource.collection(Some(namespace));
    let options = value!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
    });
    let deleted = match resource.has("deletecollection") {
        // Without a list before, which may be too large to be read.
        true => {
            let deleted = client.remote(Method::DELETE, &collection, Some(&options));
            deleted.await.map(|_| ())
        }
        false => delete_each(client, &collection, &options).await,
    };
    let left = remote::list(client, &collection).await?;
    if left.is_empty() {
        return Ok(());
    }
    *findings.remaining.entry(resource.name()).or_default() += left.len();
    for object in &left {
        let finalizers = object.at(&["metadata", "finalizers"]);
        let finalizers = finalizers.and_then(Value::as_array).unwrap_or(&[]);
        for finalizer in finalizers.iter().filter_map(Value::as_str) {
            *findings.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    findings.remote_left += left.len();
    // A deletion that failed matters only if objects are left.
    deleted
}

async fn delete_each(client: &Client, collection: &str, options: &Value) -> Result<(), Status> {
    let objects = remote::list(client, collection).await?;
    for object in objects.iter().filter(|object| !is_deleting(object)) {
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str);
        let path = join(collection, name.unwrap_or(""));
        match client.remote(Method::DELETE, &path, Some(options)).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

fn is_deleting(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some()
}
