//! The newest lines of a log in memory, as `pods/log` reads them: with a tail, with times, and followed.

use crate::command::Output;
use crate::handlers::{LogWriter, log_body};
use crate::options::LogOptions;
use bareboat_server::reply::Body;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::sync::watch;

/// Longer lines are cut in pieces.
const LONGEST: u64 = 64 * 1024;

/// The newest lines that something wrote. Clones share them.
#[derive(Clone)]
pub struct LogBuffer(Arc<Inner>);

bareboat_api::opaque_debug!(LogBuffer);

struct Inner {
    most: usize,
    lines: Mutex<Lines>,
    /// The number of lines until now, and whether there will be no more.
    state: watch::Sender<(usize, bool)>,
}

#[derive(Default)]
struct Lines {
    /// The number of the first line that is kept.
    first: usize,
    kept: VecDeque<Line>,
}

/// A line with its end, and when it was written.
#[derive(Clone)]
struct Line {
    at: Timestamp,
    text: Bytes,
}

impl LogBuffer {
    /// A log that keeps this many lines.
    pub fn new(most: usize) -> LogBuffer {
        LogBuffer(Arc::new(Inner {
            most,
            lines: Mutex::default(),
            state: watch::Sender::new((0, false)),
        }))
    }

    /// Adds a line, which should end in a newline.
    pub fn push(&self, text: impl Into<Bytes>) {
        let mut lines = self.0.lines.lock();
        lines.kept.push_back(Line {
            at: Timestamp::now(),
            text: text.into(),
        });
        if lines.kept.len() > self.0.most {
            lines.kept.pop_front();
            lines.first += 1;
        }
        let next = lines.first + lines.kept.len();
        drop(lines);
        self.0.state.send_modify(|state| state.0 = next);
    }

    /// Adds all lines of a stream, until it ends.
    pub async fn keep(&self, stream: impl AsyncRead + Unpin) {
        let mut stream = BufReader::new(stream);
        loop {
            let mut text = Vec::new();
            let mut line = (&mut stream).take(LONGEST);
            match line.read_until(b'\n', &mut text).await {
                Ok(0) | Err(_) => return,
                Ok(_) => self.push(text),
            }
        }
    }

    /// Notes that there will be no more lines, so that followers end.
    pub fn end(&self) {
        self.0.state.send_modify(|state| state.1 = true);
    }

    /// Returns what a request for the log asks for.
    pub fn read(&self, options: &LogOptions) -> Body {
        let (writer, body) = log_body();
        let (log, options) = (self.clone(), options.clone());
        tokio::spawn(async move { log.send(&writer, &options).await });
        body
    }

    async fn send(&self, writer: &LogWriter, options: &LogOptions) {
        let mut state = self.0.state.subscribe();
        let (lines, mut next) = self.from(0);
        let mut left = options
            .limit_bytes
            .map(|most| usize::try_from(most).unwrap_or(0));
        for line in selected(lines, options) {
            if !send(writer, &mut left, &line, options).await {
                return;
            }
        }
        if !options.follow {
            return;
        }
        loop {
            let ended = state.borrow_and_update().1;
            let (lines, end) = self.from(next);
            next = end;
            for line in lines {
                if !send(writer, &mut left, &line, options).await {
                    return;
                }
            }
            if ended {
                return;
            }
            tokio::select! {
                _ = state.changed() => {}
                () = writer.closed() => return,
            }
        }
    }

    /// Copies lines from now on, until the log ends or the client leaves.
    pub async fn follow(&self, mut output: Output) {
        let mut state = self.0.state.subscribe();
        let mut next = state.borrow().0;
        loop {
            let ended = state.borrow_and_update().1;
            let (lines, end) = self.from(next);
            next = end;
            for line in lines {
                if output.write_all(&line.text).await.is_err() {
                    return;
                }
            }
            let _ = output.flush().await;
            if ended || state.changed().await.is_err() {
                let _ = output.shutdown().await;
                return;
            }
        }
    }

    /// Returns the kept lines from a number on, and the number of the next line.
    fn from(&self, number: usize) -> (Vec<Line>, usize) {
        let lines = self.0.lines.lock();
        let skipped = number.saturating_sub(lines.first);
        let found = lines.kept.iter().skip(skipped).cloned().collect();
        (found, lines.first + lines.kept.len())
    }
}

/// The lines that time and tail of the options select.
fn selected(mut lines: Vec<Line>, options: &LogOptions) -> Vec<Line> {
    let seconds = options.since_seconds.map(SignedDuration::from_secs);
    let seconds = seconds.and_then(|ago| Timestamp::now().checked_sub(ago).ok());
    let time = options.since_time.as_ref();
    let since = seconds.or_else(|| time.and_then(|text| text.parse().ok()));
    lines.retain(|line| since.is_none_or(|since| line.at >= since));
    if let Some(tail) = options.tail_lines {
        let tail = usize::try_from(tail).unwrap_or(0);
        lines.drain(..lines.len().saturating_sub(tail));
    }
    lines
}

/// Sends as much of a line as the limit allows; returns whether more may be sent.
async fn send(
    writer: &LogWriter,
    left: &mut Option<usize>,
    line: &Line,
    options: &LogOptions,
) -> bool {
    let mut text = match options.timestamps {
        true => [format!("{:.9} ", line.at).as_bytes(), &line.text]
            .concat()
            .into(),
        false => line.text.clone(),
    };
    if let Some(left) = left {
        text.truncate(*left);
        *left -= text.len();
    }
    writer.write(text).await && *left != Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    async fn read(log: &LogBuffer, change: impl FnOnce(&mut LogOptions)) -> String {
        let mut options = LogOptions::default();
        change(&mut options);
        let bytes = log.read(&options).collect().await;
        let bytes = bytes.expect("a log can be read").to_bytes();
        String::from_utf8(bytes.to_vec()).expect("it is text")
    }

    #[tokio::test]
    async fn a_log_has_its_newest_lines_and_a_tail() {
        let log = LogBuffer::new(3);
        for line in ["a\n", "b\n", "c\n", "d\n"] {
            log.push(line);
        }
        assert_eq!(read(&log, |_| {}).await, "b\nc\nd\n");
        assert_eq!(
            read(&log, |options| options.tail_lines = Some(1)).await,
            "d\n"
        );
        assert_eq!(
            read(&log, |options| options.limit_bytes = Some(3)).await,
            "b\nc"
        );
        let stamped = read(&log, |options| options.timestamps = true).await;
        assert!(stamped.lines().all(|line| line.contains("Z ")), "{stamped}");
    }

    #[tokio::test]
    async fn a_follower_gets_later_lines_until_the_log_ends() {
        let log = LogBuffer::new(3);
        log.push("a\n");
        let following = read(&log, |options| options.follow = true);
        let writing = async {
            log.keep(&b"b\nc"[..]).await;
            log.end();
        };
        let (text, ()) = tokio::join!(following, writing);
        assert_eq!(text, "a\nb\nc");
    }
}
