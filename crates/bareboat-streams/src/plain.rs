//! Plain byte streams over WebSockets, for subresources such as a serial console.

use crate::command::{Input, Output};
use crate::upgrade::{self, Asked};
use crate::websocket::Tunnel;
use bareboat_api::Status;
use bareboat_server::Visit;
use bareboat_server::reply::Response;

/// Answers a request that upgrades to a WebSocket with this subprotocol. `function` gets the payloads of its binary messages
/// as two byte streams; the input ends when the client closes the WebSocket. Shutting down the output closes it.
///
/// The future of `function` is dropped when the client loses its permission or the server shuts down.
///
/// ```
/// # mod bareboat { pub mod prelude { pub use bareboat_server::Connector; } pub mod streams { pub use bareboat_streams::*; } }
/// use bareboat::prelude::*;
/// use bareboat::streams;
/// use tokio::io::{AsyncWriteExt as _, copy};
///
/// let echo = Connector::program(|visit| async move {
///     streams::websocket(&visit, "plain.example.com", |mut input, mut output| async move {
///         let _ = copy(&mut input, &mut output).await;
///         let _ = output.shutdown().await;
///     })
/// });
/// # drop(echo);
/// ```
pub fn websocket<F, R>(
    visit: &Visit,
    subprotocol: &'static str,
    function: F,
) -> Result<Response, Status>
where
    F: FnOnce(Input, Output) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let headers = visit.request.headers();
    let (asked, connection) = upgrade::asked(&visit.request)?;
    let offered = upgrade::subprotocols(headers).any(|name| name == subprotocol);
    if asked != Asked::WebSocket || !offered {
        return Err(Status::bad_request(format!(
            "a WebSocket with the subprotocol {subprotocol} is required"
        )));
    }
    let response = upgrade::accept_websocket(headers, Some(subprotocol))?;
    let life = visit.calls.life();
    tokio::spawn(async move {
        let Some(io) = upgrade::take(connection).await else {
            return;
        };
        let (input, output) = tokio::io::split(Tunnel::new(io).await);
        tokio::select! {
            () = function(Box::new(input), Box::new(output)) => {}
            () = life.ended() => {}
        }
    });
    Ok(response)
}
