//! The part of protobuf that the messages of etcd need: numbers, byte strings, nested messages.

use bytes::Bytes;

/// The value of a decoded field. Byte strings share the memory of the message.
pub(crate) enum Field {
    Number(u64),
    Bytes(Bytes),
}

/// Appends a byte string to `out`. An empty byte string is omitted, as in proto3.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_message(out, number, bytes);
    }
}

/// Appends a nested message to `out`, even if it is empty.
pub(crate) fn put_message(out: &mut Vec<u8>, number: u32, message: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, message.len() as u64);
    out.extend_from_slice(message);
}

/// Appends a number to `out`. Zero is omitted.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        put_varint(out, u64::from(number) << 3);
        put_varint(out, value);
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Passes the fields of `message` to `see`, in order. Returns `None` if the message is malformed or `see` returns
/// `None`.
pub(crate) fn fields(message: &Bytes, mut see: impl FnMut(u32, Field) -> Option<()>) -> Option<()> {
    let mut at = 0;
    while at < message.len() {
        let tag = varint(message, &mut at)?;
        let number = u32::try_from(tag >> 3).ok()?;
        match tag & 7 {
            0 => see(number, Field::Number(varint(message, &mut at)?))?,
            2 => {
                let len = usize::try_from(varint(message, &mut at)?).ok()?;
                let end = at.checked_add(len).filter(|end| *end <= message.len())?;
                see(number, Field::Bytes(message.slice(at..end)))?;
                at = end;
            }
            1 => at += 8,
            5 => at += 4,
            _ => return None,
        }
    }
    (at == message.len()).then_some(())
}

fn varint(message: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *message.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_and_read() {
        let mut out = Vec::new();
        put_number(&mut out, 3, 300);
        put_number(&mut out, 4, 0);
        put_bytes(&mut out, 1, b"key");
        put_bytes(&mut out, 2, b"");
        put_message(&mut out, 64, b"");
        assert_eq!(out, b"\x18\xac\x02\x0a\x03key\x82\x04\x00");
        let mut seen = Vec::new();
        let read = fields(&out.into(), |number, field| {
            seen.push(match field {
                Field::Number(value) => (number, value, Bytes::new()),
                Field::Bytes(bytes) => (number, 0, bytes),
            });
            Some(())
        });
        assert_eq!(read, Some(()));
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        assert_eq!(
            seen,
            [(3, 300, text("")), (1, 0, text("key")), (64, 0, text(""))]
        );
    }

    #[test]
    fn malformed_messages_are_refused() {
        let bad: [&[u8]; 6] = [
            b"\x0a",
            b"\x0a\x05x",
            b"\x0b",
            &[0xff; 20],
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            b"\x09\x01",
        ];
        for bytes in bad {
            let read = fields(&Bytes::copy_from_slice(bytes), |_, _| Some(()));
            assert!(read.is_none(), "{bytes:?}");
        }
    }
}
