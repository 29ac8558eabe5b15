//! Watch: sends the initial state if requested, then every change.

mod body;
mod coalesced;
mod frame;
mod start;
#[cfg(feature = "websockets")]
mod websocket;
#[cfg(not(feature = "websockets"))]
mod without_websocket;

use super::kind_request::{Arity, KindRequest};
use super::selection::Selection;
use super::visibility;
use crate::flow::Seat;
use crate::reply::{Body, Response};
use crate::request::negotiate::{Media, Transform};
use crate::request::options::ListOptions;
use crate::tables::Include;
use bareboat_api::Status;
use body::WatchBody;
use frame::Frames;
use http::{HeaderValue, header};
use start::Start;
use std::sync::Arc;
use std::time::{Duration, Instant};
#[cfg(feature = "websockets")]
use websocket::Upgrade;
#[cfg(not(feature = "websockets"))]
use without_websocket::Upgrade;

/// Lower bound of a watch's lifetime if the client sets none; the upper bound is twice as long.
const SHORTEST: Duration = Duration::from_secs(1800);

/// Answers with a stream of events. The seat is for its beginning.
pub(crate) async fn watch(
    call: Arc<KindRequest>,
    seat: Option<Arc<Seat>>,
) -> Result<Response, Status> {
    let mut options = ListOptions::parse(&call.ask.query, true)?;
    if !call.ask.info.name.is_empty() {
        pin(&mut options, &call.ask.info.name);
    }
    let agreed = call.negotiate(Arity::Stream)?;
    let include = Include::for_transform(&call.ask.query, agreed.transform)?;
    let mut selection = Selection::parse(&call.served, call.version, &options)?;
    visibility::complete_watch(&call, &mut selection).await?;
    let media = match agreed.transform {
        Transform::Table { .. } => Media::Json,
        _ => agreed.media,
    };
    let upgrade = match Upgrade::of(&call.ask) {
        Ok(upgrade) => upgrade,
        Err(refusal) => return Ok(*refusal),
    };
    let start = Start::choose(&call, &options, &selection).await;
    let frames = Frames {
        served: call.served.clone(),
        version: call.version,
        messages: call.state.messages,
        selection,
        media,
        transform: agreed.transform,
        include,
        clock: call.state.clock.clone(),
        threads: call.state.threads.clone(),
        standing: call.ask.standing.clone(),
        meter: call.state.metrics.watches.begin(
            &call.served.kind,
            &call.version().name,
            !call.ask.info.namespace.is_empty(),
        ),
    };
    let lifetime = options.timeout.unwrap_or_else(|| {
        // Randomized, so that the watches of a restart do not all end in the same second.
        let spread = crate::random::uuid().as_u128() as u64 % SHORTEST.as_secs();
        SHORTEST + Duration::from_secs(spread)
    });
    let mut body = WatchBody::new(
        frames,
        start,
        options.bookmarks,
        Instant::now() + lifetime,
        call.state.ending().or_of(call.ask.standing.clone()),
    );
    let held = body.begin(seat).await;
    if let Some(upgrade) = upgrade {
        return Ok(upgrade.respond(body, media));
    }
    let mut response = http::Response::new(Body::stream_holding(body, held));
    let content_type = match media {
        Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}

/// Selects the object with the name in the path, as in `/watch/…/name`.
fn pin(options: &mut ListOptions, name: &str) {
    let escaped = name
        .replace('\\', "\\\\")
        .replace(',', "\\,")
        .replace('=', "\\=");
    let pinned = format!("metadata.name={escaped}");
    options.field_selector = Some(match options.field_selector.take() {
        Some(selector) => format!("{selector},{pinned}"),
        None => pinned,
    });
}
