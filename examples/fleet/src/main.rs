//! Three API servers with some objects, and a fourth that syncs and searches them: the hub. All run in this program, each
//! with its own socket, certificates and kubeconfig. README.md has a session to paste.

use anyhow::{Context as _, Result, anyhow};
use bareboat::api::{Value, value};
use bareboat::controllers::{Client, Controllers};
use bareboat::fleet::{Fleet, FleetSettings, ViewSettings, Views, install_views};
use bareboat::prelude::*;
use bareboat::{LocalAccess, run_until_signal};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Parser;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The members, with their regions.
const MEMBERS: [(&str, &str); 3] = [("berlin", "eu"), ("paris", "eu"), ("tokyo", "asia")];

#[derive(Parser)]
struct Args {
    /// Directory for kubeconfigs and the objects of members
    #[arg(long, env = "FLEET_DIR", default_value = "fleet-data")]
    dir: PathBuf,
    /// Address of the hub
    #[arg(long, env = "FLEET_LISTEN", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    std::fs::create_dir_all(&args.dir)?;
    let mut members = Vec::new();
    for (name, _) in MEMBERS {
        members.push(member(name, &args.dir).await?);
    }
    let (hub, fleet) = hub(&args).await?;
    for (name, region) in MEMBERS {
        join(&hub.server, name, region, &args.dir).await?;
    }
    println!("the hub listens on https://{}", args.listen);
    run_until_signal(&hub.server).await?;
    fleet.stop().await;
    for running in members {
        running.server.shut_down().await;
    }
    Ok(())
}

/// A server and its controllers, which end when this is dropped.
struct Running {
    server: Server,
    _controllers: Controllers,
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    // Pods here are objects only; they need no tokens.
    settings.disabled_admission.insert("ServiceAccount");
    settings
}

/// A member: an API server of its own with a Deployment and some pods.
async fn member(name: &str, dir: &Path) -> Result<Running> {
    let access = LocalAccess::new(name)?;
    let builder = Server::builder().control_plane_with(&settings());
    let server = access.install(builder).build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let path = dir.join(format!("{name}.kubeconfig"));
    access.listen(&server, "127.0.0.1:0".parse()?, path).await?;
    let client = Client::new(server.clone());
    let container = || value!([{"name": "main", "image": "nginx:1.27"}]);
    let deployment = value!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": (container())}},
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    client.create(path, &deployment).await?;
    for number in 1..=2 {
        let pod = value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": (format!("web-{number}")), "labels": {"app": "web", "city": name}},
            "spec": {"containers": (container())},
        });
        client
            .create("/api/v1/namespaces/default/pods", &pod)
            .await?;
    }
    Ok(Running {
        server,
        _controllers: controllers,
    })
}

/// The hub: an API server with the kinds and views of a fleet.
async fn hub(args: &Args) -> Result<(Running, Fleet)> {
    let mut wanted = FleetSettings::default();
    wanted.file = args.dir.join("fleet.db");
    let fleet = Fleet::open(wanted)?;
    let members = Arc::new(fleet.clone());
    let views = Views::new(fleet.shelf().clone(), members, ViewSettings::default())?;
    let builder = Server::builder().control_plane_with(&settings());
    let builder = install_views(fleet.install(builder), views);
    let builder = builder.map_err(|errors| anyhow!("the views cannot be served: {errors:?}"))?;
    let access = LocalAccess::new("hub")?;
    let server = access.install(builder).build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    fleet.start(&server, controllers.leads()).await;
    let path = args.dir.join("hub.kubeconfig");
    access.listen(&server, args.listen, path).await?;
    let running = Running {
        server,
        _controllers: controllers,
    };
    Ok((running, fleet))
}

/// Lets a member join: a PediaCluster with its kubeconfig.
async fn join(hub: &Server, name: &str, region: &str, dir: &Path) -> Result<()> {
    let path = dir.join(format!("{name}.kubeconfig"));
    let kubeconfig =
        std::fs::read(&path).with_context(|| format!("{} is needed", path.display()))?;
    let cluster: Value = value!({
        "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster",
        "metadata": {"name": name, "labels": {"region": region}},
        "spec": {
            "kubeconfig": (BASE64_STANDARD.encode(kubeconfig)),
            "syncAllCustomResources": true,
            "syncResources": [
                {"group": "", "resources": ["pods", "services", "configmaps"]},
                {"group": "apps", "resources": ["*"]},
            ],
        },
    });
    let client = Client::new(hub.clone());
    let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
    match client.create(path, &cluster).await {
        Err(status) if status.code != 409 => Err(status.into()),
        _ => Ok(()),
    }
}
