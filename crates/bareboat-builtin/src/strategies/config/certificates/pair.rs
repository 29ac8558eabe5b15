//! Whether a private key belongs to the public key of a certificate.
//!
//! Both are read out of their DER; that they are sound otherwise is found out by whoever uses them.

use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

const UNREADABLE: &str = "x509: malformed certificate";
const TRAILING: &str = "x509: trailing data";
const UNKNOWN_CURVE: &str = "x509: unsupported elliptic curve";
const NO_KEY: &str = "tls: failed to parse private key";
const UNKNOWN_KEY: &str = "tls: found unknown private key type in PKCS#8 wrapping";
const UNKNOWN_ALGORITHM: &str = "tls: unknown public key algorithm";
const OTHER_TYPE: &str = "tls: private key type does not match public key type";
const OTHER_KEY: &str = "tls: private key does not match public key";

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
const P224: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x21];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
const CURVES: [&[u8]; 4] = [P224, P256, P384, P521];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTETS: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const FIRST: u8 = 0xa0;
const SECOND: u8 = 0xa1;

/// Says why a private key is not that of a certificate.
pub(super) fn check(certificate: &[u8], key: &[u8]) -> Result<(), &'static str> {
    let (rest, parsed) = X509Certificate::from_der(certificate).map_err(|_| UNREADABLE)?;
    if !rest.is_empty() {
        return Err(TRAILING);
    }
    let public = &parsed.tbs_certificate.subject_pki;
    let algorithm = public.algorithm.algorithm.as_bytes();
    let curve = public.algorithm.parameters.as_ref();
    let curve = curve.and_then(|curve| curve.as_oid().ok());
    let curve = curve
        .as_ref()
        .map_or(&[] as &[u8], |curve| curve.as_bytes());
    if algorithm == EC && !CURVES.contains(&curve) {
        return Err(UNKNOWN_CURVE);
    }
    let bytes = &*public.subject_public_key.data;
    let private = Private::read(key)?;
    match (algorithm, private) {
        (RSA, Private::Rsa { modulus, exponent }) => {
            let (own, _) = Reader(bytes).open(SEQUENCE).ok_or(UNREADABLE)?;
            let (own_modulus, own) = own.take(INTEGER).ok_or(UNREADABLE)?;
            let (own_exponent, _) = own.take(INTEGER).ok_or(UNREADABLE)?;
            same((own_modulus, own_exponent) == (modulus, exponent))
        }
        (EC, Private::Ec(key)) => same(curve == key.curve && key.belongs_to(bytes)),
        (ED25519, Private::Ed25519 { seed }) => {
            same(Ed25519KeyPair::from_seed_and_public_key(seed, bytes).is_ok())
        }
        (RSA | EC | ED25519, _) => Err(OTHER_TYPE),
        _ => Err(UNKNOWN_ALGORITHM),
    }
}

fn same(is_same: bool) -> Result<(), &'static str> {
    is_same.then_some(()).ok_or(OTHER_KEY)
}

/// A private key, as far as it tells of the public one.
enum Private<'k> {
    Rsa {
        modulus: &'k [u8],
        exponent: &'k [u8],
    },
    Ec(EcKey<'k>),
    Ed25519 {
        seed: &'k [u8],
    },
}

struct EcKey<'k> {
    curve: &'k [u8],
    scalar: &'k [u8],
    /// The public key, which need not be there.
    public: Option<&'k [u8]>,
}

impl EcKey<'_> {
    fn belongs_to(&self, public: &[u8]) -> bool {
        let (algorithm, width): (_, usize) = match self.curve {
            P256 => (&ECDSA_P256_SHA256_ASN1_SIGNING, 32),
            P384 => (&ECDSA_P384_SHA384_ASN1_SIGNING, 48),
            // Of other curves only what the key itself says is known.
            _ => return self.public.is_none_or(|own| own == public),
        };
        // Some leave leading zeros out, some add more.
        let start = self.scalar.iter().position(|byte| *byte != 0);
        let digits = start.map_or(&[] as &[u8], |start| &self.scalar[start..]);
        let Some(missing) = width.checked_sub(digits.len()) else {
            return false;
        };
        let scalar: Vec<u8> = std::iter::repeat_n(0, missing)
            .chain(digits.iter().copied())
            .collect();
        let random = ring::rand::SystemRandom::new();
        EcdsaKeyPair::from_private_key_and_public_key(algorithm, &scalar, public, &random).is_ok()
    }
}

