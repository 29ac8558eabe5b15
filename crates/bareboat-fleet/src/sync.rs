//! The sync of one type of one member: the present state if there is no version to resume from, then a watch, again and again.
//!
//! Rows and the version that covers them are written in one transaction, so that a crash at any point loses nothing: the watch
//! continues at the version that was saved. The task of a type never decides that a type is gone; it ends, and the member's
//! session asks the member what it serves.

mod backoff;
mod initial;
mod lines;
mod pages;
mod parse;
mod redact;
pub(crate) mod writer;

pub(crate) use initial::Streaming;
pub(crate) use redact::Redaction;

use crate::api::{MemberApi, MemberError, refused};
use crate::discovery::ApiResource;
use crate::options::SyncOptions;
use crate::settings::FleetSettings;
use backoff::{Allowance, Backoff};
use bareboat_shelf::{Batch, KindId, MemberId, Progress};
use lines::Lines;
use parse::{Ended, Events, Reader};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use writer::{WriteError, Writer};

/// The most events of one batch.
const BATCH: usize = 500;
/// The most bytes of one batch.
const BATCH_BYTES: usize = 4 << 20;
/// How long a batch is collected.
const COLLECT: Duration = Duration::from_millis(10);
/// Up to this many bytes are parsed at once, such as a bookmark: another thread would cost more.
const SHORT: usize = 4 << 10;
/// How a bookmark begins. It comes when nothing happens, so no events are waited for.
const BOOKMARK: &[u8] = br#"{"type":"BOOKMARK""#;
/// The longest event.
const LONGEST_LINE: usize = 16 << 20;

/// What a type's task reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// It waits to list.
    Waiting,
    /// It lists; so many objects were read.
    Listing(usize),
    /// The watch runs.
    Syncing,
    /// Events were written; so many rows changed.
    Changed(usize),
    /// Objects were left out because they are malformed.
    Skipped(usize),
    /// The member sent something, so it lives.
    Heard,
    /// A list began because the watch could not be resumed.
    Refilled,
    /// Something failed; it is tried again.
    Failed(Failure),
}

/// Why a type is not synced at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Failure {
    /// Returns whether the fleet may not read the type. Such an answer costs the member little.
    fn is_refusal(&self) -> bool {
        matches!(self.reason, "Unauthorized" | "Forbidden")
    }
}

