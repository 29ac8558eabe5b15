//! The streams of a session, as a function of a program uses them.

use bareboat_api::Value;
use bareboat_spdy::move_into;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// A stream that the client sends.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// A stream that the client reads. Writing waits while the client does not read.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// The size of the client's terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSize {
    /// The number of columns.
    pub width: u16,
    /// The number of lines.
    pub height: u16,
}

impl TerminalSize {
    pub(crate) fn json(self) -> String {
        format!("{{\"Width\":{},\"Height\":{}}}\n", self.width, self.height)
    }
}

/// The streams of one session. Streams that the client did not request are absent.
#[non_exhaustive]
pub struct CommandStreams {
    /// The standard input. It ends when the client closes it.
    pub stdin: Option<Input>,
    /// The standard output.
    pub stdout: Option<Output>,
    /// The standard error; absent with a terminal.
    pub stderr: Option<Output>,
    /// The sizes of the client's terminal, including the first size.
    pub resize: mpsc::Receiver<TerminalSize>,
}

impl std::fmt::Debug for CommandStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandStreams")
            .field("stdin", &self.stdin.is_some())
            .field("stdout", &self.stdout.is_some())
            .field("stderr", &self.stderr.is_some())
            .finish_non_exhaustive()
    }
}

/// Reads the byte chunks of a channel as a stream.
pub(crate) struct ChannelReader {
    pub(crate) pieces: mpsc::Receiver<Bytes>,
    pub(crate) rest: Bytes,
}

impl AsyncRead for ChannelReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.pieces.poll_recv(cx)) {
                Some(piece) => self.rest = piece,
                None => return Poll::Ready(Ok(())),
            }
        }
        move_into(&mut self.rest, into);
        Poll::Ready(Ok(()))
    }
}

/// Splits a stream of JSON objects into terminal sizes.
#[derive(Default)]
pub(crate) struct Sizes(Vec<u8>);

/// The maximum length of one size as text.
const LONGEST: usize = 1024;

impl Sizes {
    /// Takes bytes, and returns the sizes that are complete. Anything else is skipped.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<TerminalSize> {
        let mut found = Vec::new();
        for byte in bytes {
            self.0.push(*byte);
            if *byte == b'}' {
                let text = std::mem::take(&mut self.0);
                found.extend(parse(&text));
            }
            if self.0.len() > LONGEST {
                self.0.clear();
            }
        }
        found
    }
}

fn parse(text: &[u8]) -> Option<TerminalSize> {
    let value = bareboat_wire::json::parse(text.trim_ascii()).ok()?.value;
    let number = |name: &str| {
        let number = value.get(name).and_then(Value::as_i64)?;
        u16::try_from(number).ok()
    };
    Some(TerminalSize {
        width: number("Width")?,
        height: number("Height")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_however_they_are_cut() {
        let mut sizes = Sizes::default();
        assert!(sizes.take(b"{\"Width\":80,\"Hei").is_empty());
        let found = sizes.take(b"ght\":24}\n{\"Width\":1,\"Height\":2}{\"Width\":-1,\"Height\":2}");
        let size = |width, height| TerminalSize { width, height };
        assert_eq!(found, [size(80, 24), size(1, 2)]);
        assert!(sizes.take(&[b'x'; 5000]).is_empty());
        assert!(sizes.0.len() <= LONGEST);
    }
}
