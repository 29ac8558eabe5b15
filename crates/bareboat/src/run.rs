//! Runs a server until the process is asked to stop.

use bareboat_server::Server;
use std::io;

/// Waits for SIGINT or SIGTERM, then shuts the server down.
///
/// ```no_run
/// use bareboat::prelude::*;
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder().build()?;
/// server.listen("127.0.0.1:8080".parse()?, None).await?;
/// bareboat::run_until_signal(&server).await?;
/// # Ok(()) }
/// ```
pub async fn run_until_signal(server: &Server) -> io::Result<()> {
    signalled().await?;
    server.shut_down().await;
    Ok(())
}

#[cfg(unix)]
async fn signalled() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn signalled() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
