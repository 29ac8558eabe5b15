//! Splits the stream of a watch into lines of limited length.

use crate::api::{MemberError, Pieces};
use bytes::{Buf as _, Bytes, BytesMut};
use std::collections::VecDeque;

/// The lines of a stream.
pub(super) struct Lines {
    /// Lines that were read too early.
    returned: VecDeque<Bytes>,
    body: Box<dyn Pieces>,
    buffer: BytesMut,
    /// How much of the buffer has no line break.
    searched: usize,
    longest: usize,
}

impl Lines {
    pub(super) fn new(body: Box<dyn Pieces>, longest: usize) -> Lines {
        Lines {
            returned: VecDeque::new(),
            body,
            buffer: BytesMut::new(),
            searched: 0,
            longest,
        }
    }

    /// Gives back lines, which are the next ones then.
    pub(super) fn give_back(&mut self, lines: &[Bytes]) {
        for line in lines.iter().rev() {
            self.returned.push_front(line.clone());
        }
    }

    /// Returns the next line that is not empty; `None` at the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, MemberError>> {
        if let Some(line) = self.returned.pop_front() {
            return Some(Ok(line));
        }
        loop {
            let found = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n');
            if let Some(at) = found {
                let line = self.buffer.split_to(self.searched + at).freeze();
                self.buffer.advance(1);
                self.searched = 0;
                if self.buffer.is_empty() {
                    // A watch is mostly silent after it brought the present state: it keeps no memory of it.
                    self.buffer = BytesMut::new();
                }
                if !line.is_empty() {
                    return Some(Ok(line));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if self.searched > self.longest {
                return Some(Err(MemberError::TooLarge(self.longest)));
            }
            match self.body.next().await {
                Some(Ok(piece)) => self.buffer.extend_from_slice(&piece),
                Some(Err(why)) => return Some(Err(MemberError::Unreachable(why))),
                None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::kind::BoxFuture;

    struct Given(Vec<&'static str>);

    impl Pieces for Given {
        fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
            let piece = (!self.0.is_empty()).then(|| Ok(Bytes::from(self.0.remove(0))));
            Box::pin(std::future::ready(piece))
        }
    }

    async fn lines(pieces: Vec<&'static str>) -> Vec<String> {
        let mut lines = Lines::new(Box::new(Given(pieces)), 10);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(match line {
                Ok(line) => String::from_utf8_lossy(&line).into_owned(),
                Err(error) => return vec![error.to_string()],
            });
        }
        all
    }

    #[tokio::test]
    async fn lines_may_be_in_several_pieces() {
        assert_eq!(
            lines(vec!["a\nb", "c", "\n\n", "d\ne"]).await,
            ["a", "bc", "d"]
        );
    }

    #[tokio::test]
    async fn lines_that_are_given_back_come_again() {
        let mut lines = Lines::new(Box::new(Given(vec!["a\nb\nc\n"])), 10);
        let mut read = Vec::new();
        for _ in 0..2 {
            read.extend(lines.next().await.and_then(Result::ok));
        }
        lines.give_back(&read);
        let mut all = Vec::new();
        while let Some(Ok(line)) = lines.next().await {
            all.push(line);
        }
        assert_eq!(all, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn endless_lines_are_refused() {
        let endless = lines(vec!["12345678", "12345678"]).await;
        assert_eq!(endless, ["the answer has more than 10 bytes"]);
    }
}
