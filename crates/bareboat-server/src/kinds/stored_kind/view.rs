//! Renders stored objects in a version and media type, encoded once and shared.
//!
//! Most answers are bytes that exist already. Only an object in another version, shape or media type is parsed,
//! converted and encoded, and the result is cached beside the entry.

use super::{StoredKind, parse_entry, parse_object};
use crate::request::negotiate::Media;
use crate::work::{self, Pace};
use bareboat_api::kind::{Conversion, ConvertError};
use bareboat_api::{Object, Status, Value};
use bareboat_storage::{Entry, VariantKey};
use bytes::Bytes;
use std::sync::Arc;

/// How many objects are sent to a remote converter at a time.
const CONVERT_AT_ONCE: usize = 200;
/// The cost of converting an object in this process, in bytes of work.
const CONVERT: usize = 16 * 1024;

impl StoredKind {
    /// Returns the bytes of an object in a version, if they need no conversion or were converted before.
    ///
    /// Protobuf bytes are those of the bare message. For YAML these are the JSON bytes; the caller converts them.
    pub(crate) fn ready(&self, entry: &Arc<Entry>, version: usize, media: Media) -> Option<Bytes> {
        if media != Media::Protobuf && self.in_shape(entry, version) {
            return Some(entry.json().clone());
        }
        entry.variant(self.variant(version, media))
    }

    /// Returns whether the JSON of an object in a version exists already.
    pub(crate) fn is_ready(&self, entry: &Arc<Entry>, version: usize) -> bool {
        self.in_shape(entry, version) || self.ready(entry, version, Media::Json).is_some()
    }

    /// Returns whether the stored bytes are also those of this version.
    fn in_shape(&self, entry: &Entry, version: usize) -> bool {
        let facts = self.facts(version);
        entry.json().starts_with(&facts.prefix)
            && (facts.fingerprint == 0 || entry.shape() == facts.fingerprint)
    }

    fn variant(&self, version: usize, media: Media) -> VariantKey {
        let media = u32::from(media == Media::Protobuf);
        VariantKey {
            form: (version as u32) << 1 | media,
            shape: self.facts(version).fingerprint ^ u64::from(self.incarnation()) << 32,
        }
    }

    /// Returns the bytes of an object in a version.
    pub(crate) async fn render(
        &self,
        entry: &Arc<Entry>,
        version: usize,
        media: Media,
    ) -> Result<Bytes, Status> {
        if let Some(bytes) = self.ready(entry, version, media) {
            return Ok(bytes);
        }
        let mut rendered = self
            .render_all(std::slice::from_ref(entry), version, media)
            .await?;
        rendered
            .pop()
            .ok_or_else(|| Status::internal("a conversion lost an object"))
    }

    /// Returns the bytes of an object that was just written. Uses the object at hand where its bytes would have to be
    /// parsed again.
    pub(crate) async fn render_written(
        &self,
        entry: &Arc<Entry>,
        mut stored: Object,
        version: usize,
        media: Media,
    ) -> Result<Bytes, Status> {
        if media != Media::Protobuf || !self.in_shape(entry, version) {
            return self.render(entry, version, media).await;
        }
        stored.set_meta("resourceVersion", Value::from(entry.revision().to_string()));
        let bytes = self.encode(&stored, version, media)?;
        let variant = self.variant(version, media);
        self.store().variants().keep(entry, variant, bytes.clone());
        Ok(bytes)
    }

    /// Returns the bytes of several objects in a version, and converts them in batches where needed.
    pub(crate) async fn render_all(
        &self,
        entries: &[Arc<Entry>],
        version: usize,
        media: Media,
    ) -> Result<Vec<Bytes>, Status> {
        let mut rendered: Vec<Option<Bytes>> = entries
            .iter()
            .map(|entry| self.ready(entry, version, media))
            .collect();
        let missing: Vec<usize> = (0..entries.len())
            .filter(|at| rendered[*at].is_none())
            .collect();
        let size = missing.iter().map(|at| entries[*at].json().len()).sum();
        work::maybe_large(size).await;
        let mut pace = Pace::new();
        for part in missing.chunks(CONVERT_AT_ONCE) {
            let mut objects = Vec::with_capacity(part.len());
            for at in part {
                if pace.spend(entries[*at].json().len()) {
                    work::turn().await;
                }
                objects.push(parse_entry(&entries[*at])?);
            }
            let objects = self.show_all(objects, version).await?;
            for (at, object) in part.iter().zip(objects) {
                let entry = &entries[*at];
                if pace.spend(entry.json().len()) {
                    work::turn().await;
                }
                let bytes = self.encode(&object, version, media)?;
                if media != Media::Protobuf && bytes == entry.json() {
                    // Loaded from the log under an unknown schema, and now known to have this shape.
                    entry.set_shape(self.facts(version).fingerprint);
                } else {
                    self.store().variants().keep(
                        entry,
                        self.variant(version, media),
                        bytes.clone(),
                    );
                }
                rendered[*at] = Some(bytes);
            }
        }
        Ok(rendered.into_iter().flatten().collect())
    }

    /// Encodes an object of a version: JSON with type meta, or a bare protobuf message.
    pub(crate) fn encode(
        &self,
        object: &Object,
        version: usize,
        media: Media,
    ) -> Result<Bytes, Status> {
        if media != Media::Protobuf {
            return Ok(bareboat_wire::encode::wire(object.value()));
        }
        let message = self.version(version).shape.message();
        let message = message.ok_or_else(|| Status::internal("this kind has no protobuf form"))?;
        crate::protobuf::encode(message.get(), object.value()).map(Bytes::from)
    }

