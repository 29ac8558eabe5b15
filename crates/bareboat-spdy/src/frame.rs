//! Frames: decoded from bytes as they arrive, and encoded.

use crate::SpdyError;
use crate::headers::{HeaderEncoder, Headers};
use crate::inflate::Inflater;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The longest control frame.
const LONGEST_CONTROL: usize = 64 * 1024;
/// The longest payload of a data frame.
pub(crate) const LONGEST_DATA: usize = (1 << 24) - 1;
/// The first two bytes of a control frame of version 3.
const CONTROL: u16 = 0x8003;
const FIN: u8 = 1;
const UNIDIRECTIONAL: u8 = 2;
/// Stream IDs have 31 bits.
const ID: u32 = 0x7fff_ffff;

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetCode {
    /// The frame was not allowed.
    Protocol,
    /// The stream was not accepted.
    Refused,
    /// The stream is no longer needed.
    Cancel,
    /// Any other reason, with its number.
    Other(u32),
}

impl ResetCode {
    fn number(self) -> u32 {
        match self {
            ResetCode::Protocol => 1,
            ResetCode::Refused => 3,
            ResetCode::Cancel => 5,
            ResetCode::Other(number) => number,
        }
    }

    fn of(number: u32) -> ResetCode {
        match number {
            1 => ResetCode::Protocol,
            3 => ResetCode::Refused,
            5 => ResetCode::Cancel,
            other => ResetCode::Other(other),
        }
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// Opens a stream.
    SynStream {
        /// The ID of the new stream.
        stream: u32,
        /// The headers of the stream.
        headers: Headers,
        /// The sender sends no data.
        fin: bool,
        /// The receiver sends no data.
        unidirectional: bool,
    },
    /// Accepts a stream.
    SynReply {
        /// The ID of the stream.
        stream: u32,
        /// More headers.
        headers: Headers,
        /// The sender sends no data.
        fin: bool,
    },
    /// Ends a stream in both directions.
    Reset {
        /// The ID of the stream.
        stream: u32,
        /// The reason.
        code: ResetCode,
    },
    /// More headers of a stream.
    Headers {
        /// The ID of the stream.
        stream: u32,
        /// The headers.
        headers: Headers,
        /// The sender sends no more.
        fin: bool,
    },
    /// Bytes of a stream. A long data frame is decoded in pieces.
    Data {
        /// The ID of the stream.
        stream: u32,
        /// The bytes.
        data: Bytes,
        /// The sender sends no more.
        fin: bool,
    },
    /// Asks for the same frame as an answer, or is the answer.
    Ping(u32),
    /// The sender accepts no more streams.
    GoAway {
        /// The last stream that was accepted.
        last: u32,
        /// The reason; 0 for a normal end.
        code: u32,
    },
    /// A frame that is not needed here: settings, windows, or an unknown type.
    Ignored,
}

/// Encodes a frame. Data must be shorter than 16 MiB.
pub fn encode(frame: &Frame, encoder: &mut HeaderEncoder, out: &mut BytesMut) {
    match frame {
        Frame::SynStream {
            stream,
            headers,
            fin,
            unidirectional,
        } => {
            let flags = u8::from(*fin) * FIN + u8::from(*unidirectional) * UNIDIRECTIONAL;
            control(1, flags, out, |out| {
                out.put_u32(*stream & ID);
                out.put_u32(0);
                out.put_u16(0);
                encoder.put(headers, out);
            });
        }
        Frame::SynReply {
            stream,
            headers,
            fin,
        } => control(2, u8::from(*fin) * FIN, out, |out| {
            out.put_u32(*stream & ID);
            encoder.put(headers, out);
        }),
        Frame::Reset { stream, code } => control(3, 0, out, |out| {
            out.put_u32(*stream & ID);
            out.put_u32(code.number());
        }),
        Frame::Headers {
            stream,
            headers,
            fin,
        } => control(8, u8::from(*fin) * FIN, out, |out| {
            out.put_u32(*stream & ID);
            encoder.put(headers, out);
        }),
        Frame::Ping(id) => control(6, 0, out, |out| out.put_u32(*id)),
        Frame::GoAway { last, code } => control(7, 0, out, |out| {
            out.put_u32(*last & ID);
            out.put_u32(*code);
        }),
        Frame::Data { stream, data, fin } => {
            let data = &data[..data.len().min(LONGEST_DATA)];
            out.put_u32(*stream & ID);
            out.put_u32(u32::from(u8::from(*fin) * FIN) << 24 | data.len() as u32);
            out.extend_from_slice(data);
        }
        Frame::Ignored => {}
    }
}

fn control(kind: u16, flags: u8, out: &mut BytesMut, payload: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_u16(CONTROL);
    out.put_u16(kind);
    out.put_u32(0);
    payload(out);
    let length = (out.len() - start - 8) as u32;
    let word = u32::from(flags) << 24 | (length & 0x00ff_ffff);
    out[start + 4..start + 8].copy_from_slice(&word.to_be_bytes());
}

/// The data frame that is arriving.
#[derive(Clone, Copy)]
struct Arriving {
    stream: u32,
    fin: bool,
    left: usize,
}

/// Decodes the frames of one direction.
pub struct Decoder {
    inflater: Inflater,
    arriving: Option<Arriving>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            inflater: Inflater::new(),
            arriving: None,
        }
    }
}