impl From<MemberError> for Failure {
    fn from(error: MemberError) -> Failure {
        let reason = match &error {
            MemberError::Unreachable(_) => "Unreachable",
            MemberError::Refused { code: 401, .. } => "Unauthorized",
            MemberError::Refused { code: 403, .. } => "Forbidden",
            MemberError::Refused { code: 404, .. } => "NotFound",
            MemberError::Refused { .. } => "Refused",
            MemberError::TooLarge(_) => "TooLarge",
            MemberError::Garbage(_) => "InvalidAnswer",
        };
        Failure {
            reason,
            message: error.to_string(),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        let reason = match &error {
            WriteError::Quota(_) => "SyncQuotaExceeded",
            WriteError::Full(_) => "ShelfFull",
            WriteError::Failed(_) => "ShelfFailed",
            WriteError::Closed => "Shutdown",
        };
        Failure {
            reason,
            message: error.to_string(),
        }
    }
}

/// How a watch or a list ended.
enum End {
    /// In the usual way; the watch goes on at the same version.
    Done,
    /// The member no longer knows the version: everything is listed again.
    Expired,
    /// The member does not serve the type.
    Gone,
    /// Something failed.
    Failed(Failure),
}

impl From<MemberError> for End {
    fn from(error: MemberError) -> End {
        match error.code() {
            Some(404 | 405) => End::Gone,
            Some(410) => End::Expired,
            _ => End::Failed(error.into()),
        }
    }
}

impl From<WriteError> for End {
    fn from(error: WriteError) -> End {
        End::Failed(error.into())
    }
}

/// The sync of one type of one member.
pub(crate) struct TypeSync {
    pub(crate) member: MemberId,
    pub(crate) kind: KindId,
    pub(crate) member_name: Arc<str>,
    pub(crate) resource: ApiResource,
    pub(crate) api: Arc<dyn MemberApi>,
    pub(crate) options: Arc<SyncOptions>,
    /// The namespaces that a selector of namespaces chose; `None` for all.
    pub(crate) namespaces: Option<Arc<[String]>>,
    pub(crate) redaction: Redaction,
    pub(crate) writer: Writer,
    pub(crate) refills: Arc<Semaphore>,
    /// Whether the member sends the present state in a watch.
    pub(crate) streaming: Arc<Streaming>,
    pub(crate) settings: Arc<FleetSettings>,
    pub(crate) report: Arc<dyn Fn(Report) + Send + Sync>,
    /// How the progress of this sync is marked: the version, and a digest of what is left out.
    pub(crate) mark: String,
}

impl TypeSync {
    /// Syncs until the member no longer serves the type. `progress` is how far it is on the shelf.
    pub(crate) async fn run(self, progress: Option<Progress>) {
        let progress = progress.filter(|progress| !progress.resource_version.is_empty());
        let same = progress.as_ref().filter(|it| it.version == self.mark);
        let mut saved = same.map(|progress| progress.resource_version.clone());
        // With other options, rows change while everything is listed. Nothing may be resumed from before that.
        let mut forgets = progress.is_some() && saved.is_none();
        let mut backoff = Backoff::new(self.settings.first_wait, self.settings.longest_wait);
        let mut allowance = Allowance::new(self.settings.refill_interval);
        let mut resumes = saved.is_some();
        // The watch that brought the present state goes on with what happens after it.
        let mut open: Option<Lines> = None;
        loop {
            let Some(version) = saved.clone() else {
                (self.report)(Report::Waiting);
                if resumes {
                    (self.report)(Report::Refilled);
                }
                resumes = true;
                allowance.take().await;
                if forgets && let Err(error) = self.forget().await {
                    self.failed(error.into());
                    backoff.wait().await;
                    continue;
                }
                forgets = false;
                match self.refill().await {
                    Ok(filled) => {
                        backoff.reset();
                        saved = Some(filled.version);
                        open = filled.stream;
                    }
                    Err(End::Gone) => return,
                    Err(End::Expired | End::Done) => {
                        self.failed(MemberError::Garbage("the list expired".to_owned()).into());
                        backoff.wait().await;
                    }
                    Err(End::Failed(failure)) => {
                        if failure.is_refusal() {
                            allowance.give_back();
                        }
                        self.failed(failure);
                        backoff.wait().await;
                    }
                }
                continue;
            };
            let began = Instant::now();
            let mut reached = version.clone();
            let end = match open.take() {
                Some(lines) => self.follow(lines, &mut reached).await,
                None => self.watch(&mut reached).await,
            };
            let moved = reached != version;
            saved = Some(reached);
            match end {
                End::Done => {
                    // A member that ends every watch at once is not asked without a pause.
                    match moved || began.elapsed() > Duration::from_secs(5) {
                        true => backoff.reset(),
                        false => backoff.wait().await,
                    }
                }
                End::Expired => {
                    if let Err(error) = self.forget().await {
                        self.failed(error.into());
                        backoff.wait().await;
                    }
                    saved = None;
                }
                End::Gone => return,
                End::Failed(failure) => {
                    self.failed(failure);
                    backoff.wait().await;
                }
            }
        }
    }

    fn failed(&self, failure: Failure) {
        tracing::debug!(member = %self.member_name, resource = %self.resource.resource, reason = failure.reason,
            message = %failure.message, "a type of a member is not synced");
        (self.report)(Report::Failed(failure));
    }

    /// Removes the saved version: until the next list is complete, a restart lists, too.
    async fn forget(&self) -> Result<(), WriteError> {
        self.write(Vec::new(), String::new()).await.map(drop)
    }

    /// Writes changes, and the version that they lead to.
    async fn write(
        &self,
        changes: Vec<bareboat_shelf::Change>,
        version: String,
    ) -> Result<bareboat_shelf::Applied, WriteError> {
        let progress = Progress {
            version: self.mark.clone(),
            resource_version: version,
        };
        let batch = Batch {
            member: self.member,
            kind: self.kind,
            changes,
            progress: Some(progress),
        };
        self.writer.apply(batch).await
    }

    /// Writes objects of a list, after everything that others write.
    async fn fill(
        &self,
        changes: Vec<bareboat_shelf::Change>,
    ) -> Result<bareboat_shelf::Applied, WriteError> {
        let batch = Batch {
            member: self.member,
            kind: self.kind,
            changes,
            progress: None,
        };
        self.writer.fill(batch).await
    }

    /// Notes a version that came without changes.
    fn note(&self, version: &str) {
        let progress = Progress {
            version: self.mark.clone(),
            resource_version: version.to_owned(),
        };
        self.writer.note(self.member, self.kind, progress);
    }

