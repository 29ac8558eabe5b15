//! Encodes a Status as a response.

use super::{Response, full};
use crate::protobuf::MetaMessages;
use crate::request::negotiate::{Media, Offer, negotiate};
use bareboat_api::Status;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Encodes a Status in a media type the client accepts, or as indented JSON if it accepts none.
pub(crate) fn status_response(
    request: &HeaderMap,
    pretty: Option<&str>,
    messages: &MetaMessages,
    status: &Status,
) -> Response {
    let offer = Offer {
        protobuf: messages.available(),
        ..Offer::PLAIN
    };
    let agreed = negotiate(request, pretty, &offer);
    let value = status.to_value();
    let (media, bytes) = match agreed {
        Some(agreed) if agreed.media == Media::Protobuf => match messages.status(&value) {
            Some(bytes) => (Media::Protobuf, bytes.to_vec()),
            None => (Media::Json, value.to_json()),
        },
        Some(agreed) if agreed.media == Media::Yaml => {
            (Media::Yaml, bareboat_wire::yaml::print(&value))
        }
        Some(agreed) if !agreed.pretty => (Media::Json, value.to_json()),
        _ => (Media::Json, value.to_json_pretty()),
    };
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = full(code, media.name(), bytes.into());
    let seconds = status
        .details
        .as_ref()
        .map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if matches!(status.code, 401 | 403) {
        let nosniff = HeaderValue::from_static("nosniff");
        response
            .headers_mut()
            .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    response
}

/// Returns a plain text answer.
pub(crate) fn plain_text(code: StatusCode, text: impl Into<String>) -> Response {
    let text: String = text.into();
    full(code, "text/plain; charset=utf-8", text.into())
}
