//! Answers: bodies, headers, and how a Status becomes a response.

pub mod body;
#[cfg(feature = "gzip")]
mod gzip;
mod status;
#[cfg(not(feature = "gzip"))]
mod without_gzip;

pub use body::Body;
#[cfg(feature = "gzip")]
pub(crate) use gzip::compress_if_wanted;
pub(crate) use status::{plain_text, status_response};
#[cfg(not(feature = "gzip"))]
pub(crate) use without_gzip::compress_if_wanted;

use crate::request::negotiate::{Agreed, Media};
use bareboat_api::Value;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};

/// The content type of most answers.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A response of this server.
pub type Response = http::Response<Body>;

/// Returns a response with a body in one piece.
pub(crate) fn full(code: StatusCode, content_type: &'static str, bytes: Bytes) -> Response {
    let mut response = http::Response::new(Body::full(bytes));
    *response.status_mut() = code;
    let content_type = match content_type == Media::Json.name() {
        true => JSON,
        false => HeaderValue::from_static(content_type),
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Returns a response with a value in JSON, for functions that answer requests themselves.
pub fn json(code: StatusCode, value: &Value) -> Response {
    full(code, Media::Json.name(), value.to_json().into())
}

/// A value in the negotiated media type. Protobuf is left to callers that know the message.
pub fn value(code: StatusCode, agreed: Agreed, value: &Value) -> Response {
    let bytes = match agreed.media {
        Media::Yaml => bareboat_wire::yaml::print(value),
        _ if agreed.pretty => value.to_json_pretty(),
        _ => value.to_json(),
    };
    let media = if agreed.media == Media::Yaml {
        Media::Yaml
    } else {
        Media::Json
    };
    full(code, media.name(), bytes.into())
}

/// Above this total length, each warning is cut.
const WARNINGS_BUDGET: usize = 4096;
/// Length of a cut warning.
const WARNING_CUT: usize = 256;

/// Adds Warning headers.
pub(crate) fn add_warnings(response: &mut Response, warnings: Vec<String>) {
    let total: usize = warnings.iter().map(|text| text.chars().count()).sum();
    let mut spent = 0;
    for text in warnings.into_iter().filter(|text| !text.is_empty()) {
        let text: String = if total > WARNINGS_BUDGET {
            text.chars().take(WARNING_CUT).collect()
        } else {
            text
        };
        spent += text.chars().count();
        if spent > WARNINGS_BUDGET {
            return;
        }
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        // Control characters are not allowed in a header.
        let clean: String = escaped
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{clean}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}
