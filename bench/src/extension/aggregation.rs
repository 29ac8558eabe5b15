//! Aggregation: the cost of a request to an aggregated server, and of many idle APIServices.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::backend::{Backend, SERVICE, group};
use super::{remove, until};
use crate::args::Side;
use crate::bench::{Bench, NAMESPACE};
use crate::load::Load;
use crate::rows::Measuring;

pub(super) const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// APIServices of a server that answers.
const LIVE: usize = 400;

/// APIServices of a server that does not exist.
const DEAD: usize = 100;

/// The time between two probes of an APIService that is available.
const PERIOD: Duration = Duration::from_secs(30);

/// Reads an object of another server.
pub(crate) fn aggregated<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let backend = Backend::start(1).await?;
        let service = Service::create(bench).await?;
        bench
            .post(API_SERVICES, api_service(0, &backend, backend.port))
            .await?;
        let path = format!("/apis/{}/v1/namespaces/default/things/thing", group(0));
        let measured = read(bench, &path).await;
        remove(bench, &format!("{API_SERVICES}/v1.{}", group(0))).await?;
        service.delete(bench).await?;
        measured
    })
}

async fn read(bench: &mut Bench<'_>, path: &str) -> Result<()> {
    until("the other server is available", async || {
        Ok(bench.ask("GET", path, b"").await?.status == 200)
    })
    .await?;
    bench.settle().await?;
    let request = bench.request("GET", path, b"");
    let load = bench.load(64, 100_000);
    let outcome = load.run(&bench.server, |_| request.clone()).await?;
    bench.note("aggregated", &outcome);
    Ok(())
}

/// Measures an idle server with many APIServices.
pub(crate) fn api_services<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        if bench.server.side == Side::Theirs {
            return Ok(());
        }
        let backend = Backend::start(LIVE).await?;
        let service = Service::create(bench).await?;
        // No server listens on port 1 of the loopback interface.
        let object =
            |at: usize| api_service(at, &backend, if at < LIVE { backend.port } else { 1 });
        let each = Load {
            operations: LIVE + DEAD,
            limit: Duration::from_secs(60),
            ..bench.load(8, LIVE + DEAD)
        };
        let create =
            |at: usize| bench.request("POST", API_SERVICES, object(at).to_string().as_bytes());
        let created = each.run(&bench.server, create).await?;
        if created.operations < LIVE + DEAD {
            bail!("{} APIServices were created", created.operations);
        }
        let measured = idle(bench, &backend).await;
        let delete = |at: usize| {
            let path = format!("{API_SERVICES}/v1.{}", group(at));
            bench.request("DELETE", &path, b"")
        };
        each.run(&bench.server, delete).await?;
        service.delete(bench).await?;
        measured
    })
}

async fn idle(bench: &mut Bench<'_>, backend: &Backend) -> Result<()> {
    until("the state of all APIServices is known", async || {
        let list = bench.get(API_SERVICES).await?;
        let none = Vec::new();
        let (mut live, mut dead) = (0, 0);
        for item in list["items"].as_array().unwrap_or(&none) {
            if item["spec"]["service"].is_null() {
                continue;
            }
            match item["status"]["conditions"][0]["status"].as_str() {
                Some("True") => live += 1,
                Some("False") => dead += 1,
                _ => {}
            }
        }
        Ok(live == LIVE && dead == DEAD)
    })
    .await?;
    // Those of the dead server are probed more often at first.
    let (warm, span) = match bench.args.quick {
        true => (PERIOD / 3, PERIOD),
        false => (PERIOD * 3, PERIOD * 4),
    };
    tokio::time::sleep(warm).await;
    let (asked, begun, before) = (backend.asked().await?, Instant::now(), bench.server.cpu()?);
    tokio::time::sleep(span).await;
    let (used, elapsed) = (bench.server.cpu()?.since(before), begun.elapsed());
    let after = backend.asked().await?;
    let share = used.as_secs_f64() / elapsed.as_secs_f64();
    let periods = elapsed.as_secs_f64() / PERIOD.as_secs_f64();
    let probes = (after.probes - asked.probes) as f64 / LIVE as f64 / periods;
    let connections = after.connections - asked.connections;
    bench.figures.set("apiservices", share * 100.0);
    bench.figures.set("apiservices.probes", probes);
    bench
        .figures
        .set("apiservices.connections", connections as f64);
    Ok(())
}

/// The Service of the backend: a name of this machine, because endpoints may not be on the loopback interface.
pub(super) struct Service;

impl Service {
    pub(super) async fn create(bench: &Bench<'_>) -> Result<Self> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        });
        let collection = format!("/api/v1/namespaces/{NAMESPACE}/services");
        bench.post(&collection, service).await?;
        Ok(Self)
    }

    pub(super) async fn delete(self, bench: &Bench<'_>) -> Result<()> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}");
        remove(bench, &path).await
    }
}

/// The APIService of a group of the backend.
pub(super) fn api_service(number: usize, backend: &Backend, port: u16) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{}", group(number))},
        "spec": {
            "group": group(number), "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "service": {"namespace": NAMESPACE, "name": SERVICE, "port": port},
            "caBundle": &backend.bundle,
        },
    })
}
