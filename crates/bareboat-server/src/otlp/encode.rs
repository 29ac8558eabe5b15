//! Encodes spans as an `ExportTraceServiceRequest` of OTLP, in protobuf.

use crate::spans::{RequestSpans, SpanId};
use std::time::{Duration, SystemTime};

/// The kinds of spans in OTLP.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// The status of a span that failed.
const ERROR: u64 = 2;

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// Adds a `KeyValue` with a text.
    fn text(&mut self, field: u32, name: &str, text: &str) {
        self.message(field, |pair| {
            pair.bytes(1, name.as_bytes());
            pair.message(2, |value| value.bytes(1, text.as_bytes()));
        });
    }

    /// Adds a `KeyValue` with a number.
    fn count(&mut self, field: u32, name: &str, count: u64) {
        self.message(field, |pair| {
            pair.bytes(1, name.as_bytes());
            pair.message(2, |value| value.number(3, count));
        });
    }
}

/// Returns the request for the spans of `requests`.
pub(super) fn encode(resource: &[(String, String)], requests: &[RequestSpans]) -> Vec<u8> {
    let mut out = Message::default();
    out.message(1, |group| {
        group.message(1, |message| {
            for (name, value) in resource {
                message.text(1, name, value);
            }
        });
        group.message(2, |scoped| {
            scoped.message(1, |scope| {
                scope.bytes(1, b"bareboat");
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for request in requests {
                write(scoped, request);
            }
        });
    });
    out.0
}

/// What all spans have.
struct Head<'a> {
    id: SpanId,
    parent: Option<SpanId>,
    name: &'a str,
    kind: u64,
    from: Duration,
    to: Duration,
}

fn write(scoped: &mut Message, request: &RequestSpans) {
    let head = |message: &mut Message, head: Head<'_>| {
        message.bytes(1, &request.context.trace.0);
        message.bytes(2, &head.id.0);
        if let Some(parent) = head.parent {
            message.bytes(4, &parent.0);
        }
        message.bytes(5, head.name.as_bytes());
        message.number(6, head.kind);
        message.fixed(7, nanos(request.started + head.from));
        message.fixed(8, nanos(request.started + head.to));
    };
    scoped.message(2, |span| {
        let own = Head {
            id: request.context.span,
            parent: request.parent,
            name: &request.name,
            kind: SERVER,
            from: Duration::ZERO,
            to: request.took,
        };
        head(span, own);
        for (name, text) in &request.attributes {
            span.text(9, name, text);
        }
        span.count(9, "http.response.status_code", request.code.into());
        if request.code >= 500 {
            span.message(15, |status| status.number(3, ERROR));
        }
    });
    for child in &request.children {
        scoped.message(2, |span| {
            let own = Head {
                id: child.id,
                parent: Some(request.context.span),
                name: &child.name,
                kind: match child.is_call {
                    true => CLIENT,
                    false => INTERNAL,
                },
                from: child.from,
                to: child.to,
            };
            head(span, own);
            for (name, text) in &child.attributes {
                span.text(9, name, text);
            }
            if child.failed {
                span.message(15, |status| status.number(3, ERROR));
            }
        });
    }
}

fn nanos(at: SystemTime) -> u64 {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
