//! metrics.k8s.io in memory, behind another API server, so that `kubectl top` works. The README has a session.
//!
//! `source` measures, this file serves: two computed kinds, and one call that makes certificates, delegates
//! authentication and authorization, and registers the server.

mod source;

use anyhow::Context as _;
use bareboat::prelude::*;
use bareboat::server::kinds::computed::Question;
use bareboat::{Extension, RemoteApi};
use clap::Parser;
use source::{Machine, Metrics, Samples, Source};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

const GROUP: &str = "metrics.k8s.io";

/// Serves metrics.k8s.io behind another API server.
#[derive(Parser)]
struct Args {
    /// The server to run behind; its user needs the rights in rbac.yaml
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// Where to listen; port 0 takes any free one
    #[arg(long, env = "METRICS_LISTEN", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Read measurements from this JSON file at each request, instead of measuring this machine
    #[arg(long, env = "METRICS_SAMPLES")]
    samples: Option<PathBuf>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct NodeMetrics {
    /// When the usage was measured.
    timestamp: String,
    /// The time over which it was measured.
    window: String,
    usage: Usage,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct PodMetrics {
    /// When the usage was measured.
    timestamp: String,
    /// The time over which it was measured.
    window: String,
    containers: Vec<Container>,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct Container {
    name: String,
    usage: Usage,
}
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Usage {
    /// Cores, such as `250m`.
    cpu: String,
    /// Bytes, such as `64Mi`.
    memory: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let source: Arc<dyn Source> = match args.samples {
        Some(file) => Arc::new(Samples(file)),
        None => Arc::new(Machine::new()?),
    };
    let nodes = TypedKind::new(GROUP, "nodes", "NodeMetrics")
        .cluster_scoped()
        .version::<NodeMetrics>("v1beta1")
        .column("CPU", ".usage.cpu")
        .column("Memory", ".usage.memory")
        .build()?;
    let pods = TypedKind::new(GROUP, "pods", "PodMetrics")
        .version::<PodMetrics>("v1beta1")
        .build()?;
    let builder = Server::builder()
        .computed(served(nodes, &source, Metrics::nodes))
        .computed(served(pods, &source, Metrics::pods));
    let hub = RemoteApi::from_kubeconfig(&args.kubeconfig)?;
    let serving = Extension::new(&hub, "kube-system", "metrics-server")
        .version(GROUP, "v1beta1")
        .serve(builder, args.listen)
        .await
        .context("rbac.yaml has the rights that are needed")?;
    println!("metrics.k8s.io is served on https://{}", serving.address());
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    serving.shut_down().await;
    Ok(())
}

/// A kind whose objects a part of the newest measurements are.
fn served(kind: Kind, source: &Arc<dyn Source>, part: fn(&Metrics) -> Vec<Object>) -> Computed {
    let (of_list, of_get) = (source.clone(), source.clone());
    let served = kind.clone();
    Computed::new(kind)
        .list(move |question| std::future::ready(found(&of_list, part, &question)))
        .get(move |question| {
            let objects = found(&of_get, part, &question);
            let missing = Status::not_found(served.group_resource(), &question.name);
            let named = |objects: Vec<Object>| {
                let mut objects = objects.into_iter();
                objects.find(|object| object.name() == question.name)
            };
            std::future::ready(objects.and_then(|objects| named(objects).ok_or(missing)))
        })
}

/// The objects of the namespace that is asked for.
fn found(
    source: &Arc<dyn Source>,
    part: fn(&Metrics) -> Vec<Object>,
    question: &Question,
) -> Result<Vec<Object>, Status> {
    let metrics = source
        .measure()
        .map_err(|error| Status::unavailable(format!("nothing was measured: {error:#}")))?;
    let mut objects = part(&metrics);
    let everywhere = question.namespace.is_empty();
    objects.retain(|object| everywhere || object.namespace() == question.namespace);
    Ok(objects)
}
