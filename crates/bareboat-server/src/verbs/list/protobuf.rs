//! Lists in protobuf. The length of a list comes before its items: a large list is gone through twice, once to measure
//! it and once to send it, so that it is never in memory as a whole.

use super::body::ListBody;
use super::items::Items;
use super::{Call, ListMeta, present};
use crate::protobuf;
use crate::reply::{self, Response};
use crate::request::negotiate::{Agreed, Media, Transform};
use crate::tables;
use crate::work::{self, Pace};
use bareboat_api::Status;
use bareboat_wire::proto;
use bytes::Bytes;
use http::StatusCode;

/// Lists up to this size are made at once.
const WHOLE: usize = 2 << 20;
/// How much is encoded at once.
const STEP: usize = 256 << 10;

/// Answers with a list of messages.
pub(super) async fn messages(
    call: &Call,
    mut items: Items,
    meta: &ListMeta,
) -> Result<Response, Status> {
    let again = items.again();
    let mut gathered = Vec::new();
    let mut size = 0;
    let mut pace = Pace::new();
    while let Some(messages) = items.next_messages(STEP).await? {
        let sizes = messages.iter().map(|one| proto::list_item_len(one.len()));
        let step: usize = sizes.sum();
        if pace.spend(step) {
            work::turn().await;
        }
        size += step;
        if size <= WHOLE {
            gathered.extend(messages);
        } else {
            gathered = Vec::new();
        }
    }
    let api_version = call.served.api_version(call.version);
    let list_kind = &call.served.kind.names.list_kind;
    if size <= WHOLE {
        work::maybe_large(size).await;
        let bytes = meta.protobuf(api_version, list_kind, &gathered);
        return Ok(reply::full(StatusCode::OK, Media::Protobuf.name(), bytes));
    }
    let mut head = Vec::with_capacity(128);
    meta.with(|meta| proto::write_list_head(api_version, list_kind, meta, size, &mut head));
    let body = ListBody::of_messages(again, head, size);
    body.respond(Media::Protobuf.name()).await
}

/// Answers with a list of metadata.
pub(super) async fn metadata(
    call: &Call,
    mut items: Items,
    meta: &ListMeta,
    agreed: Agreed,
) -> Result<Response, Status> {
    let beta = matches!(agreed.transform, Transform::Metadata { beta: true });
    let message = call.messages().meta("PartialObjectMetadata");
    let message = message.ok_or_else(|| Status::internal("no message for metadata"))?;
    let mut messages = Vec::new();
    let mut pace = Pace::new();
    for json in items.collect().await? {
        if pace.spend(json.len()) {
            work::turn().await;
        }
        let value = present::reread(&json)?;
        let raw = protobuf::encode(message.get(), &value)?;
        messages.push(raw.into());
    }
    work::maybe_large(messages.iter().map(Bytes::len).sum()).await;
    let version = tables::meta_version(beta);
    let bytes = meta.protobuf(version, "PartialObjectMetadataList", &messages);
    Ok(reply::full(StatusCode::OK, Media::Protobuf.name(), bytes))
}
