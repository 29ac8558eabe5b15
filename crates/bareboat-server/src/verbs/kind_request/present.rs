//! Answers with one object, in the negotiated encoding.

use super::{Arity, KindRequest};
use crate::reply::{self, Response};
use crate::request::negotiate::{Agreed, Media, Transform};
use crate::tables::{self, Include};
use crate::work;
use bareboat_api::{Object, Status, Value};
use bareboat_storage::Entry;
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;

/// The object of an answer.
pub(crate) enum Shown {
    /// A stored object.
    Entry(Arc<Entry>),
    /// An object that was just written, and its entry.
    Written(Arc<Entry>, Object),
    /// An object of the requested version that is not stored (a dry run, a last state).
    Object(Object),
}

impl KindRequest {
    /// Answers with one object.
    pub(crate) async fn present(&self, code: StatusCode, shown: Shown) -> Result<Response, Status> {
        let agreed = self.negotiate(Arity::One)?;
        // Tables and metadata are extracted from JSON.
        let media = match agreed.transform {
            Transform::Whole => agreed.media,
            _ => Media::Json,
        };
        if let Shown::Entry(entry) | Shown::Written(entry, _) = &shown
            && !(agreed.is_plain_json() && self.served.is_ready(entry, self.version))
        {
            work::maybe_large(entry.json().len()).await;
        }
        let bytes = match shown {
            Shown::Entry(entry) => self.served.render(&entry, self.version, media).await?,
            Shown::Written(entry, stored) => {
                self.served
                    .render_written(&entry, stored, self.version, media)
                    .await?
            }
            Shown::Object(object) => self.served.encode(&object, self.version, media)?,
        };
        self.present_bytes(code, agreed, bytes)
    }

    fn present_bytes(
        &self,
        code: StatusCode,
        agreed: Agreed,
        bytes: Bytes,
    ) -> Result<Response, Status> {
        match (agreed.transform, agreed.media) {
            (Transform::Whole, Media::Json) if !agreed.pretty => {
                Ok(reply::full(code, Media::Json.name(), bytes))
            }
            (Transform::Whole, Media::Protobuf) => {
                let api_version = self.served.api_version(self.version);
                let kind = &self.served.kind.names.kind;
                let bytes = crate::protobuf::envelope(api_version, kind, &bytes);
                Ok(reply::full(code, Media::Protobuf.name(), bytes))
            }
            (Transform::Whole, _) => Ok(reply::value(code, agreed, &reread(&bytes)?)),
            (Transform::Table { beta }, _) => {
                let include = Include::of(&self.ask.query)?;
                let (kind, columns) = (&self.served.kind, &self.version().columns);
                let (object, now) = (reread_object(&bytes)?, self.state.clock.now());
                let table = tables::of_one(kind, columns, object, include, beta, now);
                Ok(reply::value(code, agreed, &table))
            }
            (Transform::Metadata { beta }, media) => {
                let value = tables::partial(&reread_object(&bytes)?, beta);
                if media != Media::Protobuf {
                    return Ok(reply::value(code, agreed, &value));
                }
                self.present_metadata(code, &value, beta)
            }
        }
    }

    /// Returns metadata as a protobuf message.
    pub(crate) fn present_metadata(
        &self,
        code: StatusCode,
        value: &Value,
        beta: bool,
    ) -> Result<Response, Status> {
        let version = tables::meta_version(beta);
        let bytes = self
            .messages()
            .enveloped("PartialObjectMetadata", version, value);
        let bytes = bytes.ok_or_else(|| Status::internal("no message for metadata"))?;
        Ok(reply::full(code, Media::Protobuf.name(), bytes))
    }
}

/// Parses bytes this server wrote.
pub(crate) fn reread(bytes: &[u8]) -> Result<Value, Status> {
    let parsed = bareboat_wire::json::parse(bytes);
    parsed
        .map(|parsed| parsed.value)
        .map_err(|error| Status::internal("an object could not be read back").caused_by(error))
}

/// Parses bytes this server wrote as an object.
pub(crate) fn reread_object(bytes: &[u8]) -> Result<Object, Status> {
    Object::try_from(reread(bytes)?)
        .map_err(|_| Status::internal("an object could not be read back"))
}
