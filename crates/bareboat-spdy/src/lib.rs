//! SPDY/3.1, the protocol of `kubectl exec`, `attach` and `port-forward` on connections that were upgraded.
//!
//! Only what Kubernetes uses is here: streams with headers, data, half-close, resets, pings and GOAWAY. Peers in Go
//! neither send nor honour flow control windows, so a slow reader of one stream stops the whole connection, and TCP slows
//! down its peer. The caller upgrades the connection; this crate has no HTTP.

mod connection;
mod dictionary;
mod frame;
mod headers;
mod inflate;
mod pieces;

pub use connection::{
    Connection, Driver, Incoming, Role, Settings, Stream, StreamReader, StreamWriter,
};
pub use frame::{Decoder, Frame, ResetCode, encode};
pub use headers::{HeaderEncoder, Headers};
pub use pieces::move_into;

/// Why a connection or a stream failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpdyError {
    /// The peer broke the protocol.
    #[error("SPDY protocol error: {0}")]
    Protocol(&'static str),
    /// The peer refused or reset the stream.
    #[error("the stream was reset ({0:?})")]
    Reset(ResetCode),
    /// The connection has ended.
    #[error("the connection is closed")]
    Closed,
    /// The peer did not accept a stream, or did not read the last frames, in time.
    #[error("the peer did not answer or read in time")]
    Timeout,
    /// Reading or writing failed.
    #[error("reading or writing the connection failed")]
    Io(#[from] std::io::Error),
}
