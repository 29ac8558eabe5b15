//! The rows of the table, one function each; watch rows are in `watchers`.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::args::{Row, Side};
use crate::bench::{Bench, CRDS, MIB, NAMESPACE, items, namespace as namespace_object, say};
use crate::credentials::Access;
use crate::http1;
use crate::load::Load;
use crate::neighbour::account;
use crate::objects::{self, GROUP};

/// The measurement of a row.
pub(crate) type Measuring<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Buffer size for large responses.
const LIST_BUFFER: usize = 256 * 1024;

/// The name of an object by its number.
pub(crate) fn name(at: usize) -> String {
    format!("item-{at:06}")
}

/// Fills the collection with 64 clients; this also is the row of durable creation.
pub(crate) async fn create(bench: &mut Bench<'_>) -> Result<()> {
    let count = bench.args.scaled(bench.args.objects);
    say(bench.server.side, &format!("create {count} objects"));
    let load = Load {
        operations: count,
        limit: Duration::from_secs(300),
        ..bench.load(64, count)
    };
    let collection = items(NAMESPACE);
    let outcome = load
        .run(&bench.server, |at| {
            bench.request("POST", &collection, &bench.item.render(&name(at), at))
        })
        .await?;
    if outcome.operations < count {
        bail!(
            "only {} of {count} objects could be created in five minutes",
            outcome.operations
        );
    }
    if bench.args.wants(Row::Create) {
        bench.note("create", &outcome);
    }
    Ok(())
}

pub(crate) fn create_one_by_one<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench
            .post("/api/v1/namespaces", namespace_object("bench-one"))
            .await?;
        let collection = items("bench-one");
        let load = bench.load(1, 5_000);
        let outcome = load
            .run(&bench.server, |at| {
                bench.request("POST", &collection, &bench.item.render(&name(at), at))
            })
            .await?;
        bench.note("create1", &outcome);
        Ok(())
    })
}

pub(crate) fn get<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let access = bench.server.access.clone();
        gets(bench, "get", &access).await
    })
}

pub(crate) fn get_by_token<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let folder = tempfile::tempdir()?;
        match account(bench, folder.path(), "reader").await {
            Ok(kubeconfig) => gets(bench, "token", &Access::from_kubeconfig(&kubeconfig)?).await,
            // Servers from before service account tokens.
            Err(error) => {
                say(bench.server.side, &format!("no token: {error:#}"));
                bench.figures.explain("token.cpu", "no tokens");
                Ok(())
            }
        }
    })
}

async fn gets(bench: &mut Bench<'_>, id: &str, access: &Access) -> Result<()> {
    let (collection, count) = (items(NAMESPACE), bench.args.scaled(bench.args.objects));
    let request = |at: usize| {
        // A step that is coprime to the count visits all objects out of order.
        let path = format!("{collection}/{}", name(at * 7_919 % count));
        http1::request(access, "GET", &path, "", b"")
    };
    let load = bench.load(64, 300_000);
    let outcome = load.run_as(&bench.server, access, request).await?;
    bench.note(id, &outcome);
    Ok(())
}

async fn lists(bench: &mut Bench<'_>, id: &str, operations: usize, path: &str) -> Result<()> {
    let request = bench.request("GET", path, b"");
    let load = Load {
        buffer: LIST_BUFFER,
        ..bench.load(4, operations)
    };
    let outcome = load.run(&bench.server, |_| request.clone()).await?;
    bench.note(id, &outcome);
    bench.figures.set(
        &format!("{id}.mib"),
        outcome.bytes as f64 / outcome.operations.max(1) as f64 / MIB,
    );
    Ok(())
}

pub(crate) fn list<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(lists_of(bench, "list", 1_000, String::new()))
}

pub(crate) fn page<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(lists_of(bench, "page", 20_000, "?limit=500".to_owned()))
}

pub(crate) fn label<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(lists_of(
        bench,
        "label",
        10_000,
        "?labelSelector=slice%3D3".to_owned(),
    ))
}

