//! The first bytes of an HTTP/1.1 connection, read before hyper serves it: they decide how many headers a request may have.
//!
//! hyper reserves and fills memory for the maximum number of headers at every request. For 1,024 headers that costs more
//! than a small read does, so most connections have hyper's own limit of 100, which costs nothing. The higher limit is for
//! connections that may need it: those of front proxies and of clients that impersonate, which send a header per
//! group, and those that begin with many headers.

use crate::authn::CredentialHeaders;
use bytes::{Buf as _, Bytes};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes are read. Most heads are shorter.
const FIRST: usize = 4096;
/// A first request with more headers than this makes the higher limit apply.
const MANY: usize = 50;

/// Waits for the first bytes of a connection; they are empty if it was closed.
///
/// The buffer is on the stack of the poll that has bytes to read, so that an idle connection does not keep it.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    poll_fn(|cx| {
        let mut space = [0; FIRST];
        let mut buffer = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(Bytes::copy_from_slice(buffer.filled())))
    })
    .await
}

/// Returns whether requests of a connection that begins with these bytes may have many headers.
pub(super) fn may_have_many_headers(first: &[u8], credentials: &CredentialHeaders) -> bool {
    let Some(end) = first.windows(4).position(|four| four == b"\r\n\r\n") else {
        return true;
    };
    let mut count = 0;
    for line in first[..end].split(|byte| *byte == b'\n').skip(1) {
        count += 1;
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let name = str::from_utf8(name).unwrap_or_default();
        if !name.eq_ignore_ascii_case("authorization") && credentials.hold(name) {
            return true;
        }
    }
    count > MANY
}

/// A connection whose first bytes were read already.
pub(super) struct Begun<S> {
    first: Bytes,
    stream: S,
}

impl<S> Begun<S> {
    pub(super) fn new(first: Bytes, stream: S) -> Begun<S> {
        Begun { first, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.first.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, into);
        }
        let count = this.first.len().min(into.remaining());
        into.put_slice(&this.first[..count]);
        this.first.advance(count);
        if this.first.is_empty() {
            this.first = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        piece: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, piece)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[test]
    fn proxies_impersonators_and_long_heads_may_have_many_headers() {
        let with = |more: &str| {
            let head = format!("GET /api HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\n{more}\r\n");
            may_have_many_headers(head.as_bytes(), &CredentialHeaders::default())
        };
        assert!(!with(""));
        assert!(!with(&"X-A: b\r\n".repeat(40)));
        assert!(with(&"X-A: b\r\n".repeat(60)));
        assert!(with("Impersonate-User: c\r\n"));
        assert!(with("X-Remote-Group: c\r\n"));
        // The rest of the head is not known yet.
        assert!(may_have_many_headers(
            b"GET /api HTTP/1.1\r\nHost: a\r\n",
            &CredentialHeaders::default()
        ));
    }

    #[tokio::test]
    async fn the_first_bytes_are_read_again() {
        let (mut stream, rest): (&[u8], &[u8]) = (b"first", b" and rest");
        let first = read(&mut stream).await.expect("bytes");
        assert_eq!(first, "first");
        let mut all = String::new();
        let mut begun = Begun::new(first, rest);
        begun.read_to_string(&mut all).await.expect("bytes");
        assert_eq!(all, "first and rest");
    }

    /// Sends heads with so many headers over one connection, and returns the status line of each answer.
    async fn answers(address: std::net::SocketAddr, counts: &[usize]) -> Vec<String> {
        use tokio::io::AsyncWriteExt as _;
        let mut stream = tokio::net::TcpStream::connect(address)
            .await
            .expect("a connection");
        let mut all = Vec::new();
        for count in counts {
            let more: String = (0..*count).map(|at| format!("X-{at}: y\r\n")).collect();
            let head = format!("GET /livez HTTP/1.1\r\nHost: a\r\n{more}\r\n");
            stream
                .write_all(head.as_bytes())
                .await
                .expect("the head is sent");
            let mut answer = vec![0; 4096];
            let read = stream.read(&mut answer).await.expect("an answer");
            let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
            all.push(answer.lines().next().unwrap_or_default().to_owned());
        }
        all
    }

    #[tokio::test]
    async fn the_first_request_of_a_connection_decides_about_headers() {
        let server = crate::Server::builder()
            .build()
            .expect("a server in memory");
        let address = "127.0.0.1:0".parse().expect("an address");
        let address = server.listen(address, None).await.expect("a free port");
        let (fine, too_many) = (
            "HTTP/1.1 200 OK",
            "HTTP/1.1 431 Request Header Fields Too Large",
        );
        assert_eq!(answers(address, &[5, 20, 90]).await, [fine; 3]);
        assert_eq!(answers(address, &[900, 5, 900]).await, [fine; 3]);
        assert_eq!(answers(address, &[5, 900]).await, [fine, too_many]);
        assert_eq!(answers(address, &[2000]).await, [too_many]);
    }
}
