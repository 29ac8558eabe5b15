//! Any bytes as frames of SPDY: they are the same frames however they arrive, and read the same again when encoded.

use bareboat_spdy::{Decoder, Frame, HeaderEncoder, encode};
use bytes::BytesMut;

/// Decodes bytes that arrive in pieces. Data frames are cut differently each time, so only their bytes are compared.
fn decode(input: &[u8], step: usize) -> Option<(Vec<Frame>, Vec<u8>)> {
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    for piece in input.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(Frame::Data { data, .. })) => bytes.extend_from_slice(&data),
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return None,
            }
        }
    }
    Some((frames, bytes))
}

pub(crate) fn run(input: &[u8]) -> bool {
    let Some((frames, bytes)) = decode(input, 4096) else {
        return false;
    };
    let slowly = decode(input, 3).expect("the same bytes are accepted");
    assert_eq!(slowly, (frames.clone(), bytes));
    let (mut encoder, mut out) = (HeaderEncoder::default(), BytesMut::new());
    for frame in &frames {
        encode(frame, &mut encoder, &mut out);
    }
    let known: Vec<Frame> = frames
        .into_iter()
        .filter(|frame| *frame != Frame::Ignored)
        .collect();
    let (again, _) = decode(&out, 4096).expect("encoded frames are accepted");
    assert_eq!(again.len(), known.len());
    !known.is_empty()
}