async fn lists_of(
    bench: &mut Bench<'_>,
    id: &'static str,
    operations: usize,
    query: String,
) -> Result<()> {
    let path = format!("{}{query}", items(NAMESPACE));
    lists(bench, id, operations, &path).await
}

pub(crate) fn list_h2<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let outcome = bench
            .load(4, 1_000)
            .run_h2(&bench.server, &items(NAMESPACE))
            .await?;
        bench.note("listh2", &outcome);
        Ok(())
    })
}

pub(crate) fn patch<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let (collection, count) = (items(NAMESPACE), bench.args.scaled(bench.args.objects));
        let request = |at: usize| {
            let body = format!(r#"{{"spec":{{"field03":{at},"field00":"patched {at}"}}}}"#);
            let path = format!("{collection}/{}", name(at % count));
            http1::request(
                &bench.server.access,
                "PATCH",
                &path,
                MERGE_PATCH,
                body.as_bytes(),
            )
        };
        let outcome = bench.load(64, 30_000).run(&bench.server, request).await?;
        bench.note("patch", &outcome);
        Ok(())
    })
}

pub(crate) fn apply<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let (collection, count) = (items(NAMESPACE), bench.args.scaled(bench.args.objects));
        let request = |at: usize| {
            let name = name(at % count);
            let body = format!(
                r#"{{"apiVersion":"{GROUP}/v1","kind":"Item","metadata":{{"name":"{name}"}},"spec":{{"field01":"applied {at}","field05":["gamma"],"field06":{{"three":{at}}},"field11":{at}}}}}"#
            );
            let path = format!("{collection}/{name}?fieldManager=bench&force=true");
            http1::request(
                &bench.server.access,
                "PATCH",
                &path,
                APPLY_PATCH,
                body.as_bytes(),
            )
        };
        let outcome = bench.load(64, 30_000).run(&bench.server, request).await?;
        bench.note("apply", &outcome);
        Ok(())
    })
}

pub(crate) fn delete<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench
            .post("/api/v1/namespaces", namespace_object("bench-delete"))
            .await?;
        let (collection, count) = (items("bench-delete"), 5_000);
        let create =
            |at: usize| bench.request("POST", &collection, &bench.item.render(&name(at), at));
        let created = bench
            .load(64, count)
            .run(&bench.server, create)
            .await?
            .operations;
        bench.settle().await?;
        let delete =
            |at: usize| bench.request("DELETE", &format!("{collection}/{}", name(at)), b"");
        // All created objects, even if the time limit allowed fewer than planned.
        let load = Load {
            operations: created,
            ..bench.load(64, count)
        };
        let outcome = load.run(&bench.server, delete).await?;
        bench.note("delete", &outcome);
        Ok(())
    })
}

pub(crate) fn cel<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench.define(&objects::ruled_definition()).await?;
        let (collection, ruled) = (
            format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/ruleds"),
            objects::ruled(),
        );
        let request = |at: usize| bench.request("POST", &collection, &ruled.render(&name(at), at));
        let outcome = bench.load(64, 20_000).run(&bench.server, request).await?;
        bench.note("cel", &outcome);
        Ok(())
    })
}

pub(crate) fn protobuf<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let collection = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
        if bench.ask("GET", &collection, b"").await?.status != 200 {
            bench.figures.explain("protobuf.cpu", "not served");
            return Ok(());
        }
        let request = |at: usize| {
            let body = objects::deployment_protobuf(&name(at), NAMESPACE);
            http1::request(
                &bench.server.access,
                "POST",
                &collection,
                "application/vnd.kubernetes.protobuf",
                &body,
            )
        };
        let outcome = bench.load(64, 20_000).run(&bench.server, request).await?;
        bench.note("protobuf", &outcome);
        Ok(())
    })
}

/// Returns a small object of a built-in kind.
pub(crate) fn config_map(at: usize) -> Vec<u8> {
    let name = name(at);
    let map = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "key": "value" }
    });
    map.to_string().into_bytes()
}