    /// Reads events, on another thread if they are long.
    async fn read_events(&self, raw: Vec<bytes::Bytes>, start: String) -> Option<Events> {
        let reader = self.reader();
        if raw.iter().map(bytes::Bytes::len).sum::<usize>() <= SHORT {
            return Some(reader.events(&raw, &start));
        }
        let parsing = tokio::task::spawn_blocking(move || reader.events(&raw, &start));
        parsing.await.ok()
    }

    /// The one namespace that is asked for, if there is only one.
    fn namespace(&self) -> Option<&str> {
        match self.options.namespaces.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The selector of the query.
    fn selector(&self) -> String {
        match &self.options.label_selector {
            Some(selector) => format!("&labelSelector={}", escaped(selector)),
            None => String::new(),
        }
    }

    fn reader(&self) -> Reader {
        Reader {
            member: self.member_name.clone(),
            api_version: self.resource.api_version(),
            kind: self.resource.kind.clone(),
            options: self.options.clone(),
            namespaces: self.namespaces.clone().filter(|_| self.resource.namespaced),
            redaction: self.redaction.clone(),
        }
    }

    /// Watches from a version on, which advances with what was written.
    async fn watch(&self, version: &mut String) -> End {
        let path = self.resource.path(self.namespace());
        let target = format!(
            "{path}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}{}",
            escaped(version),
            timeout_seconds(&self.resource.resource, &self.member_name),
            self.selector()
        );
        let answer = self
            .api
            .get(&target, "application/json", self.settings.request_timeout);
        let answer = match answer.await {
            Ok(answer) if answer.code == 200 => answer,
            Ok(answer) => return refused(answer).await.into(),
            Err(error) => return error.into(),
        };
        let lines = Lines::new(answer.body, LONGEST_LINE);
        self.follow(lines, version).await
    }

    /// Writes the events of a watch that is open, until it ends.
    async fn follow(&self, mut lines: Lines, version: &mut String) -> End {
        (self.report)(Report::Syncing);
        loop {
            let (raw, last) = match self.collect(&mut lines, self.settings.silence).await {
                Ok(collected) => collected,
                Err(end) => return end,
            };
            let Some(events) = self.read_events(raw, version.clone()).await else {
                return End::Failed(
                    MemberError::Garbage("an event cannot be read".to_owned()).into(),
                );
            };
            let Events {
                changes,
                version: reached,
                skipped,
                ended,
            } = events;
            if skipped > 0 {
                (self.report)(Report::Skipped(skipped));
            }
            let moved = reached.is_some();
            let next = reached.unwrap_or_else(|| version.clone());
            if !changes.is_empty() {
                match self.write(changes, next.clone()).await {
                    Ok(applied) => (self.report)(Report::Changed(applied.changed)),
                    Err(error) => return error.into(),
                }
            } else {
                if moved {
                    self.note(&next);
                }
                (self.report)(Report::Heard);
            }
            // Only now: what was not written is asked for again.
            *version = next;
            match ended {
                Some(Ended::Expired) => return End::Expired,
                Some(Ended::Failed(error)) => return error.into(),
                None => {}
            }
            if let Some(end) = last {
                return end;
            }
        }
    }

    /// Collects the lines of one batch: the first may take long, the others a moment. The second value is how the stream ended
    /// after them.
    async fn collect(
        &self,
        lines: &mut Lines,
        silence: Duration,
    ) -> Result<(Vec<bytes::Bytes>, Option<End>), End> {
        let first = tokio::time::timeout(silence, lines.next()).await;
        let first = match first {
            // The connection may be half open.
            Err(_) => return Err(End::Done),
            Ok(None) => return Err(End::Done),
            Ok(Some(Err(error))) => return Err(error.into()),
            Ok(Some(Ok(line))) => line,
        };
        if first.starts_with(BOOKMARK) {
            return Ok((vec![first], None));
        }
        let until = Instant::now() + COLLECT;
        let mut size = first.len();
        let mut raw = vec![first];
        while raw.len() < BATCH && size < BATCH_BYTES {
            match tokio::time::timeout_at(until, lines.next()).await {
                Err(_) => break,
                Ok(None) => return Ok((raw, Some(End::Done))),
                Ok(Some(Err(error))) => return Ok((raw, Some(error.into()))),
                Ok(Some(Ok(line))) => {
                    size += line.len();
                    raw.push(line);
                }
            }
        }
        Ok((raw, None))
    }
}

/// Escapes a text for a query.
pub(crate) fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte as char);
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// How long the member is to keep a watch open: between half an hour and an hour, so that watches do not all end together, and seldom.
fn timeout_seconds(resource: &str, member: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (resource, member).hash(&mut hasher);
    1800 + hasher.finish() % 1800
}
