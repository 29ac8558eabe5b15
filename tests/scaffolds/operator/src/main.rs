//! Runs the operator against a server, or together with one.

use bareboat::prelude::*;
use clap::{Parser, Subcommand};
use yachts::{definitions, install, run};

#[derive(Parser)]
#[command(version, about)]
struct Args {
    /// Run a server as well: in memory, without credentials, for trying things out
    #[arg(long)]
    embedded: bool,
    /// Local port of that server; 0 takes any free one
    #[arg(long, default_value_t = 8080, requires = "embedded")]
    port: u16,
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
    let server = Server::builder()
        .control_plane()
        .authenticator(Anonymous)
        .authorizer(AllowAll)
        .build()?;
    let mut controllers = bareboat::control_plane::start(&server).await;
    let address = server
        .listen(([127, 0, 0, 1], args.port).into(), None)
        .await?;
    let user = User {
        name: yachts::NAME.into(),
        ..User::default()
    };
    let client = bareboat::client::in_process(&server, user);
    install(&client).await?;
    println!("serving on http://{address}");
    run(client).await;
    controllers.stop().await;
    server.shut_down().await;
    Ok(())
}