/// Deletes a namespace and waits until it is gone; returns the duration.
async fn vanished(bench: &Bench<'_>, name: &str) -> Result<Duration> {
    let begun = Instant::now();
    let path = format!("/api/v1/namespaces/{name}");
    bench.ask("DELETE", &path, b"").await?;
    while begun.elapsed() < Duration::from_secs(600) {
        if bench.ask("GET", &path, b"").await?.status == 404 {
            return Ok(begun.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bail!("namespace {name} is still there after ten minutes")
}

pub(crate) fn namespace<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let count = bench.args.scaled(10_000);
        let _manager = match bench.server.side {
            Side::Ours => None,
            Side::Theirs if bench.args.controller_manager => {
                Some(bench.server.controller_manager(bench.programs)?)
            }
            Side::Theirs => {
                bench.figures.explain("namespace", "no controllers");
                return Ok(());
            }
        };
        for name in ["bench-first", "bench-doomed"] {
            bench
                .post("/api/v1/namespaces", namespace_object(name))
                .await?;
        }
        // An empty namespace first, to make sure that the namespace controller is running.
        vanished(bench, "bench-first").await?;
        let collection = "/api/v1/namespaces/bench-doomed/configmaps";
        let request = |at: usize| bench.request("POST", collection, &config_map(at));
        let load = Load {
            operations: count,
            limit: Duration::from_secs(300),
            ..bench.load(16, count)
        };
        let created = load.run(&bench.server, request).await?;
        if created.operations < count {
            bail!("{} of {count} objects were created", created.operations);
        }
        bench.settle().await?;
        let before = bench.server.cpu()?;
        let taken = vanished(bench, "bench-doomed").await?;
        let cpu = bench.server.cpu()?.since(before);
        bench.figures.set("namespace", taken.as_secs_f64() * 1e3);
        bench
            .figures
            .set("namespace.cpu", cpu.as_secs_f64() * 1e6 / count as f64);
        Ok(())
    })
}

/// Installs CRDs and waits until the server is idle again. On Bareboat it continues up to two thousand, to see whether
/// the last one costs more than the first.
pub(crate) fn crds<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        let count = bench.args.scaled(match bench.server.side {
            Side::Ours => 200,
            Side::Theirs => 50,
        });
        let resident = bench.server.resident()?;
        let begun = Instant::now();
        let cpu = install_crds(bench, 0, count).await?;
        let elapsed = begun.elapsed();
        bench.figures.set("crd.cpu", cpu);
        bench
            .figures
            .set("crd.rate", count as f64 / elapsed.as_secs_f64());
        let grown = bench.server.resident()?.saturating_sub(resident);
        bench
            .figures
            .set("crd.memory", grown as f64 / 1024.0 / count as f64);
        if bench.server.side == Side::Ours {
            let all = bench.args.scaled(2_000);
            install_crds(bench, count, all - 2 * count).await?;
            let last = install_crds(bench, all - count, count).await?;
            bench.figures.set("crd.last", last);
        }
        Ok(())
    })
}

/// Installs `count` CRDs and returns the CPU time of each, in microseconds.
async fn install_crds(bench: &Bench<'_>, from: usize, count: usize) -> Result<f64> {
    let cpu = bench.server.cpu()?;
    let load = Load {
        operations: count,
        limit: Duration::from_secs(120),
        ..bench.load(4, count)
    };
    let request = |at: usize| bench.request("POST", CRDS, &objects::large_definition(from + at));
    let outcome = load.run(&bench.server, request).await?;
    if outcome.operations < count {
        bail!(
            "only {} of {count} CRDs could be installed in two minutes",
            outcome.operations
        );
    }
    for at in from..from + count {
        bench.established(&format!("larges{at}.{GROUP}")).await?;
    }
    bench.settle().await?;
    Ok(bench.server.cpu()?.since(cpu).as_secs_f64() * 1e6 / count as f64)
}
