//! A control plane with a custom storage engine: every write is a line in a file. README.md has a session to paste.
//!
//! The engine is in `lib.rs` and is tested with the store's conformance suite.

use bareboat::prelude::*;
use bareboat::{LocalAccess, run_until_signal};
use clap::Parser;
use own_backend::TextLog;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Parser)]
struct Args {
    /// Local port to listen on
    #[arg(long, default_value_t = 8443)]
    port: u16,
    /// File of the log
    #[arg(long, default_value = "bareboat.log")]
    log: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let log = Arc::new(TextLog::open(args.log)?);
    let access = LocalAccess::new("own-backend")?;
    let server = access
        .install(Server::builder())
        .storage(Store::open(log, StoreOptions::default())?)
        .control_plane()
        .build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let address = ([127, 0, 0, 1], args.port).into();
    let address = access.listen(&server, address, "own-backend.kubeconfig");
    println!("a control plane is at https://{}", address.await?);
    run_until_signal(&server).await?;
    drop(controllers);
    Ok(())
}
