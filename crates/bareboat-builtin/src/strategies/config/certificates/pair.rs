//! Checks that a private key matches the public key of a certificate.
//!
//! Both are parsed from DER. Other properties are not checked.

use bareboat_certificates::der::oid::{EC, ED25519, P224, P256, P384, P521, RSA, X25519};
use bareboat_certificates::der::{
    BIT_STRING, INTEGER, OBJECT, OCTET_STRING, Reader, SEQUENCE, explicit,
};
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

const CURVES: [&[u8]; 4] = [P224, P256, P384, P521];

const FIRST: u8 = explicit(0);
const SECOND: u8 = explicit(1);

/// Returns an error if a private key does not match a certificate.
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

/// The public parts of a private key.
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
    /// The public key, which is optional.
    public: Option<&'k [u8]>,
}

impl EcKey<'_> {
    fn belongs_to(&self, public: &[u8]) -> bool {
        let (algorithm, width): (_, usize) = match self.curve {
            P256 => (&ECDSA_P256_SHA256_ASN1_SIGNING, 32),
            P384 => (&ECDSA_P384_SHA384_ASN1_SIGNING, 48),
            // For unknown curves only the embedded public key is compared.
            _ => return self.public.is_none_or(|own| own == public),
        };
        // Encoders differ in the number of leading zeros.
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
    /// Parses a key in any of the three common formats, whatever the block type is.
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
        // Version, modulus, exponents, two primes and derived values.
        if numbers.len() < 9 || !rest.0.is_empty() {
            return None;
        }
        Some(Private::Rsa {
            modulus: numbers[1],
            exponent: numbers[2],
        })
    }

    /// Parses a PKCS #8 key; `Some(None)` if its algorithm is unsupported.
    fn pkcs8(der: &'k [u8]) -> Option<Option<Private<'k>>> {
        let (all, _) = Reader(der).open(SEQUENCE)?;
        let (_version, all) = all.take(INTEGER)?;
        let (algorithm, all) = all.open(SEQUENCE)?;
        let (key, _) = all.take(OCTET_STRING)?;
        let (id, parameters) = algorithm.take(OBJECT)?;
        match id {
            RSA => Private::pkcs1(key).map(Some),
            EC => {
                let curve = parameters.take(OBJECT).map(|(curve, _)| curve);
                EcKey::read(key, curve).map(|key| Some(Private::Ec(key)))
            }
            ED25519 => {
                let (seed, _) = Reader(key).take(OCTET_STRING)?;
                (seed.len() == 32).then_some(Some(Private::Ed25519 { seed }))
            }
            X25519 => Some(None),
            _ => None,
        }
    }
}

impl<'k> EcKey<'k> {
    /// Parses an EC key; the curve comes from the envelope or the key itself.
    fn read(der: &'k [u8], curve: Option<&'k [u8]>) -> Option<EcKey<'k>> {
        let (all, _) = Reader(der).open(SEQUENCE)?;
        let (version, all) = all.take(INTEGER)?;
        let (scalar, mut all) = all.take(OCTET_STRING)?;
        let mut own = None;
        if let Some((parameters, rest)) = all.open(FIRST) {
            own = parameters.take(OBJECT).map(|(curve, _)| curve);
            all = rest;
        }
        let public = all.open(SECOND).and_then(|(bits, _)| bits.take(BIT_STRING));
        // The first byte of a bit string is the number of unused bits.
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
