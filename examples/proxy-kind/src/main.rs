//! One list of the pods of several servers. Objects of other API servers and of a plain HTTP service are followed into a store in
//! memory, which answers reads and watches; writes go to the server that has the pod. README.md has a session to paste.

mod follow;
mod merged;
mod pass;

use anyhow::{Context as _, Result};
use bareboat::prelude::*;
use bareboat::{LocalAccess, run_until_signal};
use clap::Parser;
use follow::{Health, Origin, Source};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Parser)]
struct Args {
    /// A server to follow: NAME=KUBECONFIG, or NAME=http://… for a service that answers with a JSON list of {"name", "image"}
    #[arg(long = "source", env = "PROXY_SOURCES", value_delimiter = ',')]
    sources: Vec<String>,
    /// Address to listen on
    #[arg(long, env = "PROXY_LISTEN", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// File for the kubeconfig of an administrator
    #[arg(long, env = "PROXY_KUBECONFIG", default_value = "proxy.kubeconfig")]
    kubeconfig: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let health = Health::default();
    let mut sources = Vec::new();
    for text in &args.sources {
        let (name, place) = text.split_once('=').context("a source is NAME=ADDRESS")?;
        let origin = match place.starts_with("http://") {
            true => Origin::Http(place.parse()?),
            false => Origin::ApiServer(follow::client(place).await?),
        };
        let (name, health) = (name.into(), health.clone());
        sources.push(Source {
            name,
            origin,
            health,
        });
    }
    let sources: Arc<[Source]> = sources.into();
    let access = LocalAccess::new("proxy")?;
    let mut builder = access
        .install(Server::builder())
        .kind(merged::kind(sources.clone(), health)?)
        .writes(merged::GROUP, "pods", pass::connector(sources.clone()));
    for source in sources.iter().cloned() {
        builder = builder.task(move |server, stopping| source.follow(server, stopping));
    }
    let server = builder.build()?;
    let address = access.listen(&server, args.listen, &args.kubeconfig);
    println!("serving pods on https://{}", address.await?);
    Ok(run_until_signal(&server).await?)
}
