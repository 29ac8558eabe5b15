//! What all TCP connections here have in common, whoever made them.

use socket2::{SockRef, TcpKeepalive};
use std::time::Duration;
use tokio::net::TcpStream;

/// After so much silence a peer is asked whether it is still there, and then so often.
const SILENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15));

/// Sends small messages at once, and notices peers that vanished: somebody may wait for years otherwise, in a tunnel
/// in which nothing is said.
pub(crate) fn tune(stream: &TcpStream) {
    let alive = TcpKeepalive::new()
        .with_time(SILENCE.0)
        .with_interval(SILENCE.1);
    // A connection that cannot be tuned, because it has just ended, will say so itself.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&alive);
}
