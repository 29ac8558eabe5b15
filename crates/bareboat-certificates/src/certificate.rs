//! Certificates, read: the subject, the validity and the public key.
//!
//! Callers that trust a certificate verify it first: signatures and extensions are not looked at here.

use crate::der::{
    BIT_STRING, GENERALIZED_TIME, INTEGER, OBJECT, Reader, SEQUENCE, SET, UTC_TIME, explicit,
};
use bareboat_api::time::Timestamp;

/// A certificate; its parts borrow from its DER.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Certificate<'d> {
    /// The attributes of the subject, in order.
    pub subject: Vec<Attribute<'d>>,
    /// The first second of its validity, since 1970.
    pub not_before: i64,
    /// The last second of its validity, since 1970.
    pub not_after: i64,
    /// The public key, a SubjectPublicKeyInfo in DER.
    pub public_key_info: &'d [u8],
}

/// A part of a name, such as the common name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribute<'d> {
    /// Its type, an object identifier without tag and length, see [`der::oid`](crate::der::oid).
    pub oid: &'d [u8],
    /// The tag of its value.
    pub tag: u8,
    /// Its value.
    pub value: &'d [u8],
}

impl<'d> Certificate<'d> {
    /// Reads a certificate in DER; `None` if it is none.
    pub fn parse(der: &'d [u8]) -> Option<Certificate<'d>> {
        let (whole, Reader([])) = Reader(der).open(SEQUENCE)? else {
            return None;
        };
        let (mut signed, rest) = whole.open(SEQUENCE)?;
        let (_, rest) = rest.take(SEQUENCE)?;
        let (_, Reader([])) = rest.take(BIT_STRING)? else {
            return None;
        };
        signed.next(explicit(0));
        signed.next(INTEGER)?;
        // The algorithm of the signature, and the issuer.
        signed.next(SEQUENCE)?;
        signed.next(SEQUENCE)?;
        let mut validity = Reader(signed.next(SEQUENCE)?);
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = attributes(Reader(signed.next(SEQUENCE)?))?;
        let from_key_on = signed.0;
        signed.next(SEQUENCE)?;
        let public_key_info = &from_key_on[..from_key_on.len() - signed.0.len()];
        Some(Certificate {
            subject,
            not_before,
            not_after,
            public_key_info,
        })
    }
}

/// Reads a name: a sequence of sets of attributes.
fn attributes(mut name: Reader<'_>) -> Option<Vec<Attribute<'_>>> {
    let mut found = Vec::new();
    while !name.0.is_empty() {
        let mut set = Reader(name.next(SET)?);
        while !set.0.is_empty() {
            let (oid, value) = Reader(set.next(SEQUENCE)?).take(OBJECT)?;
            let (tag, value, Reader([])) = value.any()? else {
                return None;
            };
            found.push(Attribute { oid, tag, value });
        }
    }
    Some(found)
}

/// Reads a time in seconds since 1970. Both forms end in `Z` and have seconds.
fn time(reader: &mut Reader<'_>) -> Option<i64> {
    let (text, century_digits) = match reader.next(UTC_TIME) {
        Some(text) => (text, 0),
        None => (reader.next(GENERALIZED_TIME)?, 2),
    };
    let [digits @ .., b'Z'] = text else {
        return None;
    };
    if digits.len() != century_digits + 12 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // RFC 5280: years with two digits from 50 on are of the last century.
    let century = match (century_digits, digits[0]) {
        (0, b'5'..) => "19",
        (0, _) => "20",
        // All four digits of the year are there.
        _ => "",
    };
    let pair = |at: usize| std::str::from_utf8(&digits[century_digits + at..][..2]).ok();
    let year = std::str::from_utf8(&digits[..century_digits + 2]).ok()?;
    let (month, day) = (pair(2)?, pair(4)?);
    let (hour, minute, second) = (pair(6)?, pair(8)?, pair(10)?);
    let text = format!("{century}{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    Some(Timestamp::parse(&text).ok()?.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::oid;
    use x509_parser::prelude::{FromDer as _, X509Certificate};

    /// Certificates with several names, and with times before and after 2050.
    fn certificates() -> Vec<Vec<u8>> {
        let key = rcgen::KeyPair::generate().expect("a key");
        [(1975, 1976), (2020, 2049), (2024, 2050), (2051, 2126)]
            .map(|(from, to)| {
                let mut template = rcgen::CertificateParams::new(vec!["a.example.com".to_owned()])
                    .expect("a name");
                template.not_before = rcgen::date_time_ymd(from, 2, 28);
                template.not_after = rcgen::date_time_ymd(to, 12, 31);
                let name = &mut template.distinguished_name;
                name.push(rcgen::DnType::OrganizationName, "crew");
                name.push(rcgen::DnType::CommonName, "jürgen");
                let made = template.self_signed(&key).expect("it can be signed");
                made.der().to_vec()
            })
            .to_vec()
    }

    #[test]
    fn it_reads_what_another_parser_reads() {
        for der in certificates() {
            let read = Certificate::parse(&der).expect("a certificate");
            let (_, other) = X509Certificate::from_der(&der).expect("a certificate");
            assert_eq!(read.not_before, other.validity().not_before.timestamp());
            assert_eq!(read.not_after, other.validity().not_after.timestamp());
            assert_eq!(read.public_key_info, other.public_key().raw);
            let theirs = other.subject().iter_attributes();
            let theirs: Vec<(Vec<u8>, u32, &[u8])> = theirs
                .map(|it| {
                    let value = it.attr_value();
                    (
                        it.attr_type().as_bytes().to_vec(),
                        value.tag().0,
                        value.data,
                    )
                })
                .collect();
            let ours = read.subject.iter();
            let ours: Vec<(Vec<u8>, u32, &[u8])> = ours
                .map(|it| (it.oid.to_vec(), u32::from(it.tag), it.value))
                .collect();
            assert_eq!(ours, theirs);
            let names = read.subject.iter().filter(|it| it.oid == oid::COMMON_NAME);
            let names: Vec<&[u8]> = names.map(|it| it.value).collect();
            assert_eq!(names.last(), Some(&"jürgen".as_bytes()));
        }
    }

    #[test]
    fn damaged_certificates_are_refused_or_read_but_never_panic() {
        for der in certificates() {
            for end in 0..der.len() {
                assert_eq!(Certificate::parse(&der[..end]), None);
            }
            let mut damaged = der.clone();
            for at in 0..der.len() {
                for value in [0, 0x7f, 0x80, 0xff, der[at] ^ 1, der[at].wrapping_add(1)] {
                    damaged[at] = value;
                    let _ = Certificate::parse(&damaged);
                }
                damaged[at] = der[at];
            }
        }
    }
}
