//! Runs a server until the process is asked to stop.

use bareboat_process::release_code;
use bareboat_server::Server;
use std::io;
use std::time::Duration;

/// When the start of a program is over, including what it does in the background.
const START: Duration = Duration::from_secs(1);

/// Waits for SIGINT or SIGTERM, then shuts the server down. A second after the start it unmaps the code of the program that only
/// the start needed.
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
    let mut end = std::pin::pin!(signalled());
    tokio::select! {
        ended = &mut end => ended?,
        () = tokio::time::sleep(START) => {
            release_code();
            end.await?;
        }
    }
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
