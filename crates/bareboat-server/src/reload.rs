//! Files that are read again when they change, without a restart.
//!
//! ```no_run
//! # mod bareboat { pub mod server { pub use bareboat_server::*; } }
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use bareboat::server::reload::{ReloadMetrics, WatchedFiles};
//!
//! let metrics = ReloadMetrics::controller("authorization");
//! let mut files = WatchedFiles::new("authorization configuration", ["authz.yaml"]).metrics(&metrics);
//! let first = files.read()?; // at the start: an error here ends the start
//! let _guard = files.start(|contents| async move {
//!     // Parse all of it, then swap. An error keeps what was there before.
//!     let text = contents.text(0)?;
//!     drop(text);
//!     Ok(())
//! });
//! # Ok(()) }
//! ```
//!
//! Several files (a certificate and its key) are one unit: they are reloaded together. New contents are used when two
//! checks in a row found the same bytes, so that a file that is being written is not read. Contents that the callback
//! rejects are logged and counted, and tried again every minute: they may depend on another server, such as a token
//! issuer.

mod metrics;

pub use metrics::ReloadMetrics;

use sha2::{Digest as _, Sha256};
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

/// How often files are checked.
const EVERY: Duration = Duration::from_secs(1);
/// How long to wait before rejected contents are tried again.
const RETRY: Duration = Duration::from_secs(60);
/// Held while files are read: all sets of files then need one thread instead of one each.
static TURN: Semaphore = Semaphore::const_new(1);
/// A file system that does not answer delays other sets of files at most this long.
const LONGEST_TURN: Duration = Duration::from_secs(5);
/// Maximum size of a file.
const LARGEST: u64 = 16 << 20;

type Digest = [u8; 32];

/// Files that are reloaded together, in the given order.
pub struct WatchedFiles {
    what: String,
    paths: Vec<PathBuf>,
    every: Duration,
    metrics: Option<ReloadMetrics>,
    /// The last contents in use.
    taken: Option<Digest>,
}

bareboat_api::opaque_debug!(WatchedFiles);

/// The contents of the files at one time.
#[derive(Clone)]
pub struct Contents(Vec<Vec<u8>>);

bareboat_api::opaque_debug!(Contents);

/// Watches the files until it is dropped.
pub struct Following(JoinHandle<()>);

bareboat_api::opaque_debug!(Following);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Contents {
    /// Returns the bytes of a file; empty if there is no such file.
    pub fn bytes(&self, index: usize) -> &[u8] {
        self.0.get(index).map_or(&[], Vec::as_slice)
    }

    /// Returns the text of a file.
    pub fn text(&self, index: usize) -> Result<&str, String> {
        std::str::from_utf8(self.bytes(index)).map_err(|_| "the file is not UTF-8".to_owned())
    }

    fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        for file in &self.0 {
            hash.update((file.len() as u64).to_le_bytes());
            hash.update(file);
        }
        hash.finalize().into()
    }
}

/// Waits until no other files are read.
async fn turn() -> Option<SemaphorePermit<'static>> {
    match TURN.try_acquire() {
        Ok(turn) => Some(turn),
        Err(_) => {
            let turn = tokio::time::timeout(LONGEST_TURN, TURN.acquire()).await;
            turn.ok().and_then(Result::ok)
        }
    }
}

impl WatchedFiles {
    /// Files to watch; `what` describes them in logs and metrics, such as `client CA`.
    pub fn new(
        what: impl Into<String>,
        paths: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> WatchedFiles {
        WatchedFiles {
            what: what.into(),
            paths: paths.into_iter().map(Into::into).collect(),
            every: EVERY,
            metrics: None,
            taken: None,
        }
    }

    /// Counts reloads in these metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: &ReloadMetrics) -> WatchedFiles {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Sets how often the files are checked; the default is once a second.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> WatchedFiles {
        self.every = interval;
        self
    }

    /// Reads the files now. [`WatchedFiles::start`] reports contents that differ from these.
    pub fn read(&mut self) -> io::Result<Contents> {
        let contents = read_all(&self.paths)?;
        let digest = contents.digest();
        self.taken = Some(digest);
        if let Some(metrics) = &self.metrics {
            metrics.loaded(&digest);
        }
        Ok(contents)
    }

