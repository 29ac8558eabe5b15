//! The program: flags, storage, certificates.

use anyhow::Context as _;
use bareboat::prelude::*;
use bareboat::{LocalAccess, run_until_signal};
use clap::Parser;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[derive(Parser)]
#[command(version, about)]
struct Args {
    /// Listen on this address; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:8443")]
    bind: SocketAddr,
    /// File for the objects; without it they are lost when the server stops
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Without --tls-cert the server makes certificates at each start; this is the file for its administrator's kubeconfig
    #[arg(long, value_name = "FILE", default_value = "admin.kubeconfig")]
    kubeconfig: PathBuf,
    /// The certificate of this server in PEM; needs --token-file or --behind
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Users and their bearer tokens: lines of token,user,uid,"group,group"
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    token_file: Option<PathBuf>,
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
    let mut builder = journal::kinds(Server::builder())?;
    if let Some(file) = &args.data {
        builder = builder.storage(open_sqlite(file, StoreOptions::default())?);
    }
    let (Some(chain), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        let access = LocalAccess::new("journal")?;
        let server = access.install(builder).build()?;
        let address = access.listen(&server, args.bind, &args.kubeconfig).await?;
        let run = run_until_signal(&server);
        println!("serving on https://{address}");
        return Ok(run.await?);
    };
    let (chain, key) = (read(chain)?, read(key)?);
    // What is read from the other server is kept fresh as long as this is.
    let mut _delegation = None;
    let tls = match (&args.behind, &args.token_file) {
        (Some(hub), _) => {
            let hub = RemoteApi::from_kubeconfig(hub)?;
            let (behind, tls, delegation) = builder.behind(hub, &chain, &key).await?;
            (builder, _delegation) = (behind, Some(delegation));
            tls
        }
        (None, Some(tokens)) => {
            builder = builder
                .authenticator(StaticTokens::parse(&read(tokens)?)?)
                .authorizer(MastersOnly);
            Tls::from_pem(&chain, &key, None)?
        }
        (None, None) => anyhow::bail!("--token-file or --behind must say who the users are"),
    };
    let server = builder.build()?;
    let address = server.listen(args.bind, Some(tls)).await?;
    let run = run_until_signal(&server);
    println!("serving on https://{address}");
    Ok(run.await?)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
