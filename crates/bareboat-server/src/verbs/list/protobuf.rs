//! Lists in protobuf. The length of a list comes before its items: a large list is encoded twice, once to measure it
//! and once to send it, so that it is never in memory as a whole.

use super::body::ListBody;
use super::items::Items;
use super::{KindRequest, ListMeta};
use crate::reply::{self, Response};
use crate::request::negotiate::{Media, Transform};
use crate::tables;
use crate::work::{self, Pace};
use bareboat_api::Status;
use bareboat_wire::proto;
use http::StatusCode;

/// Lists up to this size are made at once.
const WHOLE: usize = 2 << 20;
/// How many bytes are encoded at once.
const STEP: usize = 256 << 10;

/// Answers with a list of whole objects or of their metadata.
pub(super) async fn list(
    call: &KindRequest,
    mut items: Items,
    meta: &ListMeta,
    transform: Transform,
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
    let (api_version, list_kind) = match transform {
        Transform::Metadata { beta } => (tables::meta_version(beta), "PartialObjectMetadataList"),
        _ => (
            call.served.api_version(call.version).as_str(),
            call.served.kind.names.list_kind.as_str(),
        ),
    };
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
