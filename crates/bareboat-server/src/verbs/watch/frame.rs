//! One event as bytes, encoded once for all watchers that want it in the same form.

use super::super::selection::Selection;
use crate::kinds::served::Served;
use crate::metrics::WatchMeter;
use crate::protobuf::MetaMessages;
use crate::request::negotiate::{Media, Transform};
use crate::tables::{self, Include};
use crate::verbs::present::reread_object;
use crate::work::Threads;
use bareboat_api::{Map, Object, Status, Value};
use bareboat_storage::{Entry, Event, EventKind, VariantKey};
use bytes::Bytes;
use std::sync::Arc;

/// Everything about a watch that decides the form of its events.
pub(super) struct Frames {
    pub(super) served: Arc<Served>,
    pub(super) version: usize,
    pub(super) messages: MetaMessages,
    pub(super) selection: Selection,
    pub(super) media: Media,
    pub(super) transform: Transform,
    pub(super) include: Include,
    /// Where large frames are made.
    pub(super) threads: Threads,
    pub(super) meter: WatchMeter,
}

/// What the client is told happened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Added,
    Modified,
    Deleted,
}

impl Told {
    fn name(self) -> &'static str {
        match self {
            Told::Added => "ADDED",
            Told::Modified => "MODIFIED",
            Told::Deleted => "DELETED",
        }
    }

    /// What a change means to somebody who sees only what a selector matches.
    fn transition(kind: EventKind, old_matches: bool, new_matches: bool) -> Option<Told> {
        match kind {
            EventKind::Deleted => old_matches.then_some(Told::Deleted),
            _ => match (old_matches, new_matches) {
                (false, true) => Some(Told::Added),
                (true, true) => Some(Told::Modified),
                (true, false) => Some(Told::Deleted),
                (false, false) => None,
            },
        }
    }
}

/// What came of trying without waiting.
pub(super) enum Quick {
    /// These bytes.
    Bytes(Bytes),
    /// Nothing to tell this client.
    Nothing,
    /// It must be converted first.
    Later,
}

impl Frames {
    /// The bytes of an event, if they can be had without conversion.
    pub(super) fn quick(&self, event: &Event) -> Quick {
        if self.selection.needs_object() || matches!(self.transform, Transform::Table { .. }) {
            return Quick::Later;
        }
        let told = if self.selection.is_everything() {
            match event.kind {
                EventKind::Added => Told::Added,
                EventKind::Modified => Told::Modified,
                EventKind::Deleted => Told::Deleted,
            }
        } else {
            let old = event
                .prev
                .as_ref()
                .is_some_and(|prev| self.selection.matches_entry(prev));
            let new = self.selection.matches_entry(&event.entry);
            match Told::transition(event.kind, old, new) {
                Some(told) => told,
                None => return Quick::Nothing,
            }
        };
        let entry = shown_entry(event, told);
        if self.media == Media::Protobuf && told == Told::Deleted {
            return Quick::Later;
        }
        let Some(ready) = self.served.ready(entry, self.version, self.bytes_media()) else {
            return Quick::Later;
        };
        if told == Told::Deleted && ready != *entry.json() {
            return Quick::Later;
        }
        let key = self.frame_key(told);
        let made = event.try_frame(key, || {
            let bytes = match told {
                Told::Deleted => entry.json_at_revision(event.rev),
                _ => ready,
            };
            self.wrap(told.name(), &bytes)
        });
        match made {
            Ok(bytes) => Quick::Bytes(bytes),
            Err(_) => Quick::Later,
        }
    }

    /// The bytes of an event, converting what must be converted; nothing when it does not concern this client.
    pub(super) async fn slow(
        &self,
        event: &Event,
        with_columns: bool,
    ) -> Result<Option<Bytes>, Status> {
        let deep = self.selection.needs_object();
        let mut old = event
            .prev
            .as_ref()
            .is_some_and(|prev| self.selection.matches_entry(prev));
        let mut new = self.selection.matches_entry(&event.entry);
        if deep {
            if let Some(prev) = event.prev.as_ref().filter(|_| old) {
                let object = self.served.object(prev, self.version).await?;
                old = self.selection.matches_object(&object);
            }
            if new {
                let object = self.served.object(&event.entry, self.version).await?;
                new = self.selection.matches_object(&object);
            }
        }
        let Some(told) = Told::transition(event.kind, old, new) else {
            return Ok(None);
        };
        let entry = shown_entry(event, told);
        let bytes = if told == Told::Deleted {
            let mut object = self.served.object(entry, self.version).await?;
            object.set_meta("resourceVersion", Value::from(event.rev.to_string()));
            self.served
                .encode(&object, self.version, self.bytes_media())?
        } else {
            self.served
                .render(entry, self.version, self.bytes_media())
                .await?
        };
        if let Transform::Table { beta } = self.transform {
            return self
                .table_frame(told.name(), &bytes, beta, with_columns)
                .map(Some);
        }
        self.wrap(told.name(), &bytes).map(Some)
    }

    /// What it costs to write an object, in bytes of work.
    pub(super) fn effort(&self, entry: &Entry) -> usize {
        let plain = self.transform == Transform::Whole && !self.selection.needs_object();
        entry.json().len() / if plain { 16 } else { 1 }
    }

