//! A control plane with two custom admission rules, which are in `lib.rs`.
//!
//! ```text
//! cargo run -p admission                      # then, in another terminal:
//!
//! export KUBECONFIG=/dev/null                 # kubectl then asks localhost:8080, without credentials
//! kubectl create configmap small --from-literal=a=1
//! kubectl get configmap small --show-labels   # created-by=system.anonymous
//! kubectl create configmap big --from-literal={a,b,c,d}=1         # rejected
//! kubectl label namespace default large=yes                       # … until its namespace allows it
//! ```

use admission::{CreatedBy, FewKeys};
use bareboat::prelude::*;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::builder()
        .control_plane()
        .mutator(CreatedBy)
        .validator(FewKeys)
        .authenticator(Anonymous)
        .authorizer(AllowAll)
        .build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let address = server.listen(([127, 0, 0, 1], 8080).into(), None).await?;
    println!("a control plane with two rules is served on http://{address}");
    tokio::signal::ctrl_c().await?;
    drop(controllers);
    server.shut_down().await;
    Ok(())
}
