//! A control plane for machines: virtual machines, physical nodes, pools of storage and of addresses. It is a server of its own,
//! with any store. README.md has a session to paste.

mod kinds;
mod placement;
mod quota;

use anyhow::Result;
use bareboat::prelude::*;
use bareboat::{LocalAccess, open_storage, run_until_signal};
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Parser)]
struct Args {
    /// Store of the objects: memory:, sqlite:PATH, mysql://…, postgres://… or etcd://…
    #[arg(long, env = "KUBESTACK_STORAGE", default_value = "memory:")]
    storage: String,
    /// Address to listen on
    #[arg(long, env = "KUBESTACK_LISTEN", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// File for the kubeconfig of an administrator
    #[arg(
        long,
        env = "KUBESTACK_KUBECONFIG",
        default_value = "kubestack.kubeconfig"
    )]
    kubeconfig: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let access = LocalAccess::new("kubestack")?;
    let server = access
        .install(Server::builder())
        .storage(open_storage(&args.storage, StoreOptions::default())?)
        .kinds(kinds::all()?)
        .validator(quota::PoolQuota::default())
        .task(placement::run)
        .build()?;
    let address = access.listen(&server, args.listen, &args.kubeconfig);
    println!("kubestack is at https://{}", address.await?);
    Ok(run_until_signal(&server).await?)
}
