//! What a create costs more beside 100 webhook and 100 policy configurations that do not match it. Batches with and
//! without them take turns on one server.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::policies::{BINDINGS, COLLECTION, binding, policy};
use super::webhooks::{configuration, configurations};
use crate::args::Side;
use crate::bench::{Bench, items, namespace};
use crate::load::Load;
use crate::rows::{Measuring, name};

const CALM: &str = "bench-calm";

/// Webhook configurations, and policies with a binding each.
const CONFIGURATIONS: usize = 100;

/// Objects of one batch.
const BATCH: usize = 2_000;

/// Compares creation with and without configurations.
pub(crate) fn unmatched<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        if bench.server.side == Side::Theirs {
            return Ok(());
        }
        bench.post("/api/v1/namespaces", namespace(CALM)).await?;
        // Not counted: the first batch compiles, and fills caches.
        batch(bench).await?;
        let rounds = if bench.args.quick { 5 } else { 25 };
        let (mut without, mut more) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Each of the two is first in every other round, because each batch finds a longer history.
            let (plain, beside);
            if round % 2 == 0 {
                plain = batch(bench).await?;
                beside = batch_beside(bench).await?;
            } else {
                beside = batch_beside(bench).await?;
                plain = batch(bench).await?;
            }
            without.push(plain);
            more.push((beside / plain - 1.0) * 100.0);
        }
        bench.figures.set("unmatched", median(more));
        bench.figures.set("unmatched.cpu", median(without));
        Ok(())
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Creates objects and returns microseconds of processor time for each. Then deletes them.
async fn batch(bench: &Bench<'_>) -> Result<f64> {
    bench.settle().await?;
    let collection = items(CALM);
    let request = |at: usize| bench.request("POST", &collection, &bench.item.render(&name(at), at));
    let outcome = all(64, BATCH).run(&bench.server, request).await?;
    if outcome.operations < BATCH {
        bail!("{} of {BATCH} objects were created", outcome.operations);
    }
    super::remove(bench, &collection).await?;
    Ok(outcome.cpu_micros())
}

/// The same while the configurations exist.
async fn batch_beside(bench: &Bench<'_>) -> Result<f64> {
    let objects = configured();
    let create = |at: usize| {
        let (collection, object) = &objects[at];
        bench.request("POST", collection, object.to_string().as_bytes())
    };
    let created = all(4, objects.len()).run(&bench.server, create).await?;
    if created.operations < objects.len() {
        bail!("not all configurations could be created");
    }
    let measured = batch(bench).await;
    let delete = |at: usize| {
        let (collection, object) = &objects[at];
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        bench.request("DELETE", &format!("{collection}/{name}"), b"")
    };
    all(4, objects.len()).run(&bench.server, delete).await?;
    measured
}

fn all(clients: usize, operations: usize) -> Load {
    Load {
        clients,
        operations,
        limit: Duration::from_secs(60),
        buffer: 16 * 1024,
    }
}

/// Webhooks and policies for kinds of other groups. The measured requests match none of them, so no webhook is called.
fn configured() -> Vec<(String, Value)> {
    let mut objects = Vec::new();
    for at in 0..CONFIGURATIONS {
        let name = format!("calm-{at}");
        let rule = json!({
            "apiGroups": [format!("operator{at}.example")], "apiVersions": ["*"], "resources": ["items"],
            "operations": ["CREATE", "UPDATE"],
        });
        let kind = ["Mutating", "Validating"][at % 2];
        let webhook = json!({"clientConfig": {"url": "https://127.0.0.1:1/"}});
        let object = configuration(kind, &name, webhook, rule.clone());
        objects.push((configurations(&kind.to_lowercase()), object));
        objects.push((COLLECTION.to_owned(), policy(&name, rule)));
        objects.push((BINDINGS.to_owned(), binding(&name, CALM)));
    }
    objects
}
