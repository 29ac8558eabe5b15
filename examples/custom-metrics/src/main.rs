//! custom.metrics.k8s.io and external.metrics.k8s.io behind another API server, for HorizontalPodAutoscalers. The README
//! has a session.
//!
//! The paths of these groups name objects of other groups, and metrics where subresources or resources usually are. So a
//! function answers each group as a whole: see [`Computed::group`].

mod source;

use anyhow::Context as _;
use bareboat::api::labels::Selector;
use bareboat::api::value::to_value;
use bareboat::prelude::*;
use bareboat::server::request::query::Query;
use bareboat::server::{Response, reply};
use bareboat::{Extension, RemoteApi};
use clap::Parser;
use source::{Custom, External, File, Source};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

const CUSTOM: &str = "custom.metrics.k8s.io";
const EXTERNAL: &str = "external.metrics.k8s.io";

/// Serves custom and external metrics behind another API server.
#[derive(Parser)]
struct Args {
    /// The server to run behind; its user needs the rights in rbac.yaml
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// Where to listen; port 0 takes any free one
    #[arg(long, env = "METRICS_LISTEN", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The JSON file with metrics, read at each request
    #[arg(long, env = "METRICS_FILE")]
    metrics: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let source: Arc<dyn Source> = Arc::new(File(args.metrics));
    let of_external = source.clone();
    let builder = Server::builder()
        .computed(Computed::group(
            CUSTOM,
            &["v1beta2", "v1beta1"],
            move |visit| std::future::ready(custom(source.as_ref(), &visit)),
        ))
        .computed(Computed::group(EXTERNAL, &["v1beta1"], move |visit| {
            std::future::ready(external(of_external.as_ref(), &visit))
        }));
    let hub = RemoteApi::from_kubeconfig(&args.kubeconfig)?;
    let serving = Extension::new(&hub, "kube-system", "custom-metrics")
        .version(CUSTOM, "v1beta2")
        .version(CUSTOM, "v1beta1")
        .version(EXTERNAL, "v1beta1")
        .serve(builder, args.listen)
        .await
        .context("rbac.yaml has the rights that are needed")?;
    println!("metrics are served on https://{}", serving.address());
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    serving.shut_down().await;
    Ok(())
}

/// `namespaces/NS/RESOURCE/NAME/METRIC`, `RESOURCE/NAME/METRIC`, or `namespaces/NS/metrics/METRIC` about a namespace. The
/// name `*` means all objects that the label selector selects.
fn custom(source: &dyn Source, visit: &Visit) -> Result<Response, Status> {
    let ask = &visit.question;
    let about_namespace = ask.resource == "metrics" && ask.subresource.is_empty();
    let (namespace, resource, name, metric) = match about_namespace {
        true => ("", "namespaces", &ask.namespace, &ask.name),
        false => (
            ask.namespace.as_str(),
            ask.resource.as_str(),
            &ask.name,
            &ask.subresource,
        ),
    };
    if visit.request.method() != http::Method::GET || metric.is_empty() {
        return Err(Status::no_such_route());
    }
    let query = query(visit)?;
    let (objects, series) = (
        selector(&query, "labelSelector")?,
        selector(&query, "metricLabelSelector")?,
    );
    let metrics = source.custom().map_err(unavailable)?;
    let wanted = |found: &&Custom| {
        found.resource == resource
            && found.namespace == namespace
            && found.metric == metric.as_str()
            && (name == "*" && selects(&objects, &found.labels) || found.name == name.as_str())
            && selects(&series, &found.metric_labels)
    };
    let found: Vec<&Custom> = metrics.iter().filter(wanted).collect();
    if found.is_empty() {
        let text = format!("the server could not find the metric {metric} for {resource} {name}");
        return Err(Status::new(404, "NotFound", text));
    }
    let items: Value = found
        .iter()
        .map(|found| custom_value(found, &ask.version))
        .collect();
    Ok(list(CUSTOM, &ask.version, "MetricValueList", items))
}

/// The two versions name the metric differently.
fn custom_value(found: &Custom, version: &str) -> Value {
    let mut item = value!({
        "describedObject": {
            "apiVersion": (found.api_version.as_str()), "kind": (found.kind.as_str()),
            "namespace": (found.namespace.as_str()), "name": (found.name.as_str()),
        },
        "timestamp": (now()),
        "value": (found.value.as_str()),
    });
    let name = Value::string(found.metric.as_str());
    let members = item.make_object();
    match version {
        "v1beta1" => members.insert("metricName", name),
        _ => members.insert("metric", value!({"name": name})),
    };
    item
}

/// `namespaces/NS/METRIC`, with a selector of the metric's labels.
fn external(source: &dyn Source, visit: &Visit) -> Result<Response, Status> {
    let ask = &visit.question;
    if visit.request.method() != http::Method::GET
        || ask.namespace.is_empty()
        || !ask.name.is_empty()
    {
        return Err(Status::no_such_route());
    }
    let wanted = selector(&query(visit)?, "labelSelector")?;
    let metrics = source.external().map_err(unavailable)?;
    let wanted = |found: &&External| {
        found.metric == ask.resource.as_str() && selects(&wanted, &found.labels)
    };
    let item = |found: &External| {
        let labels = to_value(&found.labels).unwrap_or_default();
        value!({
            "metricName": (found.metric.as_str()), "metricLabels": labels,
            "timestamp": (now()), "value": (found.value.as_str()),
        })
    };
    let items: Value = metrics.iter().filter(wanted).map(item).collect();
    Ok(list(
        EXTERNAL,
        &ask.version,
        "ExternalMetricValueList",
        items,
    ))
}

fn list(group: &str, version: &str, kind: &str, items: Value) -> Response {
    let list = value!({
        "apiVersion": (format!("{group}/{version}")), "kind": kind, "metadata": {}, "items": items,
    });
    reply::json(http::StatusCode::OK, &list)
}

fn query(visit: &Visit) -> Result<Query, Status> {
    let text = visit.request.uri().query().unwrap_or("");
    Query::parse(text).map_err(|_| Status::bad_request("the query cannot be decoded"))
}

fn selector(query: &Query, parameter: &str) -> Result<Selector, Status> {
    let text = query.get(parameter).unwrap_or("");
    Selector::parse(text).map_err(|error| Status::bad_request(format!("{parameter}: {error}")))
}

fn selects(selector: &Selector, labels: &BTreeMap<String, String>) -> bool {
    selector.matches(|key| labels.get(key).map(String::as_str))
}

fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

fn unavailable(error: anyhow::Error) -> Status {
    Status::unavailable(format!("the metrics cannot be read: {error:#}"))
}
