//! Encodes events, once for all watchers that want the same encoding.

use super::super::selection::Selection;
use crate::clock::Clock;
use crate::kinds::stored_kind::StoredKind;
use crate::metrics::WatchMeter;
use crate::protobuf::MetaMessages;
use crate::request::negotiate::{Media, Transform};
use crate::revocation::Standing;
use crate::tables::{self, Include};
use crate::verbs::kind_request::reread_object;
use crate::work::Threads;
use bareboat_api::{Map, Object, Status, Value};
use bareboat_storage::{Entry, Event, EventKind, VariantKey};
use bytes::Bytes;
use std::sync::Arc;

/// Everything about a watch that determines how its events are encoded.
pub(super) struct Frames {
    pub(super) served: Arc<StoredKind>,
    pub(super) version: usize,
    pub(super) messages: MetaMessages,
    pub(super) selection: Selection,
    pub(super) media: Media,
    pub(super) transform: Transform,
    pub(super) include: Include,
    pub(super) clock: Clock,
    /// Threads for making large frames.
    pub(super) threads: Threads,
    /// Whether the client may still have the stream.
    pub(super) standing: Option<Arc<Standing>>,
    pub(super) meter: WatchMeter,
}

/// The type of an event, as the client sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    fn name(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }

    /// Returns the event type of a change for a watcher that sees only objects matching its selector.
    fn transition(kind: EventKind, old_matches: bool, new_matches: bool) -> Option<EventType> {
        match kind {
            EventKind::Deleted => old_matches.then_some(EventType::Deleted),
            _ => match (old_matches, new_matches) {
                (false, true) => Some(EventType::Added),
                (true, true) => Some(EventType::Modified),
                (true, false) => Some(EventType::Deleted),
                (false, false) => None,
            },
        }
    }
}

/// The result of encoding without waiting.
pub(super) enum Quick {
    /// The encoded event.
    Bytes(Bytes),
    /// The event does not match this watch.
    Nothing,
    /// The object must be converted first.
    Later,
}

impl Frames {
    /// Encodes an event, if that needs no conversion.
    pub(super) fn quick(&self, event: &Event) -> Quick {
        if self.selection.needs_object() || matches!(self.transform, Transform::Table { .. }) {
            return Quick::Later;
        }
        let event_type = if self.selection.is_everything() {
            match event.kind {
                EventKind::Added => EventType::Added,
                EventKind::Modified => EventType::Modified,
                EventKind::Deleted => EventType::Deleted,
            }
        } else {
            let old = event
                .prev
                .as_ref()
                .is_some_and(|prev| self.selection.matches_entry(prev));
            let new = self.selection.matches_entry(&event.entry);
            match EventType::transition(event.kind, old, new) {
                Some(event_type) => event_type,
                None => return Quick::Nothing,
            }
        };
        let entry = shown_entry(event, event_type);
        if self.media == Media::Protobuf && event_type == EventType::Deleted {
            return Quick::Later;
        }
        let Some(ready) = self.served.ready(entry, self.version, self.bytes_media()) else {
            return Quick::Later;
        };
        if event_type == EventType::Deleted && ready != *entry.json() {
            return Quick::Later;
        }
        let key = self.frame_key(event_type);
        let made = event.try_frame(key, || {
            let bytes = match event_type {
                EventType::Deleted => entry.json_at_revision(event.rev),
                _ => ready,
            };
            self.wrap(event_type.name(), &bytes)
        });
        match made {
            Ok(bytes) => Quick::Bytes(bytes),
            Err(_) => Quick::Later,
        }
    }

