//! Tunnels for upgraded connections (WebSocket, SPDY): copies bytes both ways until either side closes.

use super::Held;
use crate::outbound::Load;
use crate::server::state::Ending;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};

/// How long the upgrade of each connection may take.
const HANDOVER: Duration = Duration::from_secs(30);
/// How long closing may take.
const FAREWELL: Duration = Duration::from_secs(1);

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
        carry(client, backend, ending).await;
    });
}

async fn carry(client: Upgraded, backend: Upgraded, ending: Ending) {
    let mut client = tokio::io::split(TokioIo::new(client));
    let mut backend = tokio::io::split(TokioIo::new(backend));
    tokio::select! {
        carried = copy_both(&mut client, &mut backend) => {
            if let Err(error) = carried {
                tracing::debug!(%error, "a tunnel broke");
            }
        }
        () = ending.begun() => {}
    }
    let farewell = async { tokio::join!(client.1.shutdown(), backend.1.shutdown()) };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// Copies bytes both ways until both directions have ended. If one of them fails, the other one may still finish: a peer
/// that closes without reading everything sent its last bytes before.
async fn copy_both<C: AsyncRead + AsyncWrite, B: AsyncRead + AsyncWrite>(
    client: &mut (ReadHalf<C>, WriteHalf<C>),
    backend: &mut (ReadHalf<B>, WriteHalf<B>),
) -> std::io::Result<()> {
    let up = copy(&mut client.0, &mut backend.1);
    let down = copy(&mut backend.0, &mut client.1);
    tokio::pin!(up, down);
    tokio::select! {
        copied = &mut up => match copied {
            Ok(()) => down.await,
            Err(error) => {
                let _ = tokio::time::timeout(FAREWELL, down).await;
                Err(error)
            }
        },
        copied = &mut down => match copied {
            Ok(()) => up.await,
            Err(error) => {
                let _ = tokio::time::timeout(FAREWELL, up).await;
                Err(error)
            }
        },
    }
}

/// Copies bytes one way, and passes the end on.
async fn copy<C: AsyncRead, B: AsyncWrite>(
    from: &mut ReadHalf<C>,
    to: &mut WriteHalf<B>,
) -> std::io::Result<()> {
    tokio::io::copy(from, to).await?;
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, duplex, split};

    #[tokio::test]
    async fn the_last_bytes_of_a_backend_that_stops_reading_arrive() {
        let (mut kubectl, client) = duplex(1 << 20);
        let (mut kubelet, backend) = duplex(64);
        // More than the kubelet ever reads.
        kubectl.write_all(&[b'x'; 4096]).await.unwrap();
        kubelet.write_all(b"done").await.unwrap();
        drop(kubelet);
        let (mut client, mut backend) = (split(client), split(backend));
        copy_both(&mut client, &mut backend).await.unwrap_err();
        drop(client);
        let mut answer = Vec::new();
        kubectl.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"done");
    }
}
