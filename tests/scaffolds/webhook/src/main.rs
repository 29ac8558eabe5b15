//! The program: an address and a certificate.

use anyhow::Context as _;
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(version, about)]
struct Args {
    /// Listen on this address; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:9443")]
    bind: SocketAddr,
    /// The certificate of this server in PEM
    #[arg(long, value_name = "FILE", default_value = "certs/tls.crt")]
    tls_cert: PathBuf,
    /// The key of that certificate in PEM
    #[arg(long, value_name = "FILE", default_value = "certs/tls.key")]
    tls_key: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let read = |path: &PathBuf| {
        std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let (chain, key) = (read(&args.tls_cert)?, read(&args.tls_key)?);
    // Container runtimes send it.
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = guard::serve::serve(args.bind, &chain, &key) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}