    /// Encodes an event, with conversion; `None` if it does not match this watch.
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
        let Some(event_type) = EventType::transition(event.kind, old, new) else {
            return Ok(None);
        };
        let entry = shown_entry(event, event_type);
        let bytes = if event_type == EventType::Deleted {
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
                .table_frame(event_type.name(), &bytes, beta, with_columns)
                .map(Some);
        }
        self.wrap(event_type.name(), &bytes).map(Some)
    }

    /// Returns the cost of writing an object, in bytes of work.
    pub(super) fn effort(&self, entry: &Entry) -> usize {
        let plain = self.transform == Transform::Whole && !self.selection.needs_object();
        entry.json().len() / if plain { 16 } else { 1 }
    }

    /// Encodes the event for an object of the initial state.
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
                .table_frame(EventType::Added.name(), &bytes, beta, with_columns)
                .map(Some);
        }
        self.wrap(EventType::Added.name(), &bytes).map(Some)
    }

    /// Encodes a bookmark at a revision; `initial_end` marks the end of the initial state.
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
            // Clients read the annotation from the row's object, so the object is always included.
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

    /// Encodes the last event of a watch whose client now sees other objects, so that it lists again.
    pub(super) fn farewell(&self) -> Option<Bytes> {
        let standing = self.standing.as_ref()?;
        standing.sees_others().then(|| {
            let why = "what this user may see has changed; list again";
            self.error(&Status::expired(why))
        })
    }

    /// Encodes the ERROR event that ends a watch.
    pub(super) fn error(&self, status: &Status) -> Bytes {
        let value = status.to_value();
        if self.media == Media::Protobuf
            && let Some(bytes) = self.messages.status(&value)
        {
            return crate::protobuf::watch_frame("ERROR", &bytes);
        }
        json_event("ERROR", &value.to_json())
    }

    /// Returns the media type objects are fetched in: metadata is extracted from JSON.
    fn bytes_media(&self) -> Media {
        match self.transform {
            Transform::Whole => self.media,
            _ => Media::Json,
        }
    }

    fn frame_key(&self, event_type: EventType) -> VariantKey {
        let transform = match self.transform {
            Transform::Whole => 0,
            Transform::Metadata { beta: false } => 1,
            Transform::Metadata { beta: true } => 2,
            Transform::Table { .. } => 3,
        };
        let media = u32::from(self.media == Media::Protobuf);
        VariantKey {
            form: (self.version as u32) << 5 | transform << 3 | media << 2 | event_type as u32,
            shape: self.served.facts(self.version).fingerprint
                ^ u64::from(self.served.incarnation()) << 32,
        }
    }

    /// Encodes an event around the bytes of an object; reduces the object to its metadata if the client asked for that.
    fn wrap(&self, event_type: &str, bytes: &[u8]) -> Result<Bytes, Status> {
        if let Transform::Metadata { beta } = self.transform {
            let value = tables::partial(&reread_object(bytes)?, beta);
            if self.media != Media::Protobuf {
                return self.json_frame(event_type, &value.to_json());
            }
            let version = tables::meta_version(beta);
            let bytes = self
                .messages
                .enveloped("PartialObjectMetadata", version, &value);
            let bytes = bytes.ok_or_else(|| Status::internal("no message for metadata"))?;
            return Ok(crate::protobuf::watch_frame(event_type, &bytes));
        }
        if self.media == Media::Protobuf {
            let api_version = self.served.api_version(self.version);
            let object =
                crate::protobuf::envelope(api_version, &self.served.kind.names.kind, bytes);
            return Ok(crate::protobuf::watch_frame(event_type, &object));
        }
        self.json_frame(event_type, bytes)
    }

    fn json_frame(&self, event_type: &str, object: &[u8]) -> Result<Bytes, Status> {
        Ok(json_event(event_type, object))
    }

    fn table_frame(
        &self,
        event_type: &str,
        bytes: &[u8],
        beta: bool,
        with_columns: bool,
    ) -> Result<Bytes, Status> {
        let object = reread_object(bytes)?;
        Ok(self.table_event(event_type, object, self.include, beta, with_columns))
    }

    fn table_event(
        &self,
        event_type: &str,
        object: Object,
        include: Include,
        beta: bool,
        with_columns: bool,
    ) -> Bytes {
        let columns = &self.served.version(self.version).columns;
        let metadata = bareboat_api::value!({"resourceVersion": (object.resource_version())});
        let kind = &self.served.kind;
        let row = tables::row(kind, columns, object, include, beta, self.clock.now());
        let definitions = with_columns.then(|| tables::definitions(columns));
        let table = tables::table(definitions, vec![row], metadata, beta);
        json_event(event_type, &table.to_json())
    }
}

/// Returns the state an event shows: the old one if the object no longer matches.
fn shown_entry(event: &Event, event_type: EventType) -> &Arc<Entry> {
    match (&event.prev, event_type) {
        (Some(prev), EventType::Deleted) => prev,
        _ => &event.entry,
    }
}

fn json_event(event_type: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 40);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event_type.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}