impl Decoder {
    /// Takes the next frame out of the buffer; `None` if more bytes are needed.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, SpdyError> {
        if let Some(arriving) = self.arriving {
            return Ok(self.piece(arriving, buffer));
        }
        let Some((head, _)) = buffer.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let flags = head[4];
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        if first & !ID == 0 {
            buffer.advance(8);
            let arriving = Arriving {
                stream: first,
                fin: flags & FIN != 0,
                left: length,
            };
            if length == 0 {
                return Ok(Some(data(arriving, Bytes::new(), arriving.fin)));
            }
            self.arriving = Some(arriving);
            return Ok(self.piece(arriving, buffer));
        }
        if (first >> 16) as u16 != CONTROL {
            return Err(SpdyError::Protocol("a frame is not of version 3"));
        }
        if length > LONGEST_CONTROL {
            return Err(SpdyError::Protocol("a control frame is too long"));
        }
        if buffer.len() < 8 + length {
            return Ok(None);
        }
        buffer.advance(8);
        let payload = buffer.split_to(length);
        self.control(first as u16, flags, &payload).map(Some)
    }

    fn piece(&mut self, arriving: Arriving, buffer: &mut BytesMut) -> Option<Frame> {
        if buffer.is_empty() {
            return None;
        }
        let piece = buffer.split_to(buffer.len().min(arriving.left)).freeze();
        let left = arriving.left - piece.len();
        self.arriving = (left > 0).then_some(Arriving { left, ..arriving });
        Some(data(arriving, piece, arriving.fin && left == 0))
    }

    fn control(&mut self, kind: u16, flags: u8, mut payload: &[u8]) -> Result<Frame, SpdyError> {
        let fin = flags & FIN != 0;
        let mut number = || {
            let read = payload.try_get_u32();
            read.map_err(|_| SpdyError::Protocol("a control frame ends early"))
        };
        Ok(match kind {
            1 => {
                let stream = number()? & ID;
                number()?;
                // The priority and a slot, which nothing uses.
                payload
                    .try_get_u16()
                    .map_err(|_| SpdyError::Protocol("a control frame ends early"))?;
                Frame::SynStream {
                    stream,
                    headers: self.headers(payload)?,
                    fin,
                    unidirectional: flags & UNIDIRECTIONAL != 0,
                }
            }
            2 => Frame::SynReply {
                stream: number()? & ID,
                headers: self.headers(payload)?,
                fin,
            },
            3 => Frame::Reset {
                stream: number()? & ID,
                code: ResetCode::of(number()?),
            },
            6 => Frame::Ping(number()?),
            7 => Frame::GoAway {
                last: number()? & ID,
                code: number()?,
            },
            8 => Frame::Headers {
                stream: number()? & ID,
                headers: self.headers(payload)?,
                fin,
            },
            _ => Frame::Ignored,
        })
    }

    fn headers(&mut self, block: &[u8]) -> Result<Headers, SpdyError> {
        Headers::parse(&self.inflater.block(block)?)
    }
}

