//! Deletes the objects that other API servers have in a namespace.

use super::conditions::Findings;
use crate::Client;
use crate::kinds::join;
use crate::remote::{self, AT_ONCE, RemoteResource};
use bareboat_api::{Status, Value, value};
use futures_util::stream::{self, StreamExt as _};
use http::Method;
use std::collections::BTreeMap;

/// Deletes what other servers have in a namespace, and counts what is left. Versions that are not available are reported.
pub(super) async fn empty(client: &Client, namespace: &str, findings: &mut Findings) {
    let (resources, unavailable) = remote::removable(client.server());
    findings.undiscovered = unavailable;
    let emptied = resources.into_iter().map(|resource| async move {
        let collection = resource.collection(Some(namespace));
        let emptied = empty_one(client, &collection, &resource).await;
        (resource, emptied)
    });
    // A slow server delays only a few others.
    let mut emptied = stream::iter(emptied).buffer_unordered(AT_ONCE);
    while let Some((resource, (left, outcome))) = emptied.next().await {
        if left.objects > 0 {
            *findings.remaining.entry(resource.name()).or_default() += left.objects;
            findings.remote_left += left.objects;
        }
        for (finalizer, count) in left.finalizers {
            *findings.finalizers.entry(finalizer).or_default() += count;
        }
        if let Err(status) = outcome {
            let text = format!("{}: {}", resource.name(), status.message);
            findings.failures.push(text);
        }
    }
}

/// The objects of one resource that are left in a namespace.
#[derive(Default)]
struct Left {
    objects: usize,
    /// How many of them wait for a finalizer, by finalizer.
    finalizers: BTreeMap<String, usize>,
}

async fn empty_one(
    client: &Client,
    collection: &str,
    resource: &RemoteResource,
) -> (Left, Result<(), Status>) {
    let options = value!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
    });
    let deleted = match resource.has("deletecollection") {
        // Without a list before, which may be too large to be read.
        true => {
            let deleted = client.remote(Method::DELETE, collection, Some(&options));
            deleted.await.map(|_| ())
        }
        false => delete_each(client, collection, &options).await,
    };
    let listed = remote::list(client, collection, |metadata| Some(metadata.finalizers.0));
    let objects = match listed.await {
        Ok(objects) => objects,
        Err(status) => return (Left::default(), Err(status)),
    };
    let mut left = Left {
        objects: objects.len(),
        ..Left::default()
    };
    for finalizer in objects.into_iter().flatten() {
        *left.finalizers.entry(finalizer.into()).or_default() += 1;
    }
    // A deletion that failed matters only if objects are left.
    let outcome = if left.objects == 0 { Ok(()) } else { deleted };
    (left, outcome)
}

async fn delete_each(client: &Client, collection: &str, options: &Value) -> Result<(), Status> {
    let names = remote::list(client, collection, |metadata| {
        let is_left = metadata.deletion_timestamp.is_none() && !metadata.name.is_empty();
        is_left.then_some(metadata.name)
    });
    for name in names.await? {
        let path = join(collection, &name);
        match client.remote(Method::DELETE, &path, Some(options)).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(())
}
