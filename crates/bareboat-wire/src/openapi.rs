//! OpenAPI documents as the protobuf messages kubectl asks for: gnostic's `Document`, v2 and v3.
//!
//! Messages of protobuf join by concatenation: the bytes of two documents, one after the other,
//! are the document with the paths and schemas of both. Building documents is the server's work.

mod common;
mod shape;
mod v2;
mod v3;

use crate::proto::ProtoError;
use bareboat_api::Value;

/// A Swagger 2.0 document, or a part of one, as `openapi.v2.Document`.
pub fn encode_v2(document: &Value) -> Result<Vec<u8>, ProtoError> {
    shape::encode(&v2::DOCUMENT, document)
}

/// An OpenAPI 3 document, or a part of one, as `openapi.v3.Document`.
pub fn encode_v3(document: &Value) -> Result<Vec<u8>, ProtoError> {
    shape::encode(&v3::DOCUMENT, document)
}

#[cfg(test)]
mod tests;