    /// Returns an entry as an object of a version.
    pub(crate) async fn object(&self, entry: &Entry, version: usize) -> Result<Object, Status> {
        if self.in_shape(entry, version) {
            return parse_entry(entry);
        }
        if let Some(bytes) = entry.variant(self.variant(version, Media::Json)) {
            return parse_object(entry.key(), &bytes);
        }
        self.show(parse_entry(entry)?, version).await
    }

    /// Converts a stored object to a version.
    pub(crate) async fn show(&self, object: Object, version: usize) -> Result<Object, Status> {
        let mut shown = self.show_all(vec![object], version).await?;
        shown
            .pop()
            .ok_or_else(|| Status::internal("a conversion lost an object"))
    }

    /// Converts stored objects to a version: applies the current shape of their stored version, with its defaults, then
    /// converts. Defaults of the requested version apply to requests only.
    async fn show_all(&self, objects: Vec<Object>, version: usize) -> Result<Vec<Object>, Status> {
        let wanted = &self.facts(version).api_version;
        // Schemas are compiled when they are needed.
        if self.version(version).shape.may_take_long() {
            work::large().await;
        }
        let mut same = Vec::new();
        let mut other = Vec::new();
        for (at, mut object) in objects.into_iter().enumerate() {
            let own = self.facts_of(object.api_version());
            if let Some(own) = own {
                let shape = &self.version(own).shape;
                let reshaped = shape.reshape(object.value_mut());
                reshaped.map_err(|why| unshown(&object, &why))?;
            }
            let is_wanted = object.api_version() == wanted && object.kind() == self.kind.names.kind;
            if is_wanted {
                same.push((at, object));
            } else {
                other.push((at, object));
            }
        }
        if !other.is_empty() {
            let (places, others): (Vec<usize>, Vec<Object>) = other.into_iter().unzip();
            let converted = self.convert(others, version, None).await?;
            for (at, mut object) in places.into_iter().zip(converted) {
                self.version(version).shape.trim(object.value_mut());
                same.push((at, object));
            }
            bareboat_api::sort_by(&mut same, |(a, _), (b, _)| a.cmp(b));
        }
        Ok(same.into_iter().map(|(_, object)| object).collect())
    }

    /// Returns the version of this kind that an apiVersion names.
    fn facts_of(&self, api_version: &str) -> Option<usize> {
        (0..self.kind.versions.len()).find(|at| self.facts(*at).api_version == api_version)
    }

    /// Converts objects of any versions to one version; `live` is the object that a write replaces.
    pub(crate) async fn convert(
        &self,
        objects: Vec<Object>,
        version: usize,
        live: Option<&Object>,
    ) -> Result<Vec<Object>, Status> {
        let wanted = self.facts(version).api_version.clone();
        self.convert_to(objects, &wanted, &self.kind.names.kind, live)
            .await
    }

    /// Converts an object to the storage version, and returns it with the fingerprint of its shape. A converted object
    /// may lack defaults of the storage version: readers fill them in, and the fingerprint is unknown.
    pub(crate) async fn to_storage_version(
        &self,
        object: Object,
        live: Option<&Object>,
    ) -> Result<(Object, u64), Status> {
        let kind = &self.kind;
        if object.api_version() == kind.storage_api_version && object.kind() == kind.storage_kind {
            return Ok((object, self.storage_fingerprint()));
        }
        let (to, name) = (&kind.storage_api_version, &kind.storage_kind);
        let mut stored = self.convert_to(vec![object], to, name, live).await?;
        let mut stored = stored
            .pop()
            .ok_or_else(|| Status::internal("a conversion lost an object"))?;
        let mut fingerprint = self.storage_fingerprint();
        if let Some(own) = self.storage_version() {
            let shape = &self.version(own).shape;
            shape.trim(stored.value_mut());
            if !shape.is_complete(stored.value()) {
                fingerprint = 0;
            }
        }
        Ok((stored, fingerprint))
    }

    async fn convert_to(
        &self,
        mut objects: Vec<Object>,
        api_version: &str,
        kind: &str,
        live: Option<&Object>,
    ) -> Result<Vec<Object>, Status> {
        let converted: Vec<Value> = match &self.kind.conversion {
            Conversion::Rename => {
                for object in &mut objects {
                    object.set_type(api_version, kind);
                }
                return Ok(objects);
            }
            Conversion::Pure(convert) => {
                let mut done = Vec::with_capacity(objects.len());
                // Expressions may cost far more than the size of the object suggests.
                if self.kind.policy.slow_conversion {
                    work::large().await;
                }
                let mut pace = Pace::new();
                for object in objects {
                    if pace.spend(CONVERT) {
                        work::turn().await;
                    }
                    let live = live.map(Object::value);
                    done.push(convert(object.into(), api_version, live).map_err(failed)?);
                }
                done
            }
            Conversion::Remote(converter) => {
                let count = objects.len();
                let values = objects.into_iter().map(Value::from).collect();
                let done = converter
                    .convert(values, api_version)
                    .await
                    .map_err(failed)?;
                if done.len() != count {
                    return Err(Status::internal("a conversion lost an object"));
                }
                done
            }
        };
        converted
            .into_iter()
            .map(|value| {
                let mut object = Object::try_from(value).map_err(|_| {
                    Status::internal("a conversion returned a value that is not an object")
                })?;
                object.set_type(api_version, kind);
                Ok(object)
            })
            .collect()
    }
}

/// Returns the Status for a stored object that the current schema cannot represent.
fn unshown(object: &Object, why: &str) -> Status {
    let (kind, name) = (object.kind(), object.name());
    Status::internal(format!("{kind} {name:?} cannot be shown: {why}"))
}

/// The client sees the converter's message: it names the converter or the expression.
fn failed(error: ConvertError) -> Status {
    Status::new(500, "", error.0.clone()).caused_by(error)
}
