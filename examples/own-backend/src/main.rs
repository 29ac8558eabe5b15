//! A control plane with a custom storage engine: every write is a line in `bareboat.log`.
//!
//! The engine is in `lib.rs` and is tested with the store's conformance suite.
//!
//! ```text
//! cargo run -p own-backend                    # then, in another terminal:
//!
//! export KUBECONFIG=/dev/null                 # kubectl then asks localhost:8080, without credentials
//! kubectl create configmap hello --from-literal=a=b
//! tail -n 1 bareboat.log
//! ```

use bareboat::prelude::*;
use own_backend::TextLog;
use std::sync::Arc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let log = TextLog::open("bareboat.log")?;
    let server = Server::builder()
        .storage(Store::open(Arc::new(log), StoreOptions::default())?)
        .control_plane()
        .authenticator(Anonymous)
        .authorizer(AllowAll)
        .build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let address = server.listen(([127, 0, 0, 1], 8080).into(), None).await?;
    println!("a control plane is served on http://{address}");
    tokio::signal::ctrl_c().await?;
    drop(controllers);
    server.shut_down().await;
    Ok(())
}
