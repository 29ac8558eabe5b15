//! The envelope around every object: four magic bytes and an `Unknown` message.

use super::ProtoError;
use super::raw::{Reader, Wire, write_bytes, write_nested};

/// The bytes at the start of every protobuf body.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// A decoded envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The object's apiVersion.
    pub api_version: &'a str,
    /// The object's kind.
    pub kind: &'a str,
    /// The object's message.
    pub raw: &'a [u8],
    /// The compression of `raw`; empty for none.
    pub content_encoding: &'a str,
    /// The media type of `raw`; empty for protobuf.
    pub content_type: &'a str,
}

/// Decodes an envelope.
pub fn decode_envelope(body: &[u8]) -> Result<Envelope<'_>, ProtoError> {
    let Some(unknown) = body.strip_prefix(MAGIC) else {
        return Err(ProtoError::new(
            "the body does not start with the bytes of a Kubernetes protobuf message",
        ));
    };
    if unknown.is_empty() {
        return Err(ProtoError::new("the body is empty"));
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(unknown);
    while !reader.is_empty() {
        match reader.tag()? {
            (1, Wire::Bytes) => type_meta(reader.bytes()?, &mut envelope)?,
            (2, Wire::Bytes) => envelope.raw = reader.bytes()?,
            (3, Wire::Bytes) => envelope.content_encoding = text(reader.bytes()?)?,
            (4, Wire::Bytes) => envelope.content_type = text(reader.bytes()?)?,
            (number @ 1..=4, wire) => return Err(wrong_wire(number, wire)),
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(envelope)
}

fn type_meta<'a>(bytes: &'a [u8], envelope: &mut Envelope<'a>) -> Result<(), ProtoError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.tag()? {
            (1, Wire::Bytes) => envelope.api_version = text(reader.bytes()?)?,
            (2, Wire::Bytes) => envelope.kind = text(reader.bytes()?)?,
            (number @ 1..=2, wire) => return Err(wrong_wire(number, wire)),
            (_, wire) => reader.skip(wire)?,
        }
    }
    Ok(())
}

/// Appends an envelope around the bytes that `write` appends.
pub fn encode_envelope(
    api_version: &str,
    kind: &str,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), ProtoError>,
) -> Result<(), ProtoError> {
    write_envelope_head(api_version, kind, out);
    write_nested(2, out, write)?;
    out.extend_from_slice(ENVELOPE_TAIL);
    Ok(())
}

/// Appends the magic bytes and the type; the message with tag 2 and [`ENVELOPE_TAIL`] follow.
pub(super) fn write_envelope_head(api_version: &str, kind: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    let type_meta = |out: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
        write_bytes(1, api_version.as_bytes(), out);
        write_bytes(2, kind.as_bytes(), out);
        Ok(())
    };
    let Ok(()) = write_nested(1, out, type_meta);
}

/// The empty content encoding and content type.
pub(super) const ENVELOPE_TAIL: &[u8] = &[0x1a, 0, 0x22, 0];

pub(super) fn text(bytes: &[u8]) -> Result<&str, ProtoError> {
    std::str::from_utf8(bytes).map_err(|_| ProtoError::new("a string is not valid UTF-8"))
}

pub(super) fn wrong_wire(number: u32, wire: Wire) -> ProtoError {
    ProtoError::new(format!("field {number} cannot be of wire type {wire:?}"))
}
