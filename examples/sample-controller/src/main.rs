//! A controller with kube-rs: each Foo of samplecontroller.k8s.io owns a Deployment.
//!
//! It shows a derived kind, informers, a work queue with rate limits, owner references, events and status updates. It
//! runs as a client of a server, or in one process with it.
//!
//! ```text
//! cargo run -p sample-controller -- --embedded    # a server in memory, and the controller inside it
//!
//! export KUBECONFIG=/dev/null                     # kubectl then asks localhost:8080, without credentials
//! kubectl apply -f examples/sample-controller/foo.yaml
//! kubectl get foos,deployments
//! kubectl describe foo example-foo
//! ```
//!
//! Without `--embedded` it connects to the server in `KUBECONFIG`.

#![allow(
    clippy::disallowed_names,
    reason = "foo is what an object of this kind is called"
)]

mod controller;
mod foo;
mod limits;
mod reconcile;

use bareboat::api::kind::User;
use bareboat::client::in_process;
use bareboat::controllers::Controllers;
use bareboat::prelude::*;
use clap::Parser;
use foo::Foo;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, CustomResourceExt as _};
use std::future::Future;
use std::io::IsTerminal as _;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
struct Args {
    /// Run the server as well: in memory, without credentials
    #[arg(long)]
    embedded: bool,
    /// Local port of the embedded server; 0 takes any free one
    #[arg(long, default_value_t = 8080, requires = "embedded")]
    port: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let stop = stop()?;
    if !args.embedded {
        return keep_foos(Client::try_default().await?, stop).await;
    }
    let (server, mut controllers) = serve(args.port).await?;
    let user = User {
        name: controller::NAME.into(),
        ..User::default()
    };
    let ended = keep_foos(in_process(&server, user), stop).await;
    controllers.stop().await;
    server.shut_down().await;
    ended
}

/// Defines the kind and reconciles its objects until `stop` completes.
async fn keep_foos(client: Client, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply(controller::NAME).force();
    definitions
        .patch(Foo::crd_name(), &apply, &Patch::Apply(Foo::crd()))
        .await?;
    await_condition(
        definitions,
        Foo::crd_name(),
        conditions::is_crd_established(),
    )
    .await?;
    println!("reconciling {}", Foo::crd_name());
    controller::run(client, stop).await;
    Ok(())
}

/// Starts a whole control plane on a local port, where every request is allowed.
async fn serve(port: u16) -> anyhow::Result<(Server, Controllers)> {
    let server = Server::builder()
        .control_plane()
        .authenticator(Anonymous)
        .authorizer(AllowAll)
        .build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let address = server.listen(([127, 0, 0, 1], port).into(), None).await?;
    println!("serving on http://{address}");
    Ok((server, controllers))
}

/// Waits for SIGINT or SIGTERM.
fn stop() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
