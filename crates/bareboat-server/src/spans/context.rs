//! Trace contexts as W3C defines them: the header `traceparent`, read and written.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Write as _;

/// The header with the context of the caller.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Identifies a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Identifies a span within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Returns a new id.
    pub(crate) fn random() -> TraceId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&random().to_be_bytes());
        id[8..].copy_from_slice(&random().to_be_bytes());
        TraceId(id)
    }
}

impl SpanId {
    /// Returns a new id.
    pub(crate) fn random() -> SpanId {
        SpanId(random().to_be_bytes())
    }
}

/// Returns 64 random bits, never all zero.
fn random() -> u64 {
    // The lowest 62 bits of a UUID are random, and so are the bits above its variant.
    let id = crate::random::uuid().as_u128();
    ((id as u64) << 2 | (id >> 64) as u64 & 3).max(1)
}

/// A span of a trace, and whether it is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the spans of this trace are recorded.
    pub sampled: bool,
}

impl TraceContext {
    /// Returns the context that a caller sent; `None` if it sent none or an invalid one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<TraceContext> {
        let mut all = headers.get_all(TRACEPARENT).iter();
        match (all.next(), all.next()) {
            (Some(one), None) => TraceContext::parse(one.as_bytes()),
            _ => None,
        }
    }

    /// Reads the value of the header: `VERSION-TRACE-SPAN-FLAGS` in hexadecimal. Later versions may append more.
    fn parse(text: &[u8]) -> Option<TraceContext> {
        let (version, rest) = (byte(text.get(..2)?)?, text.get(2..)?);
        let known = version == 0 && text.len() == 55;
        let later = version != 0 && version != 0xff && matches!(text.get(55), None | Some(b'-'));
        if !(known || later) || rest.first() != Some(&b'-') {
            return None;
        }
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        hex(text.get(3..35)?, &mut trace)?;
        hex(text.get(36..52)?, &mut span)?;
        let flags = byte(text.get(53..55)?)?;
        let separated = text[35] == b'-' && text[52] == b'-';
        let valid = separated && trace != [0; 16] && span != [0; 8];
        valid.then_some(TraceContext {
            trace: TraceId(trace),
            span: SpanId(span),
            sampled: flags & 1 == 1,
        })
    }

    /// Returns the value of the header for another server, with this span as its caller.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.to_string()).ok()
    }
}

impl std::fmt::Display for TraceContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("00-")?;
        self.trace
            .0
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_char('-')?;
        self.span
            .0
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

fn byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| match text.get(at) {
        Some(digit @ b'0'..=b'9') => Some(digit - b'0'),
        // Capital letters are invalid.
        Some(digit @ b'a'..=b'f') => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(digit(0)? << 4 | digit(1)?)
}

fn hex(text: &[u8], out: &mut [u8]) -> Option<()> {
    for (pair, out) in text.chunks(2).zip(out) {
        *out = byte(pair)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context = TraceContext::parse(GOOD.as_bytes()).expect("valid");
        assert!(context.sampled);
        assert_eq!(context.span.0[1], 0xf0);
        assert_eq!(context.to_string(), GOOD);
        let off = GOOD.replace("-01", "-00");
        let off = TraceContext::parse(off.as_bytes()).expect("valid");
        assert!(!off.sampled);
    }

    #[test]
    fn a_later_version_may_have_more() {
        let later = GOOD.replacen("00", "01", 1);
        assert!(TraceContext::parse(later.as_bytes()).is_some());
        assert!(TraceContext::parse(format!("{later}-more").as_bytes()).is_some());
        assert!(TraceContext::parse(format!("{later}more").as_bytes()).is_none());
    }

    #[test]
    fn invalid_contexts_are_ignored() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "zz-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn two_headers_are_none() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static(GOOD);
        headers.append(TRACEPARENT, value.clone());
        assert!(TraceContext::of(&headers).is_some());
        headers.append(TRACEPARENT, value);
        assert_eq!(TraceContext::of(&headers), None);
    }
}
