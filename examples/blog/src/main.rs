//! A blog as an API server. Posts are rows of MariaDB or MySQL, drafts are hidden from readers, and the database's full-text index
//! answers searches. README.md has a session to paste.

mod post;
mod readers;
mod search;

use anyhow::{Context as _, Result};
use bareboat::prelude::*;
use bareboat::server::Stopping;
use bareboat::{LocalAccess, open_storage, run_until_signal};
use clap::Parser;
use futures_util::TryStreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Parser)]
struct Args {
    /// The database: mysql://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(long, env = "BLOG_STORAGE")]
    storage: String,
    /// Address to listen on
    #[arg(long, env = "BLOG_LISTEN", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// File for the kubeconfig of an administrator
    #[arg(long, env = "BLOG_KUBECONFIG", default_value = "blog.kubeconfig")]
    kubeconfig: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let store = open_storage(&args.storage, StoreOptions::default())?;
    let index = search::Index::open(&args.storage)
        .await
        .context("the full-text index cannot be prepared")?;
    let access = LocalAccess::new("blog")?;
    let server = access
        .install(Server::builder())
        .storage(store)
        .kind(post::kind(index)?)
        .authorizer(readers::Authors)
        .task(announce)
        .build()?;
    let address = access.listen(&server, args.listen, &args.kubeconfig);
    println!("serving posts on https://{}", address.await?);
    Ok(run_until_signal(&server).await?)
}

/// An informer inside the process. It has the rights of any reader, so that it learns of a post when it is published.
async fn announce(server: Server, stopping: Stopping) {
    let reader = User {
        name: "newsletter".into(),
        ..User::default()
    };
    let kind = GroupVersionKind::gvk("blog.example.com", "v1", "Post");
    let posts = ApiResource::from_gvk_with_plural(&kind, "posts");
    let client = bareboat::client::in_process(&server, reader);
    let posts: Api<DynamicObject> = Api::all_with(client, &posts);
    let changes = watcher(posts, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .try_for_each(|post| async move {
            let title = post.data["spec"]["title"].as_str().unwrap_or_default();
            println!("published: {title}");
            Ok(())
        });
    tokio::select! {
        ended = changes => drop(ended),
        () = stopping.begun() => {}
    }
}
