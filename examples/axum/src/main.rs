//! An axum program that serves the Kubernetes API together with its own routes; the router is in `lib.rs`.
//!
//! ```text
//! cargo run -p axum-app                       # then, in another terminal:
//!
//! curl localhost:8080/
//! kubectl --server http://localhost:8080 --token secret create configmap hello --from-literal=a=b
//! kubectl --server http://localhost:8080 --token secret get configmaps
//! ```

use bareboat::prelude::*;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::builder().control_plane().build()?;
    let controllers = bareboat::control_plane::start(&server).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, axum_app::router(server.clone()))
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    drop(controllers);
    server.shut_down().await;
    Ok(())
}
