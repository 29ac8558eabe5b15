//! Parses request bodies that are not objects of a kind: options, scales, reviews.

use super::negotiate::Media;
use bareboat_api::Value;
use bareboat_api::facts::MessageRef;

/// Parses a body in a media type; `message` is its protobuf message. The error describes the problem for the client.
pub(crate) fn parse(
    media: Media,
    body: &[u8],
    message: Option<MessageRef>,
) -> Result<Value, String> {
    match media {
        Media::Json => bareboat_wire::json::parse(body)
            .map(|parsed| parsed.value)
            .map_err(|error| error.to_string()),
        Media::Yaml => bareboat_wire::yaml::parse(body)
            .map(|parsed| parsed.value)
            .map_err(|error| error.to_string()),
        Media::Protobuf => {
            let message = message.ok_or_else(|| "it has no protobuf form here".to_owned())?;
            let envelope =
                bareboat_wire::proto::decode_envelope(body).map_err(|error| error.to_string())?;
            bareboat_wire::proto::decode_message(message.get(), envelope.raw)
                .map_err(|error| error.to_string())
        }
    }
}
