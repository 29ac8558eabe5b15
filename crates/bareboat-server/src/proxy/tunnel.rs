//! Tunnels for upgraded connections (WebSocket, SPDY): copies bytes both ways until either side closes.

use super::Held;
use crate::outbound::Load;
use crate::server::state::Ending;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

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
    let (mut client, mut backend) = (TokioIo::new(client), TokioIo::new(backend));
    tokio::select! {
        carried = tokio::io::copy_bidirectional(&mut client, &mut backend) => {
            if let Err(error) = carried {
                tracing::debug!(%error, "a tunnel broke");
            }
        }
        () = ending.begun() => {}
    }
    let farewell = async { tokio::join!(client.shutdown(), backend.shutdown()) };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}
