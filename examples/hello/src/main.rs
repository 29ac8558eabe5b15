//! A custom API server: the kind Foo with two versions.
//!
//! It shows kinds from Rust structs, defaults, conversion in both directions, columns, a short name and a status
//! subresource. Nothing is generated. Fields that `From` does not convert are kept.
//!
//! README.md has a session to paste.

use bareboat::prelude::*;
use bareboat::{LocalAccess, run_until_signal};
use clap::Parser;
use std::path::PathBuf;

/// `v1`: two messages.
#[derive(Serialize, Deserialize, JsonSchema)]
struct FooV1 {
    spec: SpecV1,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct SpecV1 {
    /// The first message.
    msg: String,
    /// The second message.
    #[serde(default = "and_then")]
    msg1: String,
}

/// `v2`: the messages moved, and there are an image and a status.
#[derive(Serialize, Deserialize, JsonSchema)]
struct FooV2 {
    spec: SpecV2,
    status: Option<Status>,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct SpecV2 {
    /// The image to run.
    #[serde(default = "image")]
    image: String,
    config: SpecV1,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct Status {
    /// The present phase.
    phase: String,
}

fn and_then() -> String {
    "and then?".to_owned()
}
fn image() -> String {
    "busybox:1.37".to_owned()
}

impl From<FooV1> for FooV2 {
    fn from(v1: FooV1) -> FooV2 {
        let (image, config) = (image(), v1.spec);
        FooV2 {
            spec: SpecV2 { image, config },
            status: None,
        }
    }
}
impl From<FooV2> for FooV1 {
    fn from(v2: FooV2) -> FooV1 {
        FooV1 {
            spec: v2.spec.config,
        }
    }
}

fn foos() -> Result<Kind, bareboat::TypedKindError> {
    TypedKind::new("hello.zeng.dev", "foos", "Foo")
        .short_name("fo")
        .version::<FooV2>("v2")
        .column("Image", ".spec.image")
        .column("Message", ".spec.config.msg")
        .column("Phase", ".status.phase")
        .version::<FooV1>("v1")
        .column("Message", ".spec.msg")
        .convert::<FooV1, FooV2>("v1", "v2")
        .build()
}

#[derive(Parser)]
struct Args {
    /// Local port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 8443)]
    port: u16,
    /// File for the objects; without it they are lost when the server stops
    #[arg(long)]
    sqlite: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let access = LocalAccess::new("hello")?;
    let mut server = access.install(Server::builder()).kind(foos()?);
    if let Some(file) = args.sqlite {
        server = server.storage(open_sqlite(file, StoreOptions::default())?);
    }
    let server = server.build()?;
    let address = ([127, 0, 0, 1], args.port).into();
    let address = access.listen(&server, address, "hello.kubeconfig").await?;
    println!("serving foos on https://{address}");
    Ok(run_until_signal(&server).await?)
}
