//! The merged kind. A pod `web` of the source `east` is called `web.east` here.

use crate::follow::{Health, Origin, Source};
use bareboat::TypedKindError;
use bareboat::api::kind::{BoxFuture, ReadFilter, Reader, Visibility};
use bareboat::prelude::*;
use std::sync::Arc;

/// The group of the merged kind.
pub(crate) const GROUP: &str = "fleet.example.com";
/// The label with the name of the source.
pub(crate) const SOURCE: &str = "fleet.example.com/source";
/// The annotation with the resourceVersion at the source, for conditional writes.
pub(crate) const VERSION: &str = "fleet.example.com/resource-version";

/// Returns the kind: any pod, with columns for what matters in a fleet.
pub(crate) fn kind(sources: Arc<[Source]>, health: Health) -> Result<Kind, TypedKindError> {
    TypedKind::new(GROUP, "pods", "Pod")
        .untyped_version("v1")
        .column("Source", r".metadata.labels.fleet\.example\.com/source")
        .column("Image", ".spec.containers[0].image")
        .reader(Warnings(health))
        .on_get(move |pod| with_origin(sources.clone(), pod))
        .build()
}

/// Shows everything, and warns of sources that do not answer.
struct Warnings(Health);

impl ReadFilter for Warnings {
    fn visibility<'a>(&'a self, reader: &'a Reader<'a>) -> BoxFuture<'a, Visibility> {
        for (source, why) in self.0.lock().iter().flat_map(|failures| failures.iter()) {
            let text = "does not answer, its pods may be old";
            reader.warn(format!("the source {source} {text}: {why}"));
        }
        Box::pin(std::future::ready(Visibility::All))
    }
}

/// Adds what is computed when a pod is read: whether its source answers now.
async fn with_origin(sources: Arc<[Source]>, mut pod: Object) -> Result<Object, Status> {
    let (_, name) = pod.name().rsplit_once('.').unwrap_or_default();
    let source = sources.iter().find(|source| &*source.name == name);
    let answers = match source.map(|source| &source.origin) {
        Some(Origin::ApiServer(client)) => client.apiserver_version().await.is_ok(),
        _ => false,
    };
    let fleet = value!({"source": name, "answers": answers});
    pod.map_mut().object_mut("status").insert("fleet", fleet);
    Ok(pod)
}