impl<'k> Private<'k> {
    /// Reads a key in any of the three forms that are in use, whatever the block says it is.
    fn read(der: &'k [u8]) -> Result<Private<'k>, &'static str> {
        if let Some(key) = Private::pkcs1(der) {
            return Ok(key);
        }
        match Private::pkcs8(der) {
            Some(Some(key)) => return Ok(key),
            Some(None) => return Err(UNKNOWN_KEY),
            None => {}
        }
        let key = EcKey::read(der, None).map(Private::Ec);
        key.ok_or(NO_KEY)
    }

    fn pkcs1(der: &'k [u8]) -> Option<Private<'k>> {
        let (mut all, rest) = Reader(der).open(SEQUENCE)?;
        let mut numbers = Vec::with_capacity(9);
        while let Some((number, after)) = all.take(INTEGER) {
            numbers.push(number);
            all = after;
        }
        // Version, modulus, both exponents, two primes and what follows from them.
        if numbers.len() < 9 || !rest.0.is_empty() {
            return None;
        }
        Some(Private::Rsa {
            modulus: numbers[1],
            exponent: numbers[2],
        })
    }

    /// A key in an envelope that says what it is; `Some(None)` if it is one for other uses.
    fn pkcs8(der: &'k [u8]) -> Option<Option<Private<'k>>> {
        let (all, _) = Reader(der).open(SEQUENCE)?;
        let (_version, all) = all.take(INTEGER)?;
        let (algorithm, all) = all.open(SEQUENCE)?;
        let (key, _) = all.take(OCTETS)?;
        let (id, parameters) = algorithm.take(OBJECT_ID)?;
        match id {
            RSA => Private::pkcs1(key).map(Some),
            EC => {
                let curve = parameters.take(OBJECT_ID).map(|(curve, _)| curve);
                EcKey::read(key, curve).map(|key| Some(Private::Ec(key)))
            }
            ED25519 => {
                let (seed, _) = Reader(key).take(OCTETS)?;
                (seed.len() == 32).then_some(Some(Private::Ed25519 { seed }))
            }
            X25519 => Some(None),
            _ => None,
        }
    }
}

impl<'k> EcKey<'k> {
    /// Reads a key on a curve that the envelope or the key itself names.
    fn read(der: &'k [u8], curve: Option<&'k [u8]>) -> Option<EcKey<'k>> {
        let (all, _) = Reader(der).open(SEQUENCE)?;
        let (version, all) = all.take(INTEGER)?;
        let (scalar, mut all) = all.take(OCTETS)?;
        let mut own = None;
        if let Some((parameters, rest)) = all.open(FIRST) {
            own = parameters.take(OBJECT_ID).map(|(curve, _)| curve);
            all = rest;
        }
        let public = all.open(SECOND).and_then(|(bits, _)| bits.take(BIT_STRING));
        // The first byte of a bit string tells how many bits are unused.
        let public = public.and_then(|(bits, _)| bits.split_first().map(|(_, bits)| bits));
        let curve = curve.or(own)?;
        let known = CURVES.contains(&curve);
        (version == [1] && known).then_some(EcKey {
            curve,
            scalar,
            public,
        })
    }
}

/// Reads DER, one element after the other.
#[derive(Clone, Copy)]
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    /// The content of the next element, if it has that tag, and what follows.
    fn take(self, tag: u8) -> Option<(&'d [u8], Reader<'d>)> {
        let (found, rest) = self.0.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let length = match *first {
            short @ 0..=0x7f => usize::from(short),
            long @ 0x81..=0x84 => {
                let (bytes, after) = rest.split_at_checked(usize::from(long & 0x7f))?;
                rest = after;
                let step = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
                bytes.iter().fold(0, step)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        (*found == tag).then_some((content, Reader(rest)))
    }

    /// The same, to read what is inside.
    fn open(self, tag: u8) -> Option<(Reader<'d>, Reader<'d>)> {
        let (content, rest) = self.take(tag)?;
        Some((Reader(content), rest))
    }
}
