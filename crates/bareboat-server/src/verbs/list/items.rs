//! The items of a list, one frame of bytes at a time.

mod messages;

use crate::kinds::stored_kind::StoredKind;
use crate::request::negotiate::Media;
use crate::tables::{self, Include};
use crate::verbs::kind_request::KindRequest;
use crate::verbs::kind_request::reread_object;
use crate::verbs::selection::Selection;
use crate::work::{self, Pace, Threads};
use bareboat_api::Status;
use bareboat_api::kind::Now;
use bareboat_storage::{Entry, Snapshot};
use bytes::Bytes;
use std::sync::Arc;

/// How many entries are selected before a frame is made of them.
const BATCH: usize = 500;

/// The source of items.
pub(super) enum Source {
    /// The entries of one page.
    Page(Vec<Arc<Entry>>),
    /// All entries under a prefix.
    Range {
        snapshot: Snapshot,
        prefix: String,
        after: Option<String>,
    },
}

/// The encoding of an item.
#[derive(Clone, Copy)]
pub(super) enum Style {
    /// JSON, with or without type meta.
    Whole { type_meta: bool },
    /// A bare protobuf message; frames are not joined.
    Message,
    /// A row of a table.
    Row {
        include: Include,
        beta: bool,
        now: Now,
    },
    /// Metadata only.
    Metadata { beta: bool },
}

impl Style {
    /// Returns the cost of writing an item, in bytes of work.
    fn effort(self, item: &[u8]) -> usize {
        match self {
            Style::Whole { .. } | Style::Message => item.len() / 16,
            Style::Row { .. } | Style::Metadata { .. } => item.len(),
        }
    }
}

/// The items of a list.
pub(super) struct Items {
    call: Arc<KindRequest>,
    source: Source,
    selection: Selection,
    style: Style,
    written: bool,
    pace: Pace,
}

impl Items {
    pub(super) fn new(
        call: Arc<KindRequest>,
        source: Source,
        selection: Selection,
        style: Style,
    ) -> Items {
        Items {
            call,
            source,
            selection,
            style,
            written: false,
            pace: Pace::new(),
        }
    }

    /// Returns the threads for making large frames.
    pub(super) fn threads(&self) -> &Threads {
        &self.call.state.threads
    }

    /// Returns the time by which the client must have read everything.
    pub(super) fn deadline(&self) -> std::time::Instant {
        self.call.ask.deadline
    }

    /// Returns the next items joined by commas, about `target` bytes of them; `None` at the end.
    pub(super) async fn next_frame(&mut self, target: usize) -> Result<Option<Bytes>, Status> {
        loop {
            let Some(batch) = self.next_batch(target).await else {
                return Ok(None);
            };
            // Each item is followed by a comma or by the end of the frame.
            let size = batch.iter().map(|entry| entry.json().len() + 1).sum();
            let mut out = Vec::with_capacity(size);
            self.write(batch, &mut out).await?;
            if !out.is_empty() {
                return Ok(Some(out.into()));
            }
        }
    }

    fn served(&self) -> &StoredKind {
        &self.call.served
    }

    /// Returns the next entries that match by key and labels; `None` at the end.
    async fn next_batch(&mut self, target: usize) -> Option<Vec<Arc<Entry>>> {
        match &mut self.source {
            Source::Page(entries) => {
                if entries.is_empty() {
                    return None;
                }
                let mut bytes = 0;
                let count = entries
                    .iter()
                    .take(BATCH)
                    .take_while(|entry| {
                        let room = bytes < target;
                        bytes += entry.json().len();
                        room
                    })
                    .count();
                Some(entries.drain(..count.max(1)).collect())
            }
            Source::Range {
                snapshot,
                prefix,
                after,
            } => {
                let mut batch: Vec<Arc<Entry>> = Vec::new();
                let mut bytes = 0;
                // Any number of entries that do not match may be skipped: they take no memory.
                let labels = self.selection.signature();
                for step in snapshot.walk_with(prefix, after.as_deref(), labels) {
                    if self.pace.spend(work::STEP) {
                        work::turn().await;
                    }
                    let Some(entry) = step else { continue };
                    if bytes >= target || batch.len() >= BATCH {
                        break;
                    }
                    if self.selection.matches_entry(entry) {
                        bytes += entry.json().len();
                        batch.push(entry.clone());
                    }
                }
                *after = Some(batch.last()?.key().to_owned());
                Some(batch)
            }
        }
    }

    /// Returns the entries of a batch that also match by their content.
    async fn choose(&self, batch: Vec<Arc<Entry>>) -> Result<Vec<Arc<Entry>>, Status> {
        let cut_already =
            matches!(self.source, Source::Page(_)) && self.selection.pinned_name().is_none();
        if cut_already || !self.selection.needs_object() {
            return Ok(batch);
        }
        // In one batch, so that a converter is called once; its result is reused for the answer.
        let version = self.call.version;
        let rendered = self
            .served()
            .render_all(&batch, version, Media::Json)
            .await?;
        let mut chosen = Vec::with_capacity(batch.len());
        let mut pace = Pace::new();
        for (entry, bytes) in batch.into_iter().zip(rendered) {
            if pace.spend(bytes.len()) {
                work::turn().await;
            }
            if self.selection.matches_object(&reread_object(&bytes)?) {
                chosen.push(entry);
            }
        }
        Ok(chosen)
    }

    /// Returns entries as JSON in the requested version.
    async fn render(&self, chosen: &[Arc<Entry>]) -> Result<Vec<Bytes>, Status> {
        let version = self.call.version;
        let ready = chosen
            .iter()
            .map(|entry| self.served().ready(entry, version, Media::Json));
        match ready.collect::<Option<Vec<Bytes>>>() {
            Some(ready) => Ok(ready),
            // In one batch, so that a converter is called once.
            None => self.served().render_all(chosen, version, Media::Json).await,
        }
    }

    async fn write(&mut self, batch: Vec<Arc<Entry>>, out: &mut Vec<u8>) -> Result<(), Status> {
        let chosen = self.choose(batch).await?;
        let rendered = self.render(&chosen).await?;
        if matches!(self.style, Style::Row { .. } | Style::Metadata { .. }) {
            work::maybe_large(rendered.iter().map(Bytes::len).sum()).await;
        }
        for bytes in &rendered {
            if self.pace.spend(self.style.effort(bytes)) {
                work::turn().await;
            }
            if std::mem::replace(&mut self.written, true) {
                out.push(b',');
            }
            self.write_item(bytes, out)?;
        }
        Ok(())
    }

    fn write_item(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
        match self.style {
            Style::Whole { type_meta: true } | Style::Message => out.extend_from_slice(bytes),
            Style::Whole { type_meta: false } => {
                // The type meta is followed by a comma, which the brace replaces.
                let prefix = self.served().facts(self.call.version).prefix.len();
                out.push(b'{');
                out.extend_from_slice(&bytes[prefix + 1..]);
            }
            Style::Row { include, beta, now } => {
                let kind = &self.served().kind;
                let columns = &self.call.version().columns;
                let object = reread_object(bytes)?;
                tables::row(kind, columns, object, include, beta, now).write_json(out);
            }
            Style::Metadata { beta } => {
                tables::partial(&reread_object(bytes)?, beta).write_json(out)
            }
        }
        Ok(())
    }
}
