//! A control plane with two custom admission rules, which are in `lib.rs`. README.md has a session to paste.

use admission::{CreatedBy, FewKeys};
use bareboat::prelude::*;
use bareboat::{LocalAccess, run_until_signal};
use clap::Parser;

#[derive(Parser)]
struct Args {
    /// Local port to listen on
    #[arg(long, default_value_t = 8443)]
    port: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = ([127, 0, 0, 1], Args::parse().port).into();
    let access = LocalAccess::new("admission")?;
    let server = access
        .install(Server::builder())
        .control_plane()
        .mutator(CreatedBy)
        .validator(FewKeys)
        .build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let address = access
        .listen(&server, address, "admission.kubeconfig")
        .await?;
    println!("a control plane with two rules is at https://{address}");
    run_until_signal(&server).await?;
    drop(controllers);
    Ok(())
}
