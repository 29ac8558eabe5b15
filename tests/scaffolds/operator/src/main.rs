//! Runs the operator against a server, or together with one.

use bareboat::LocalAccess;
use bareboat::prelude::*;
use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use yachts::{definitions, install, run};

#[derive(Parser)]
#[command(version, about)]
struct Args {
    /// Run a server as well: in memory, for trying things out
    #[arg(long)]
    embedded: bool,
    /// Address of that server; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:8443", requires = "embedded")]
    bind: SocketAddr,
    /// File for the kubeconfig of that server's administrator
    #[arg(
        long,
        value_name = "FILE",
        default_value = "admin.kubeconfig",
        requires = "embedded"
    )]
    kubeconfig: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Print the definitions, for manifests/definition.yaml
    Crd,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    if let Some(Command::Crd) = args.command {
        for definition in definitions() {
            println!("---\n{}", serde_json::to_string_pretty(&definition)?);
        }
        return Ok(());
    }
    if !args.embedded {
        // The server in KUBECONFIG, or the cluster that this runs in.
        let client = kube::Client::try_default().await?;
        install(&client).await?;
        run(client).await;
        return Ok(());
    }
    let access = LocalAccess::new(yachts::NAME)?;
    let server = access.install(Server::builder().control_plane()).build()?;
    let mut controllers = bareboat::control_plane::start(&server).await;
    let user = User {
        name: yachts::NAME.into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    };
    let client = bareboat::client::in_process(&server, user);
    install(&client).await?;
    let address = access.listen(&server, args.bind, &args.kubeconfig).await?;
    println!("serving on https://{address}");
    run(client).await;
    controllers.stop().await;
    server.shut_down().await;
    Ok(())
}
