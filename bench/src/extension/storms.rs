//! Storms: one user sends very many requests or opens very many streams, while another user works. Both are ordinary
//! users. Some storms wait for a backend that never answers.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::aggregation::{API_SERVICES, Service, api_service};
use super::backend::Backend;
use super::remove;
use super::webhooks::{configuration, configurations};
use crate::args::Side;
use crate::attack::{Attack, Attacker, CONVERTED, NAMESPACE, STORMS, beat, create_pulse, fill};
use crate::bench::{Bench, CRDS, namespace, say};
use crate::credentials::Access;
use crate::neighbour::account;
use crate::rows::Measuring;

/// Number of objects that watches begin with.
const OBJECTS: usize = 500;

/// Records the slowest p99 and health check beside each storm.
pub(crate) fn storms<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        if bench.server.side == Side::Theirs {
            return Ok(());
        }
        let backend = Backend::start(1).await?;
        let service = Service::create(bench).await?;
        prepare(bench, &backend).await?;
        let folder = tempfile::tempdir()?;
        let noisy = account(bench, folder.path(), "stormy").await?;
        let calm = Access::from_kubeconfig(&account(bench, folder.path(), "still").await?)?;
        let measured = measure(bench, &noisy, &calm).await;
        remove(bench, &format!("{}/storms", configurations("validating"))).await?;
        remove(
            bench,
            &format!("{API_SERVICES}/v1.{}", super::backend::group(0)),
        )
        .await?;
        service.delete(bench).await?;
        measured
    })
}

/// Creates what storms read, and what makes them wait.
async fn prepare(bench: &mut Bench<'_>, backend: &Backend) -> Result<()> {
    bench
        .post("/api/v1/namespaces", namespace(NAMESPACE))
        .await?;
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    fill(bench, &maps, bench.args.scaled(OBJECTS), 200).await?;
    create_pulse(bench).await?;
    let hangs = json!({
        "url": format!("https://127.0.0.1:{}/hang", backend.port), "caBundle": &backend.bundle,
    });
    let webhook = json!({
        "clientConfig": &hangs, "timeoutSeconds": 30,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
    });
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]});
    let object = configuration("Validating", "storms", webhook, rule);
    bench.post(&configurations("validating"), object).await?;
    bench.post(CRDS, converted(hangs)).await?;
    let one = json!({"apiVersion": "attack.example/v1", "kind": "Converted", "metadata": {"name": "one"}}).to_string();
    let collection = format!("/apis/attack.example/v1/{CONVERTED}");
    super::until("an object of two versions is stored", async || {
        let answer = bench.ask("POST", &collection, one.as_bytes()).await?;
        Ok([201, 409].contains(&answer.status))
    })
    .await?;
    bench
        .post(API_SERVICES, api_service(0, backend, backend.port))
        .await?;
    let thing = format!(
        "/apis/{}/v1/namespaces/default/things/thing",
        super::backend::group(0)
    );
    super::until("the other server is available", async || {
        Ok(bench.ask("GET", &thing, b"").await?.status == 200)
    })
    .await
}

async fn measure(bench: &mut Bench<'_>, noisy: &Path, calm: &Access) -> Result<()> {
    bench.settle().await?;
    let span = Duration::from_secs(if bench.args.quick { 2 } else { 6 });
    let (mut p99, mut health) = (Duration::ZERO, Duration::ZERO);
    let chosen = &bench.args.attacks;
    let wanted = |attack: &&Attack| chosen.is_empty() || chosen.contains(attack);
    for storm in STORMS.iter().filter(wanted) {
        let quiet = beat(calm, span).await?;
        let attacker = Attacker::start(*storm, noisy)?;
        // The storm must have all its connections before the other user is measured.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let beside = beat(calm, span).await;
        attacker.end()?;
        let beside = beside?;
        say(
            bench.server.side,
            &format!(
                "storm {storm:?}: p99 {:?} instead of {:?}, slowest health {:?}",
                beside.p99, quiet.p99, beside.health
            ),
        );
        p99 = p99.max(beside.p99);
        health = health.max(beside.health);
        bench.settle().await?;
    }
    bench.figures.set("storm.p99", p99.as_secs_f64() * 1e3);
    bench
        .figures
        .set("storm.health", health.as_secs_f64() * 1e3);
    Ok(())
}

/// A definition with two versions and a converter.
fn converted(client: serde_json::Value) -> serde_json::Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{CONVERTED}.attack.example")},
        "spec": {
            "group": "attack.example", "scope": "Cluster",
            "names": {"plural": CONVERTED, "singular": "converted", "kind": "Converted"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        },
    })
}
