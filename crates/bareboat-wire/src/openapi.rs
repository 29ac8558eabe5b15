//! OpenAPI documents as the protobuf messages that kubectl requests: gnostic's `Document`, v2 and
//! v3.
//!
//! Concatenating protobuf messages merges them: the bytes of two documents, one after the other,
//! are the document with the paths and schemas of both. The server builds the documents.

mod common;
mod encoding;
mod v2;
mod v3;

use crate::proto::ProtoError;
use bareboat_api::Value;

/// Encodes a Swagger 2.0 document, or a part of one, as `openapi.v2.Document`.
pub fn encode_v2(document: &Value) -> Result<Vec<u8>, ProtoError> {
    encoding::encode(&v2::DOCUMENT, document)
}

/// Encodes an OpenAPI 3 document, or a part of one, as `openapi.v3.Document`.
pub fn encode_v3(document: &Value) -> Result<Vec<u8>, ProtoError> {
    encoding::encode(&v3::DOCUMENT, document)
}

#[cfg(test)]
mod tests;
