//! Checksums of records and batches, which detect damage at rest before clients see it.
//!
//! CRC-32 detects every damage of up to 32 consecutive bits and all but one in four billion others. Its cost is small
//! compared with the fsync. It does not protect against deliberate edits of the file.

use crc32fast::Hasher;

/// The checked parts of a record besides its value.
#[derive(Clone, Copy)]
pub(crate) struct Header<'a> {
    pub(crate) revision: i64,
    pub(crate) prev: i64,
    pub(crate) cluster: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) key: &'a str,
    pub(crate) actor: Option<&'a str>,
}

/// The result of checking a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The record is intact.
    Good,
    /// The value is damaged, but it is known which object it belongs to.
    ValueDamaged,
    /// The header is damaged, so it is not known which object the record belongs to.
    HeaderDamaged,
}

/// Returns the checksum of a record: the header in the upper half, the value in the lower half. Damage to one half
/// leaves the other valid.
pub(crate) fn record(header: &Header<'_>, value: Option<&[u8]>) -> i64 {
    join(of_header(header, value.is_none()), of_value(value))
}

/// Compares a record with its stored checksum.
pub(crate) fn judge(header: &Header<'_>, value: Option<&[u8]>, sum: i64) -> Verdict {
    let (of_its_header, of_its_value) = ((sum as u64 >> 32) as u32, sum as u32);
    if of_its_header != of_header(header, value.is_none()) {
        return Verdict::HeaderDamaged;
    }
    match of_its_value == of_value(value) {
        true => Verdict::Good,
        false => Verdict::ValueDamaged,
    }
}

fn of_header(header: &Header<'_>, tombstone: bool) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&header.revision.to_be_bytes());
    hasher.update(&header.prev.to_be_bytes());
    hasher.update(&(header.resource.len() as u32).to_be_bytes());
    hasher.update(header.resource.as_bytes());
    hasher.update(header.key.as_bytes());
    hasher.update(&[u8::from(tombstone)]);
    // A record without these fields has the same checksum as in formats that did not have the fields.
    if let Some(actor) = header.actor {
        hasher.update(&[2]);
        hasher.update(actor.as_bytes());
    }
    if !header.cluster.is_empty() {
        hasher.update(&[3]);
        hasher.update(header.cluster.as_bytes());
    }
    hasher.finalize()
}

fn of_value(value: Option<&[u8]>) -> u32 {
    value.map_or(0, crc32fast::hash)
}

fn join(header: u32, value: u32) -> i64 {
    (u64::from(header) << 32 | u64::from(value)) as i64
}

/// The checksum of a batch, over its own columns and the checksums of its records in order.
#[derive(Default)]
pub(crate) struct Batch(Hasher);

impl Batch {
    pub(crate) fn add(&mut self, record: i64) {
        self.0.update(&record.to_be_bytes());
    }

    pub(crate) fn finish(mut self, size: i64, last: i64, at: i64, bytes: i64) -> i64 {
        for column in [size, last, at, bytes] {
            self.0.update(&column.to_be_bytes());
        }
        i64::from(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_to_header_and_value_is_distinguished() {
        let header = Header {
            revision: 7,
            prev: 3,
            cluster: "",
            resource: "core/pods",
            key: "a/b",
            actor: None,
        };
        let sum = record(&header, Some(b"value"));
        assert_eq!(judge(&header, Some(b"value"), sum), Verdict::Good);
        assert_eq!(judge(&header, Some(b"valve"), sum), Verdict::ValueDamaged);
        assert_eq!(judge(&header, Some(b""), sum), Verdict::ValueDamaged);
        assert_eq!(judge(&header, None, sum), Verdict::HeaderDamaged);
        for bit in 0..64 {
            let verdict = judge(&header, Some(b"value"), sum ^ 1 << bit);
            assert_ne!(verdict, Verdict::Good);
        }
        let other = Header {
            key: "a/c",
            ..header
        };
        assert_eq!(judge(&other, Some(b"value"), sum), Verdict::HeaderDamaged);
        // The boundary between resource and key is also checked.
        let shifted = Header {
            resource: "core/podsa",
            key: "/b",
            ..other
        };
        assert_eq!(judge(&shifted, Some(b"value"), sum), Verdict::HeaderDamaged);
        for other in [
            Header {
                actor: Some("{}"),
                ..header
            },
            Header {
                cluster: "c",
                ..header
            },
        ] {
            assert_eq!(judge(&other, Some(b"value"), sum), Verdict::HeaderDamaged);
        }
    }
}