    /// Watches the files until the guard is dropped, and calls `take` with new contents.
    ///
    /// If `take` fails, the caller must keep using the old contents. The error is logged, so it must not contain
    /// secrets.
    pub fn start<F, Fut>(self, take: F) -> Following
    where
        F: FnMut(Contents) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Following(tokio::spawn(self.follow(take)))
    }

    async fn follow<F, Fut>(mut self, mut take: F)
    where
        F: FnMut(Contents) -> Fut,
        Fut: Future<Output = Result<(), String>>,
    {
        let mut looks = Looks::default();
        // Rejected contents, and when to try them again.
        let mut refused: Option<(Digest, Instant)> = None;
        let mut unreadable: Option<String> = None;
        loop {
            tokio::time::sleep(self.every).await;
            let paths = self.paths.clone();
            let known = looks;
            let turn = turn().await;
            let looked = tokio::task::spawn_blocking(move || known.look(&paths)).await;
            drop(turn);
            let Ok((next, found)) = looked else {
                return;
            };
            looks = next;
            let contents = match found {
                Found::Unsettled => continue,
                Found::Settled(contents) => contents,
                Found::Unreadable(why) => {
                    // Logged once for each reason.
                    if unreadable.as_ref() != Some(&why) {
                        self.report(Err(&why));
                        unreadable = Some(why);
                    }
                    continue;
                }
            };
            unreadable = None;
            let digest = contents.digest();
            let rests = refused.is_some_and(|(bad, until)| bad == digest && Instant::now() < until);
            if self.taken == Some(digest) || rests {
                continue;
            }
            match take(contents).await {
                Ok(()) => {
                    self.taken = Some(digest);
                    refused = None;
                    self.report(Ok(&digest));
                }
                Err(why) => {
                    refused = Some((digest, Instant::now() + RETRY));
                    self.report(Err(&why));
                }
            }
        }
    }

    fn report(&self, outcome: Result<&Digest, &str>) {
        match outcome {
            Ok(_) => tracing::info!(what = %self.what, "reloaded from its file"),
            Err(why) => tracing::error!(
                what = %self.what, file = %self.names(), %why,
                "the changed file cannot be used; its previous content stays in use"
            ),
        }
        if let Some(metrics) = &self.metrics {
            metrics.reloaded(&self.what, outcome.ok());
        }
    }

    fn names(&self) -> String {
        let names: Vec<String> = self
            .paths
            .iter()
            .map(|it| it.display().to_string())
            .collect();
        names.join(", ")
    }
}

/// File attributes that show whether a file was written, without reading it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    fn of(metadata: &Metadata) -> Mark {
        Mark {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The results of the last checks.
#[derive(Default)]
struct Looks {
    marks: Vec<Mark>,
    contents: Option<Contents>,
}

enum Found {
    /// The files were written since the last check, or are being written.
    Unsettled,
    Settled(Contents),
    Unreadable(String),
}

impl Looks {
    /// Checks the files. Those with unchanged attributes are not read again.
    fn look(mut self, paths: &[PathBuf]) -> (Looks, Found) {
        let marks: io::Result<Vec<Mark>> = paths
            .iter()
            .map(|path| named(path, fs::metadata(path)).map(|found| Mark::of(&found)))
            .collect();
        let marks = match marks {
            Ok(marks) => marks,
            Err(error) => return (Looks::default(), Found::Unreadable(error.to_string())),
        };
        if marks == self.marks
            && let Some(contents) = &self.contents
        {
            let contents = contents.clone();
            return (self, Found::Settled(contents));
        }
        match read_all(paths) {
            Ok(contents) => {
                self.marks = marks;
                self.contents = Some(contents);
                (self, Found::Unsettled)
            }
            Err(error) => (Looks::default(), Found::Unreadable(error.to_string())),
        }
    }
}

fn read_all(paths: &[PathBuf]) -> io::Result<Contents> {
    let files: io::Result<Vec<Vec<u8>>> = paths.iter().map(|path| read(path)).collect();
    files.map(Contents)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = named(path, fs::File::open(path))?;
    named(path, file.take(LARGEST + 1).read_to_end(&mut bytes))?;
    if bytes.len() as u64 > LARGEST {
        return named(path, Err(io::Error::other("it is larger than 16 MiB")));
    }
    Ok(bytes)
}

/// Adds the path of the file to an error.
fn named<T>(path: &Path, outcome: io::Result<T>) -> io::Result<T> {
    outcome.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{} cannot be read: {error}", path.display()),
        )
    })
}

#[cfg(test)]
mod tests;
