//! VirtualMachines as in KubeVirt, behind another API server. A machine is a process of this one. The README has a session.

mod actions;
mod admission;
mod controller;

use bareboat::client::PathClient;
use bareboat::{Extension, RemoteApi};
use clap::Parser;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Runs VirtualMachines as local processes.
#[derive(Parser)]
struct Args {
    /// The server to run behind, as an administrator
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: std::path::PathBuf,
    /// Where to listen; port 0 takes any free one
    #[arg(long, env = "VIRT_LISTEN", default_value = "127.0.0.1:0")]
    listen: std::net::SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let hub = PathClient::from_kubeconfig(&args.kubeconfig).await;
    let virt = Arc::new(controller::Virt {
        hub: hub.map_err(|error| anyhow::anyhow!(error))?,
        processes: Default::default(),
        turn: Default::default(),
    });
    let builder = admission::webhooks(actions::serve(&virt), &virt);
    let hub = RemoteApi::from_kubeconfig(&args.kubeconfig)?;
    let extension = Extension::new(&hub, "kube-system", "virt-api").version(actions::GROUP, "v1");
    let serving = extension.serve(builder, args.listen).await?;
    // Definitions and webhook configurations name this server and its CA.
    let manifest = include_str!("../manifest.yaml")
        .replace("${PORT}", &serving.address().port().to_string())
        .replace("${CA}", &serving.ca_bundle());
    hub.apply_manifest(&manifest, "virt").await?;
    println!("machines are served on https://{}", serving.address());
    tokio::select! {
        () = controller::run(&virt) => {}
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    serving.shut_down().await;
    Ok(())
}
