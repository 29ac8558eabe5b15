//! The program: flags, storage, certificates.

use anyhow::Context as _;
use bareboat::prelude::*;
use clap::Parser;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[derive(Parser)]
#[command(version, about)]
struct Args {
    /// Listen on this address; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:8080")]
    bind: SocketAddr,
    /// File for the objects; without it they are lost when the server stops
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Users and their bearer tokens: lines of token,user,uid,"group,group"; needs TLS
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    token_file: Option<PathBuf>,
    /// The certificate of this server in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve behind another API server: its kubeconfig. Users, rights and client certificates are those of that server
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        conflicts_with = "token_file"
    )]
    behind: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let pair = match (&args.tls_cert, &args.tls_key) {
        (Some(chain), Some(key)) => Some((read(chain)?, read(key)?)),
        _ => None,
    };
    let mut builder = journal::kinds(Server::builder())?;
    if let Some(file) = &args.data {
        builder = builder.storage(open_sqlite(file, StoreOptions::default())?);
    }
    let tls;
    // What is read from the other server is kept fresh as long as this is.
    let mut _delegation = None;
    match (&args.behind, &args.token_file, pair) {
        (Some(hub), _, Some((chain, key))) => {
            let hub = RemoteApi::from_kubeconfig(hub)?;
            let (behind, own, delegation) = builder.behind(hub, &chain, &key).await?;
            (builder, tls, _delegation) = (behind, Some(own), Some(delegation));
        }
        (None, Some(tokens), Some((chain, key))) => {
            tls = Some(Tls::from_pem(&chain, &key, None)?);
            builder = builder
                .authenticator(StaticTokens::parse(&read(tokens)?)?)
                .authorizer(MastersOnly);
        }
        (_, _, pair) => {
            anyhow::ensure!(
                args.bind.ip().is_loopback(),
                "everyone may do everything without --token-file or --behind: bind to a loopback address"
            );
            tls = pair
                .map(|(chain, key)| Tls::from_pem(&chain, &key, None))
                .transpose()?;
            builder = builder.authenticator(Anonymous).authorizer(AllowAll);
        }
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = builder.build()?;
    let address = server.listen(args.bind, tls).await?;
    println!("serving on {scheme}://{address}");
    tokio::signal::ctrl_c().await?;
    server.shut_down().await;
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
