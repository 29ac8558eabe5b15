//! A custom API server with all that `examples/hello` leaves out: subresources, an admission rule, a strategy, a computed column,
//! a choice of stores, TLS, and a mode behind another API server. README.md has a session to paste.

mod foo;
mod rules;

use anyhow::Result;
use bareboat::prelude::*;
use bareboat::{Extension, LocalAccess, open_storage, run_until_signal};
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Parser)]
struct Args {
    /// Address to listen on
    #[arg(long, env = "HELLO_LISTEN", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// Store of the objects: memory:, sqlite:PATH or etcd://HOST:PORT/PREFIX
    #[arg(long, env = "HELLO_STORAGE", default_value = "memory:")]
    storage: String,
    /// A word that no message may contain
    #[arg(long, env = "HELLO_DISALLOW", default_value = "forbidden")]
    disallow: String,
    /// File for the kubeconfig of an administrator
    #[arg(long, env = "HELLO_KUBECONFIG", default_value = "hello.kubeconfig")]
    kubeconfig: PathBuf,
    /// Kubeconfig of an API server that forwards the group to this one, and that decides who may do what
    #[arg(long, env = "HELLO_BEHIND", value_name = "KUBECONFIG")]
    behind: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let builder = Server::builder()
        .storage(open_storage(&args.storage, StoreOptions::default())?)
        .kind(foo::kind()?)
        .validator(rules::Disallow(args.disallow));
    if let Some(hub) = args.behind {
        let serving = Extension::new(&RemoteApi::from_kubeconfig(hub)?, "default", "hello")
            .version("hello.zeng.dev", "v2")
            .version("hello.zeng.dev", "v1")
            .serve(builder, args.listen)
            .await?;
        println!("serving foos behind another server");
        return Ok(run_until_signal(serving.server()).await?);
    }
    let access = LocalAccess::new("hello")?;
    let server = access.install(builder).build()?;
    let address = access.listen(&server, args.listen, &args.kubeconfig);
    println!("serving foos on https://{}", address.await?);
    Ok(run_until_signal(&server).await?)
}
