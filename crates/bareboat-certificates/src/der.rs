//! DER elements: a reader that copies nothing, and functions that write.

/// BOOLEAN.
pub const BOOLEAN: u8 = 0x01;
/// INTEGER.
pub const INTEGER: u8 = 0x02;
/// BIT STRING.
pub const BIT_STRING: u8 = 0x03;
/// OCTET STRING.
pub const OCTET_STRING: u8 = 0x04;
/// NULL.
pub const NULL: u8 = 0x05;
/// OBJECT IDENTIFIER.
pub const OBJECT: u8 = 0x06;
/// UTF8String.
pub const UTF8_STRING: u8 = 0x0c;
/// NumericString.
pub const NUMERIC_STRING: u8 = 0x12;
/// PrintableString.
pub const PRINTABLE_STRING: u8 = 0x13;
/// TeletexString, also called T61String.
pub const TELETEX_STRING: u8 = 0x14;
/// IA5String.
pub const IA5_STRING: u8 = 0x16;
/// UTCTime.
pub const UTC_TIME: u8 = 0x17;
/// GeneralizedTime.
pub const GENERALIZED_TIME: u8 = 0x18;
/// BMPString.
pub const BMP_STRING: u8 = 0x1e;
/// SEQUENCE.
pub const SEQUENCE: u8 = 0x30;
/// SET.
pub const SET: u8 = 0x31;

/// The tag `[number]` around other elements.
pub const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// The tag `[number]` in place of the tag of a primitive element.
pub const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// Object identifiers, without tag and length.
pub mod oid {
    /// rsaEncryption, 1.2.840.113549.1.1.1.
    pub const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    /// sha256WithRSAEncryption, 1.2.840.113549.1.1.11.
    pub const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
    /// ecPublicKey, 1.2.840.10045.2.1.
    pub const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    /// ecdsa-with-SHA256, 1.2.840.10045.4.3.2.
    pub const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
    /// ecdsa-with-SHA384, 1.2.840.10045.4.3.3.
    pub const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
    /// Ed25519, 1.3.101.112.
    pub const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
    /// X25519, 1.3.101.110.
    pub const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
    /// The curve P-224.
    pub const P224: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x21];
    /// The curve P-256.
    pub const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    /// The curve P-384.
    pub const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
    /// The curve P-521.
    pub const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
    /// commonName, 2.5.4.3.
    pub const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    /// organizationName, 2.5.4.10.
    pub const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
    /// subjectKeyIdentifier, 2.5.29.14.
    pub const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
    /// keyUsage, 2.5.29.15.
    pub const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
    /// subjectAltName, 2.5.29.17.
    pub const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
    /// basicConstraints, 2.5.29.19.
    pub const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
    /// authorityKeyIdentifier, 2.5.29.35.
    pub const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
    /// extKeyUsage, 2.5.29.37.
    pub const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
    /// id-kp-serverAuth, 1.3.6.1.5.5.7.3.1.
    pub const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
    /// id-kp-clientAuth, 1.3.6.1.5.5.7.3.2.
    pub const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
}

/// Returns an element with this tag and the joined parts as its content.
pub fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(length + 6);
    out.push(tag);
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let digits = length.to_be_bytes();
            let digits = &digits[digits.iter().take_while(|&&byte| byte == 0).count()..];
            out.push(0x80 | digits.len() as u8);
            out.extend_from_slice(digits);
        }
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// A SEQUENCE of elements.
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, parts)
}

/// A BIT STRING of whole bytes.
pub fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes])
}

/// A non-negative INTEGER from its big-endian digits.
pub fn integer(digits: &[u8]) -> Vec<u8> {
    let start = digits.iter().take_while(|&&byte| byte == 0).count();
    match &digits[start..] {
        [] => element(INTEGER, &[&[0]]),
        // A leading bit would make it negative.
        digits @ [0x80..=0xff, ..] => element(INTEGER, &[&[0], digits]),
        digits => element(INTEGER, &[digits]),
    }
}

/// Reads DER elements one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'d>(pub &'d [u8]);

impl<'d> Reader<'d> {
    /// The content of the next element if it has that tag, and a reader of what follows.
    pub fn take(self, tag: u8) -> Option<(&'d [u8], Reader<'d>)> {
        let (&found, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            short @ 0..=0x7f => usize::from(short),
            long @ 0x81..=0x84 => {
                let (digits, behind) = rest.split_at_checked(usize::from(long & 0x7f))?;
                rest = behind;
                digits.iter().fold(0, |n, &byte| n << 8 | usize::from(byte))
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        (found == tag).then_some((content, Reader(rest)))
    }

    /// The tag and the content of the next element, and a reader of what follows.
    pub fn any(self) -> Option<(u8, &'d [u8], Reader<'d>)> {
        let tag = *self.0.first()?;
        let (content, rest) = self.take(tag)?;
        Some((tag, content, rest))
    }

    /// A reader of the content of the next element if it has that tag, and a reader of what follows.
    pub fn open(self, tag: u8) -> Option<(Reader<'d>, Reader<'d>)> {
        let (content, rest) = self.take(tag)?;
        Some((Reader(content), rest))
    }

    /// The content of the next element if it has that tag; otherwise nothing is consumed.
    pub fn next(&mut self, tag: u8) -> Option<&'d [u8]> {
        let (content, rest) = self.take(tag)?;
        *self = rest;
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_elements_are_read_as_they_are_written() {
        for size in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x1_0000] {
            let content = vec![7; size];
            let written = element(OCTET_STRING, &[&content]);
            let (read, rest) = Reader(&written).take(OCTET_STRING).expect("an element");
            assert_eq!((read, rest.0), (&content[..], &[][..]));
            assert!(Reader(&written).take(SEQUENCE).is_none());
            assert!(
                Reader(&written[..written.len() - 1])
                    .take(OCTET_STRING)
                    .is_none()
            );
        }
    }

    #[test]
    fn integers_are_never_negative_and_have_no_leading_zeros() {
        assert_eq!(integer(&[0, 0]), [2, 1, 0]);
        assert_eq!(integer(&[0, 0x7f]), [2, 1, 0x7f]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
    }
}
