//! Bodies of requests and answers, kept as they were sent and decoded when an event is written.

use bareboat_api::Value;
use bareboat_api::facts::MessageRef;
use bareboat_wire::proto;
use bytes::Bytes;
use std::fmt;

/// Kinds of bodies in protobuf, and their messages.
pub type Messages = Vec<(String, MessageRef)>;

/// A body, and how it is read if it is protobuf.
#[derive(Clone)]
pub struct Payload {
    bytes: Bytes,
    messages: Messages,
}

impl Payload {
    /// A body in JSON or YAML.
    pub fn new(bytes: Bytes) -> Payload {
        Payload {
            bytes,
            messages: Messages::new(),
        }
    }

    /// A body that is of one of these kinds if it is protobuf.
    #[must_use]
    pub fn of_kinds(mut self, messages: &Messages) -> Payload {
        self.messages = messages.clone();
        self
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Decodes the bytes to a value; `None` if that fails.
    pub(crate) fn decode(&self) -> Option<Value> {
        if self.bytes.is_empty() {
            return None;
        }
        if self.bytes.starts_with(proto::MAGIC) {
            return self.decode_message();
        }
        let parsed = match bareboat_wire::json::parse(&self.bytes) {
            Ok(parsed) => Some(parsed),
            Err(_) => bareboat_wire::yaml::parse(&self.bytes).ok(),
        };
        // A bare text is valid YAML, but neither an object of the API nor a patch.
        let value = parsed?.value;
        matches!(value, Value::Object(_) | Value::Array(_)).then_some(value)
    }

    fn decode_message(&self) -> Option<Value> {
        let envelope = proto::decode_envelope(&self.bytes).ok()?;
        let mut known = self.messages.iter();
        let (kind, message) = known.find(|(kind, _)| envelope.kind == kind)?;
        let mut value = proto::decode_message(message.get(), envelope.raw).ok()?;
        let map = value.make_object();
        map.insert("apiVersion", Value::string(envelope.api_version));
        map.insert("kind", Value::string(kind));
        Some(value)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content may be confidential.
        write!(f, "Payload({} bytes)", self.bytes.len())
    }
}