fn data(arriving: Arriving, data: Bytes, fin: bool) -> Frame {
    Frame::Data {
        stream: arriving.stream,
        data,
        fin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let headers =
            proptest::collection::vec(("[a-z]{1,6}", "[a-z ]{0,9}"), 0..4).prop_map(|all| {
                let mut headers = Headers::default();
                for (index, (name, value)) in all.iter().enumerate() {
                    headers.add(&format!("{name}{index}"), value);
                }
                headers
            });
        let id = 0u32..=ID;
        prop_oneof![
            (id.clone(), headers.clone(), any::<bool>(), any::<bool>()).prop_map(
                |(stream, headers, fin, unidirectional)| Frame::SynStream {
                    stream,
                    headers,
                    fin,
                    unidirectional
                }
            ),
            (id.clone(), headers.clone(), any::<bool>()).prop_map(|(stream, headers, fin)| {
                Frame::SynReply {
                    stream,
                    headers,
                    fin,
                }
            }),
            (id.clone(), headers, any::<bool>()).prop_map(|(stream, headers, fin)| {
                Frame::Headers {
                    stream,
                    headers,
                    fin,
                }
            }),
            (id.clone(), 0u32..12).prop_map(|(stream, code)| Frame::Reset {
                stream,
                code: ResetCode::of(code)
            }),
            any::<u32>().prop_map(Frame::Ping),
            (id.clone(), any::<u32>()).prop_map(|(last, code)| Frame::GoAway { last, code }),
            (
                id,
                proptest::collection::vec(any::<u8>(), 0..50),
                any::<bool>()
            )
                .prop_map(|(stream, data, fin)| Frame::Data {
                    stream,
                    data: data.into(),
                    fin
                }),
        ]
    }

    /// Decodes bytes that arrive in pieces, and joins pieces of data frames.
    fn decode(bytes: &[u8], step: usize) -> Result<Vec<Frame>, SpdyError> {
        let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
        let mut all: Vec<Frame> = Vec::new();
        let mut is_open = false;
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = decoder.next(&mut buffer)? {
                let goes_on = decoder.arriving.is_some();
                match (all.last_mut(), frame) {
                    (
                        Some(Frame::Data { data, fin, .. }),
                        Frame::Data {
                            data: more,
                            fin: last,
                            ..
                        },
                    ) if is_open => {
                        *data = [&data[..], &more[..]].concat().into();
                        *fin = last;
                    }
                    (_, frame) => all.push(frame),
                }
                is_open = goes_on;
            }
        }
        Ok(all)
    }

    proptest! {
        #[test]
        fn frames_come_back_however_they_are_cut(
            sent in proptest::collection::vec(frames(), 0..12),
            step in 1usize..40,
        ) {
            let (mut encoder, mut bytes) = (HeaderEncoder::default(), BytesMut::new());
            for frame in &sent {
                encode(frame, &mut encoder, &mut bytes);
            }
            let read = decode(&bytes, step).expect("valid frames");
            prop_assert_eq!(read, sent);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            step in 1usize..50,
        ) {
            let _ = decode(&bytes, step);
        }

        #[test]
        fn damaged_frames_are_frames_or_an_error(
            sent in proptest::collection::vec(frames(), 1..6),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let (mut encoder, mut bytes) = (HeaderEncoder::default(), BytesMut::new());
            for frame in &sent {
                encode(frame, &mut encoder, &mut bytes);
            }
            let place = at.index(bytes.len());
            bytes[place] = byte;
            let _ = decode(&bytes, 64);
        }
    }

    #[test]
    fn a_long_control_frame_is_refused_before_it_arrives() {
        let mut buffer = BytesMut::from(&[0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff][..]);
        assert!(Decoder::default().next(&mut buffer).is_err());
    }
}
