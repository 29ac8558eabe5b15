//! An axum program that serves the Kubernetes API together with its own routes; the router is in `lib.rs`. README.md has a
//! session to paste.

mod tls;

use bareboat::prelude::*;
use bareboat::run_until_signal;
use clap::Parser;
use std::path::PathBuf;

#[derive(Parser)]
struct Args {
    /// Local port to listen on
    #[arg(long, default_value_t = 8443)]
    port: u16,
    /// Certificate chain in PEM
    chain: PathBuf,
    /// Its private key in PEM
    key: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let server = Server::builder().control_plane().build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let listener = tls::listen(args.port, &args.chain, &args.key).await?;
    println!("listening on https://127.0.0.1:{}", args.port);
    // The server ends its watches first; axum waits for all connections.
    let stopped = {
        let server = server.clone();
        async move { run_until_signal(&server).await.unwrap_or_default() }
    };
    axum::serve(listener, axum_app::router(server))
        .with_graceful_shutdown(stopped)
        .await?;
    drop(controllers);
    Ok(())
}
