//! Runs a server until the process is asked to stop.

use bareboat_process::release_code;
use bareboat_server::Server;
use std::io;
use std::time::Duration;
use tokio::runtime::Handle;

/// When the start of a program is over, including what it does in the background.
const START: Duration = Duration::from_secs(1);

/// Waits for SIGINT or SIGTERM, then shuts the server down. A second after the start it unmaps the code of the program that only
/// the start needed.
///
/// Within a runtime of tokio, signals are caught from the call on, before the future is awaited. A program that prints that it serves
/// calls this first. Outside of a runtime, and on systems other than Unix, signals are caught when the future is first polled.
///
/// ```no_run
/// use bareboat::prelude::*;
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder().build()?;
/// let address = server.listen("127.0.0.1:8080".parse()?, None).await?;
/// let run = bareboat::run_until_signal(&server);
/// println!("serving on http://{address}");
/// run.await?;
/// # Ok(()) }
/// ```
pub fn run_until_signal(server: &Server) -> impl Future<Output = io::Result<()>> {
    let caught = Handle::try_current().map(|_| Signals::catch());
    async move {
        let mut signals = match caught {
            Ok(signals) => signals?,
            Err(_) => Signals::catch()?,
        };
        let mut end = std::pin::pin!(signals.first());
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
}

/// The signals that end a program.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn catch() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn first(&mut self) -> io::Result<()> {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        Ok(())
    }
}

/// The signal that ends a program.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn catch() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn first(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}
