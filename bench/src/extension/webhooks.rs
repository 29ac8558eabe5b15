//! Creation under one mutating and one validating webhook.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::backend::Backend;
use super::{creation_of_items, rehearse, remove, until};
use crate::bench::{Bench, items, namespace};
use crate::rows::{Measuring, name};

const HOOKED: &str = "bench-hooked";

/// The path of a kind of webhook configurations.
pub(super) fn configurations(resource: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{resource}webhookconfigurations")
}

/// A webhook configuration with one webhook that must answer.
pub(super) fn configuration(kind: &str, name: &str, mut webhook: Value, rule: Value) -> Value {
    webhook["name"] = format!("{name}.bench.example").into();
    webhook["rules"] = json!([rule]);
    webhook["sideEffects"] = "None".into();
    webhook["admissionReviewVersions"] = json!(["v1"]);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": [webhook],
    })
}

/// Creates objects that both webhooks review.
pub(crate) fn webhooks<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench.post("/api/v1/namespaces", namespace(HOOKED)).await?;
        let backend = Backend::start(0).await?;
        let both = [("Mutating", "mutate"), ("Validating", "validate")];
        for (kind, path) in both {
            let webhook = json!({
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/{path}", backend.port),
                    "caBundle": &backend.bundle,
                },
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": HOOKED}},
            });
            let object = configuration(kind, "bench", webhook, creation_of_items());
            let collection = configurations(&kind.to_lowercase());
            bench.post(&collection, object).await?;
        }
        let measured = measure(bench, &backend).await;
        for (kind, _) in both {
            let path = format!("{}/bench", configurations(&kind.to_lowercase()));
            remove(bench, &path).await?;
        }
        measured
    })
}

async fn measure(bench: &mut Bench<'_>, backend: &Backend) -> Result<()> {
    until("both webhooks are called", async || {
        rehearse(bench, HOOKED, "none").await?;
        let asked = backend.asked().await?;
        Ok(asked.mutations > 0 && asked.validations > 0)
    })
    .await?;
    bench.settle().await?;
    let before = backend.asked().await?;
    let collection = items(HOOKED);
    let request = |at: usize| bench.request("POST", &collection, &bench.item.render(&name(at), at));
    let outcome = bench.load(64, 20_000).run(&bench.server, request).await?;
    let after = backend.asked().await?;
    let created = outcome.operations as u64;
    if after.mutations < before.mutations + created
        || after.validations < before.validations + created
    {
        bail!("{created} objects were created, but the webhooks were not called for all of them");
    }
    bench.note("webhooks", &outcome);
    Ok(())
}
