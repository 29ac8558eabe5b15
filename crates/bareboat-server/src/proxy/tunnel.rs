//! Tunnels for upgraded connections (WebSocket, SPDY): copies bytes both ways until either side closes.

use super::Held;
use crate::outbound::Load;
use crate::server::state::Ending;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::io::{ReadHalf, WriteHalf};

/// How long the upgrade of each connection may take.
const HANDOVER: Duration = Duration::from_secs(30);
/// How many bytes of each direction are held.
const BUFFER: usize = 8 * 1024;

/// How long a tunnel goes on after one of its directions has ended.
#[derive(Clone, Copy)]
struct Patience {
    /// For the last bytes after the backend has ended or a direction has failed, and for closing.
    farewell: Duration,
    /// Without a byte from the backend, after the client has sent its last: the command may still run.
    silence: Duration,
}

const PATIENCE: Patience = Patience {
    farewell: Duration::from_secs(1),
    silence: Duration::from_secs(300),
};

/// Starts a task that copies bytes between two connections once both are upgraded; only a shutdown waits for it.
pub(super) fn start(client: OnUpgrade, backend: OnUpgrade, ending: Ending, held: (Held, Load)) {
    tokio::spawn(async move {
        let _held = held;
        let both = async { tokio::try_join!(client, backend) };
        let (client, backend) = tokio::select! {
            both = tokio::time::timeout(HANDOVER, both) => match both {
                Ok(Ok(both)) => both,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a connection was not upgraded");
                    return;
                }
                Err(_) => return,
            },
            () = ending.clone().begun() => return,
        };
        carry(TokioIo::new(client), TokioIo::new(backend), ending.begun()).await;
    });
}

/// Copies bytes between a client and the server it was connected to, and closes both connections at the end.
///
/// The tunnel ends soon after the backend has ended. After the client has sent its last byte, it ends when the backend
/// has been silent for five minutes.
pub async fn carry<C, B>(client: C, backend: B, ending: impl Future<Output = ()>)
where
    C: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let mut client = tokio::io::split(client);
    let mut backend = tokio::io::split(backend);
    tokio::select! {
        carried = copy_both(&mut client, &mut backend, PATIENCE) => {
            if let Err(error) = carried {
                tracing::debug!(%error, "a tunnel broke");
            }
        }
        () = ending => {}
    }
    let farewell = async { tokio::join!(client.1.shutdown(), backend.1.shutdown()) };
    let _ = tokio::time::timeout(PATIENCE.farewell, farewell).await;
}

/// Copies bytes both ways. When one direction has ended or failed, the other one may still finish: a peer that closes
/// without reading everything sent its last bytes before.
async fn copy_both<C: AsyncRead + AsyncWrite, B: AsyncRead + AsyncWrite>(
    client: &mut (ReadHalf<C>, WriteHalf<C>),
    backend: &mut (ReadHalf<B>, WriteHalf<B>),
    patience: Patience,
) -> std::io::Result<()> {
    let (sent, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let up = copy(&mut client.0, &mut backend.1, &sent);
    let down = copy(&mut backend.0, &mut client.1, &answered);
    tokio::pin!(up, down);
    tokio::select! {
        copied = &mut up => match copied {
            Ok(()) => tokio::select! {
                copied = down => copied,
                () = silence(&answered, patience.silence) => Ok(()),
            },
            Err(error) => {
                let _ = tokio::time::timeout(patience.farewell, down).await;
                Err(error)
            }
        },
        copied = &mut down => {
            let rest = tokio::time::timeout(patience.farewell, up).await;
            copied.and(rest.unwrap_or(Ok(())))
        }
    }
}

/// Copies bytes one way, counts them, and passes the end on.
async fn copy<C: AsyncRead, B: AsyncWrite>(
    from: &mut ReadHalf<C>,
    to: &mut WriteHalf<B>,
    count: &AtomicU64,
) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        count.fetch_add(read as u64, Ordering::Relaxed);
        to.write_all(&buffer[..read]).await?;
        to.flush().await?;
    }
}

/// Waits until a count has not changed for this long, and at most twice as long.
async fn silence(count: &AtomicU64, limit: Duration) {
    let mut before = count.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(limit).await;
        let now = count.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests;
