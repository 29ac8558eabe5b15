//! The protobuf wire format: varints, tags, lengths.

use super::ProtoError;

/// The wire type of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    StartGroup,
    EndGroup,
    Fixed32,
}

/// A cursor over the bytes of a message.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte has room for only one bit.
            if index == 9 && *byte > 1 {
                return Err(ProtoError::new("a varint does not fit 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        let short = self.rest.len() < 10;
        Err(ProtoError::new(if short {
            "the message ends inside a varint"
        } else {
            "a varint does not fit 64 bits"
        }))
    }

    pub(crate) fn tag(&mut self) -> Result<(u32, Wire), ProtoError> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            3 => Wire::StartGroup,
            4 => Wire::EndGroup,
            5 => Wire::Fixed32,
            other => return Err(ProtoError::new(format!("there is no wire type {other}"))),
        };
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| ProtoError::new(format!("illegal tag {tag}")))?;
        Ok((number, wire))
    }

    /// Reads a length and that many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], ProtoError> {
        let length = self.varint()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.take(length)
    }

    pub(crate) fn fixed64(&mut self) -> Result<u64, ProtoError> {
        let bytes = self.take(8)?;
        let bytes = bytes.try_into().expect("eight bytes were taken");
        Ok(u64::from_le_bytes(bytes))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtoError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            let message = format!("{length} bytes announced, {} left", self.rest.len());
            return Err(ProtoError::new(message));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Skips the payload of an unknown member.
    pub(crate) fn skip(&mut self, wire: Wire) -> Result<(), ProtoError> {
        let mut wire = wire;
        let mut groups = 0usize;
        loop {
            match wire {
                Wire::Varint => drop(self.varint()?),
                Wire::Fixed64 => drop(self.take(8)?),
                Wire::Fixed32 => drop(self.take(4)?),
                Wire::Bytes => drop(self.bytes()?),
                Wire::StartGroup => groups += 1,
                Wire::EndGroup if groups > 0 => groups -= 1,
                Wire::EndGroup => return Err(ProtoError::new("a group ends without a start")),
            }
            if groups == 0 {
                return Ok(());
            }
            wire = self.tag()?.1;
        }
    }
}

/// Appends a varint.
pub(crate) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the number of bytes of a varint.
pub(crate) fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends a tag.
pub(crate) fn write_tag(number: u32, wire: Wire, out: &mut Vec<u8>) {
    let wire = match wire {
        Wire::Varint => 0,
        Wire::Fixed64 => 1,
        Wire::Bytes => 2,
        Wire::StartGroup => 3,
        Wire::EndGroup => 4,
        Wire::Fixed32 => 5,
    };
    write_varint(u64::from(number) << 3 | wire, out);
}

/// Appends a member that is a number.
pub(crate) fn write_number(number: u32, value: u64, out: &mut Vec<u8>) {
    write_tag(number, Wire::Varint, out);
    write_varint(value, out);
}

/// Appends a member that is bytes.
pub(crate) fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_tag(number, Wire::Bytes, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a member whose bytes `write` appends; the length is inserted before them afterwards.
pub(crate) fn write_nested<E>(
    number: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    write_tag(number, Wire::Bytes, out);
    let start = out.len();
    // Most messages are short: one byte is reserved for the length, and more are inserted if
    // needed.
    out.push(0);
    write(out)?;
    let length = (out.len() - start - 1) as u64;
    let extra = varint_len(length) - 1;
    if extra > 0 {
        let end = out.len();
        out.resize(end + extra, 0);
        out.copy_within(start + 1..end, start + 1 + extra);
    }
    let mut value = length;
    for byte in &mut out[start..start + extra] {
        *byte = (value as u8) | 0x80;
        value >>= 7;
    }
    out[start + extra] = value as u8;
    Ok(())
}
