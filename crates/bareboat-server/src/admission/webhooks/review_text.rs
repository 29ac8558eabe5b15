//! The text of an AdmissionReview. Large objects are not copied into it: all webhooks that are sent the same object share
//! one text of it.

use crate::request::body::RequestBody;
use crate::work;
use bareboat_api::Value;
use bareboat_api::value::write_string;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The text of a review, in pieces: one if it is small.
pub(super) struct ReviewText(Vec<Bytes>);

impl ReviewText {
    /// Makes the review of a request, which lacks its objects, with the texts of the new and the old object.
    pub(super) fn new(
        api_version: &str,
        request: &Value,
        (object, old): (Bytes, Bytes),
    ) -> ReviewText {
        let size = object.len() + old.len();
        let is_small = size <= work::LARGE;
        let mut out = Vec::with_capacity(if is_small { size + 1024 } else { 1024 });
        out.extend_from_slice(br#"{"kind":"AdmissionReview","apiVersion":"#);
        write_string(api_version, &mut out);
        out.extend_from_slice(br#","request":"#);
        request.write_json(&mut out);
        // The objects are encoded already: they are added before the last brace.
        out.pop();
        let (object_key, old_key, end) = (&br#","object":"#[..], &br#","oldObject":"#[..], b"}}");
        out.extend_from_slice(object_key);
        if is_small {
            for part in [&object[..], old_key, &old[..], end] {
                out.extend_from_slice(part);
            }
            return ReviewText(vec![out.into()]);
        }
        let (old_key, end) = (Bytes::from_static(old_key), Bytes::from_static(end));
        ReviewText(vec![out.into(), object, old_key, old, end])
    }

    /// Returns the pieces.
    pub(super) fn pieces(&self) -> &[Bytes] {
        &self.0
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Returns it as the body of a request.
    pub(super) fn body(&self) -> RequestBody {
        match &self.0[..] {
            [whole] => RequestBody::Memory(whole.clone()),
            pieces => RequestBody::new(Pieces {
                left: self.len() as u64,
                pieces: pieces.iter().cloned().collect(),
            }),
        }
    }
}

/// A body of several pieces, whose length is known.
struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use bareboat_api::value;

    const NULL: Bytes = Bytes::from_static(b"null");

    fn review(uid: &str, object: &Bytes) -> ReviewText {
        let request = value!({"uid": (uid)});
        ReviewText::new("admission.k8s.io/v1", &request, (object.clone(), NULL))
    }

    #[tokio::test]
    async fn small_and_large_reviews_say_the_same() {
        for size in [1, work::LARGE * 3] {
            let object = Bytes::from(format!("\"{}\"", "x".repeat(size)));
            let text = review("u", &object);
            assert_eq!(text.body().size_hint().exact(), Some(text.len() as u64));
            let sent = text.body().read().await.ok().unwrap();
            assert_eq!(sent.len(), text.len());
            let sent = bareboat_wire::json::parse(&sent).unwrap().value;
            assert_eq!(
                sent.at(&["apiVersion"]),
                Some(&"admission.k8s.io/v1".into())
            );
            let request = sent.get("request").unwrap();
            assert_eq!(request.get("uid"), Some(&"u".into()));
            assert_eq!(request.get("oldObject"), Some(&Value::Null));
            let found = request.get("object").and_then(Value::as_str).unwrap();
            assert_eq!(found.len(), size);
        }
    }

    #[test]
    fn reviews_of_a_large_object_share_its_text() {
        let object = Bytes::from(vec![b'7'; work::LARGE + 1]);
        let (one, other) = (review("u", &object), review("v", &object));
        for text in [&one, &other] {
            let holds = |piece: &&Bytes| piece.as_ptr() == object.as_ptr();
            assert_eq!(text.pieces().iter().filter(holds).count(), 1);
            let own: usize = text.len() - object.len();
            assert!(own < 1024, "{own}");
        }
    }
}
