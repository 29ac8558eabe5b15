//! A control plane whose pods are processes of this machine; functions of this program answer their streams. The README
//! has a session.
//!
//! A user who may create pods or run commands in them runs programs as the user of this process.

mod node;
mod streams;

use bareboat::LocalAccess;
use bareboat::client::in_process;
use bareboat::prelude::*;
use clap::Parser;
use node::Processes;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// Runs pods as local processes.
#[derive(Parser)]
struct Args {
    /// Where to listen
    #[arg(long, env = "POD_STREAMS_LISTEN", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where to write the administrator's kubeconfig
    #[arg(
        long,
        env = "POD_STREAMS_KUBECONFIG",
        default_value = "admin.kubeconfig"
    )]
    kubeconfig: PathBuf,
    /// The folder with one folder for each pod, which its process starts in
    #[arg(long, env = "POD_STREAMS_DATA", default_value = "pods")]
    data: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    let processes = Processes::within(&args.data)?;
    let settings = Settings::default()
        .stream("pods", "log", streams::logs(&processes))
        .stream("pods", "exec", streams::exec(&processes))
        .stream("pods", "attach", streams::attach(&processes))
        .stream("pods", "portforward", streams::port_forward());
    let access = LocalAccess::new("pod-streams")?;
    let builder = Server::builder().control_plane_with(&settings);
    let server = access.install(builder).build()?;
    let mut controllers = bareboat::control_plane::start(&server).await;
    let address = access
        .listen(&server, args.listen, &args.kubeconfig)
        .await?;
    println!("pods run as processes; the server listens on https://{address}");
    // A kubelet would be a node; this is an administrator.
    let user = User {
        name: "pod-streams".into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    };
    tokio::select! {
        () = processes.run(in_process(&server, user)) => {}
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    processes.stop_all();
    controllers.stop().await;
    server.shut_down().await;
    Ok(())
}
