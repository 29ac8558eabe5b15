//! No HTTP/2, without the feature `http2`: handshakes do not offer it, so that clients speak HTTP/1.1.

use super::carrier::Carrier;
use super::state::Ending;
use crate::connections::Line;
use crate::work::Threads;
use std::sync::Arc;

/// The protocols that handshakes offer.
pub(crate) const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// Closes a connection. It is not called: no client can choose HTTP/2.
pub(super) async fn serve<S>(
    _: Carrier,
    _: S,
    _: Ending,
    _: &Arc<Line>,
    _: &Threads,
) -> Option<hyper::Result<()>> {
    None
}