    /// The bytes that tell of an object that was there when the watch began.
    pub(super) async fn initial(
        &self,
        entry: &Arc<Entry>,
        with_columns: bool,
    ) -> Result<Option<Bytes>, Status> {
        if self.selection.needs_object() {
            let object = self.served.object(entry, self.version).await?;
            if !self.selection.matches_object(&object) {
                return Ok(None);
            }
        }
        let bytes = self
            .served
            .render(entry, self.version, self.bytes_media())
            .await?;
        if let Transform::Table { beta } = self.transform {
            return self
                .table_frame(Told::Added.name(), &bytes, beta, with_columns)
                .map(Some);
        }
        self.wrap(Told::Added.name(), &bytes).map(Some)
    }

    /// A bookmark at a version; `initial_end` says that the initial state was sent.
    pub(super) fn bookmark(
        &self,
        version: u64,
        initial_end: bool,
        with_columns: bool,
    ) -> Result<Bytes, Status> {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion", Value::from(version.to_string()));
        if initial_end {
            metadata.insert(
                "annotations",
                bareboat_api::value!({"k8s.io/initial-events-end": "true"}),
            );
        }
        let mut object = Object::default();
        object.set_type(
            self.served.api_version(self.version),
            &self.served.kind.names.kind,
        );
        object.map_mut().insert("metadata", Value::Object(metadata));
        if let Transform::Table { beta } = self.transform {
            // Clients find the annotation in the object of the row, so that one is never left out.
            let include = match self.include {
                Include::Nothing if initial_end => Include::Metadata,
                include => include,
            };
            return Ok(self.table_event("BOOKMARK", object, include, beta, with_columns));
        }
        let bytes = self
            .served
            .encode(&object, self.version, self.bytes_media())?;
        self.wrap("BOOKMARK", &bytes)
    }

    /// The ERROR event that ends a watch.
    pub(super) fn error(&self, status: &Status) -> Bytes {
        let value = status.to_value();
        if self.media == Media::Protobuf
            && let Some(bytes) = self.messages.status(&value)
        {
            return crate::protobuf::watch_frame("ERROR", &bytes);
        }
        json_event("ERROR", &value.to_json())
    }

    /// The form in which objects are fetched: metadata is cut out of JSON.
    fn bytes_media(&self) -> Media {
        match self.transform {
            Transform::Whole => self.media,
            _ => Media::Json,
        }
    }

    fn frame_key(&self, told: Told) -> VariantKey {
        let transform = match self.transform {
            Transform::Whole => 0,
            Transform::Metadata { beta: false } => 1,
            Transform::Metadata { beta: true } => 2,
            Transform::Table { .. } => 3,
        };
        let media = u32::from(self.media == Media::Protobuf);
        VariantKey {
            form: (self.version as u32) << 5 | transform << 3 | media << 2 | told as u32,
            shape: self.served.facts(self.version).fingerprint
                ^ u64::from(self.served.incarnation()) << 32,
        }
    }

    /// An event around the bytes of an object, transformed if metadata is all that is wanted.
    fn wrap(&self, told: &str, bytes: &[u8]) -> Result<Bytes, Status> {
        if let Transform::Metadata { beta } = self.transform {
            let value = tables::partial(&reread_object(bytes)?, beta);
            if self.media != Media::Protobuf {
                return self.json_frame(told, &value.to_json());
            }
            let version = tables::meta_version(beta);
            let bytes = self
                .messages
                .enveloped("PartialObjectMetadata", version, &value);
            let bytes = bytes.ok_or_else(|| Status::internal("no message for metadata"))?;
            return Ok(crate::protobuf::watch_frame(told, &bytes));
        }
        if self.media == Media::Protobuf {
            let api_version = self.served.api_version(self.version);
            let object =
                crate::protobuf::envelope(api_version, &self.served.kind.names.kind, bytes);
            return Ok(crate::protobuf::watch_frame(told, &object));
        }
        self.json_frame(told, bytes)
    }

    fn json_frame(&self, told: &str, object: &[u8]) -> Result<Bytes, Status> {
        Ok(json_event(told, object))
    }

    fn table_frame(
        &self,
        told: &str,
        bytes: &[u8],
        beta: bool,
        with_columns: bool,
    ) -> Result<Bytes, Status> {
        let object = reread_object(bytes)?;
        Ok(self.table_event(told, object, self.include, beta, with_columns))
    }

    fn table_event(
        &self,
        told: &str,
        object: Object,
        include: Include,
        beta: bool,
        with_columns: bool,
    ) -> Bytes {
        let columns = &self.served.version(self.version).columns;
        let metadata = bareboat_api::value!({"resourceVersion": (object.resource_version())});
        let kind = &self.served.kind;
        let row = tables::row(kind, columns, object, include, beta, tables::now());
        let definitions = with_columns.then(|| tables::definitions(columns));
        let table = tables::table(definitions, vec![row], metadata, beta);
        json_event(told, &table.to_json())
    }
}

/// The state an event shows: the old one when the object left the client's view.
fn shown_entry(event: &Event, told: Told) -> &Arc<Entry> {
    match (&event.prev, told) {
        (Some(prev), Told::Deleted) => prev,
        _ => &event.entry,
    }
}

fn json_event(told: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 40);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(told.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}
