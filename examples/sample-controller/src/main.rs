//! A controller with kube-rs: each Foo of samplecontroller.k8s.io owns a Deployment. It runs as a client of a server, or in one
//! process with it. README.md has a session to paste.

#![allow(
    clippy::disallowed_names,
    reason = "foo is what an object of this kind is called"
)]

mod controller;
mod foo;
mod reconcile;

use bareboat::LocalAccess;
use bareboat::client::in_process;
use bareboat::prelude::*;
use clap::Parser;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Parser)]
struct Args {
    /// Run the server as well, in memory
    #[arg(long)]
    embedded: bool,
    /// Address of the embedded server; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:8443", requires = "embedded")]
    listen: SocketAddr,
    /// File for the kubeconfig of an administrator of the embedded server
    #[arg(long, default_value = "foo.kubeconfig", requires = "embedded")]
    kubeconfig: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    if !args.embedded {
        return controller::run(kube::Client::try_default().await?).await;
    }
    let access = LocalAccess::new("sample-controller")?;
    let builder = Server::builder().control_plane();
    let server = access.install(builder).build()?;
    let mut controllers = bareboat::control_plane::start(&server).await;
    let address = access.listen(&server, args.listen, &args.kubeconfig);
    println!("serving on https://{}", address.await?);
    let user = User {
        name: controller::NAME.into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    };
    let ended = controller::run(in_process(&server, user)).await;
    controllers.stop().await;
    server.shut_down().await;
    ended
}
