//! Private keys in PEM: PKCS#8, SEC1 and PKCS#1 are read, EC keys are written as SEC1.
//!
//! SEC1 (`BEGIN EC PRIVATE KEY`) is the one form of an EC key that every client reads; some Java clients take a PKCS#8
//! key for RSA. The crypto library reads PKCS#8 only, so the other forms are wrapped into it here. Only the outer DER
//! structure is read here; whether the numbers make a key is decided by the crypto library.

use crate::der::{
    BIT_STRING, INTEGER, NULL, OBJECT, OCTET_STRING, Reader, bits, element, explicit, oid, sequence,
};
use crate::pem;
use ring::rand::SystemRandom;
use ring::rsa;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256,
};
use rustls_pki_types::pem::{PemObject as _, SectionKind};

/// Why a private key cannot be used. The key itself is never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not PEM.
    #[error("it is not valid PEM")]
    NotPem,
    /// The PEM text holds no private key.
    #[error("it holds no private key in PEM")]
    NoKey,
    /// An EC key that does not name its curve.
    #[error("the EC private key does not name its curve")]
    NoCurve,
    /// The key is damaged or of an unsupported type.
    #[error("the private key is damaged or of an unsupported kind")]
    Unusable,
    /// The random source failed.
    #[error("the source of random numbers failed")]
    Random,
}

/// A private key that signs certificates.
pub struct KeyPair {
    kind: Kind,
    pkcs8: Vec<u8>,
}

enum Kind {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(rsa::KeyPair),
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyPair({})", self.algorithm())
    }
}

impl KeyPair {
    /// Generates a key on the curve P-256.
    pub fn generate() -> Result<KeyPair, KeyError> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random)
            .map_err(|_| KeyError::Random)?;
        KeyPair::from_pkcs8(pkcs8.as_ref())
    }

    /// Reads the first private key of a PEM text.
    pub fn from_pem(text: &str) -> Result<KeyPair, KeyError> {
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
            let (kind, bytes) = section.map_err(|_| KeyError::NotPem)?;
            if let Some(pkcs8) = to_pkcs8(&kind, &bytes) {
                return KeyPair::from_pkcs8(&pkcs8?);
            }
        }
        Err(KeyError::NoKey)
    }

    /// Reads a key in PKCS#8.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<KeyPair, KeyError> {
        let random = SystemRandom::new();
        let ec = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random).ok();
        let kind = if let Some(key) = ec(&ECDSA_P256_SHA256_ASN1_SIGNING) {
            Kind::P256(key)
        } else if let Some(key) = ec(&ECDSA_P384_SHA384_ASN1_SIGNING) {
            Kind::P384(key)
        } else if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8) {
            Kind::Ed25519(key)
        } else {
            rsa::KeyPair::from_pkcs8(pkcs8)
                .map(Kind::Rsa)
                .map_err(|_| KeyError::Unusable)?
        };
        Ok(KeyPair {
            kind,
            pkcs8: pkcs8.to_vec(),
        })
    }

    /// Returns the name of its algorithm, for messages.
    pub fn algorithm(&self) -> &'static str {
        match self.kind {
            Kind::P256(_) => "ECDSA P-256",
            Kind::P384(_) => "ECDSA P-384",
            Kind::Ed25519(_) => "Ed25519",
            Kind::Rsa(_) => "RSA",
        }
    }

    /// Returns the bits of the public key.
    pub fn public_key(&self) -> &[u8] {
        match &self.kind {
            Kind::P256(key) | Kind::P384(key) => key.public_key().as_ref(),
            Kind::Ed25519(key) => key.public_key().as_ref(),
            Kind::Rsa(key) => key.public().as_ref(),
        }
    }

    /// Returns the public key as a SubjectPublicKeyInfo in DER.
    pub fn public_key_info(&self) -> Vec<u8> {
        let algorithm = match self.kind {
            Kind::P256(_) => ec_algorithm(oid::P256),
            Kind::P384(_) => ec_algorithm(oid::P384),
            Kind::Ed25519(_) => sequence(&[&element(OBJECT, &[oid::ED25519])]),
            Kind::Rsa(_) => rsa_algorithm(oid::RSA),
        };
        sequence(&[&algorithm, &bits(self.public_key())])
    }

    /// Returns the signature algorithm as an AlgorithmIdentifier in DER.
    pub fn signature_algorithm(&self) -> Vec<u8> {
        let plain = |oid: &[u8]| sequence(&[&element(OBJECT, &[oid])]);
        match self.kind {
            Kind::P256(_) => plain(oid::ECDSA_SHA256),
            Kind::P384(_) => plain(oid::ECDSA_SHA384),
            Kind::Ed25519(_) => plain(oid::ED25519),
            Kind::Rsa(_) => rsa_algorithm(oid::RSA_SHA256),
        }
    }

    /// Signs a message with the signature algorithm of certificates.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.kind {
            Kind::P256(key) | Kind::P384(key) => key
                .sign(&random, message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| KeyError::Random),
            Kind::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
            Kind::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|_| KeyError::Random)?;
                Ok(signature)
            }
        }
    }

    /// Returns the key in PEM: SEC1 for an EC key, PKCS#8 for others.
    pub fn to_pem(&self) -> String {
        match pkcs8_to_sec1(&self.pkcs8) {
            Some(sec1) => pem::encode("EC PRIVATE KEY", &sec1),
            None => self.to_pkcs8_pem(),
        }
    }

    /// Returns the key as PKCS#8 in PEM.
    pub fn to_pkcs8_pem(&self) -> String {
        pem::encode("PRIVATE KEY", &self.pkcs8)
    }

    /// Returns the public key in PEM.
    pub fn public_pem(&self) -> String {
        pem::encode("PUBLIC KEY", &self.public_key_info())
    }
}

/// Returns the same key in the form that most clients read: an EC key in PKCS#8 becomes SEC1; other keys are unchanged.
pub fn portable(text: &str) -> String {
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes());
    let first = sections
        .map_while(Result::ok)
        .find(|(kind, _)| *kind == SectionKind::PrivateKey);
    match first.and_then(|(_, pkcs8)| pkcs8_to_sec1(&pkcs8)) {
        Some(sec1) => pem::encode("EC PRIVATE KEY", &sec1),
        None => text.to_owned(),
    }
}

/// Returns the private key of a PEM section in PKCS#8; `None` if the section holds something else.
pub fn to_pkcs8(kind: &SectionKind, bytes: &[u8]) -> Option<Result<Vec<u8>, KeyError>> {
    match kind {
        SectionKind::PrivateKey => Some(Ok(bytes.to_vec())),
        SectionKind::EcPrivateKey => Some(sec1_to_pkcs8(bytes).ok_or(KeyError::NoCurve)),
        SectionKind::RsaPrivateKey => Some(Ok(private_key_info(&rsa_algorithm(oid::RSA), bytes))),
        _ => None,
    }
}

/// A SubjectPublicKeyInfo around a point of an elliptic curve.
pub fn ec_public_key_info(curve: &[u8], point: &[u8]) -> Vec<u8> {
    sequence(&[&ec_algorithm(curve), &bits(point)])
}

/// A SubjectPublicKeyInfo around an RSAPublicKey.
pub fn rsa_public_key_info(key: &[u8]) -> Vec<u8> {
    sequence(&[&rsa_algorithm(oid::RSA), &bits(key)])
}

fn ec_algorithm(curve: &[u8]) -> Vec<u8> {
    sequence(&[&element(OBJECT, &[oid::EC]), &element(OBJECT, &[curve])])
}

fn rsa_algorithm(oid: &[u8]) -> Vec<u8> {
    sequence(&[&element(OBJECT, &[oid]), &element(NULL, &[])])
}

/// PrivateKeyInfo { 0, { ecPublicKey, curve }, ECPrivateKey } to ECPrivateKey with its curve; `None` for other kinds.
fn pkcs8_to_sec1(pkcs8: &[u8]) -> Option<Vec<u8>> {
    let mut info = Reader(Reader(pkcs8).next(crate::der::SEQUENCE)?);
    info.next(INTEGER)?;
    let mut algorithm = Reader(info.next(crate::der::SEQUENCE)?);
    if algorithm.next(OBJECT)? != oid::EC {
        return None;
    }
    let curve = algorithm.next(OBJECT)?;
    let mut key = Reader(Reader(info.next(OCTET_STRING)?).next(crate::der::SEQUENCE)?);
    let version = key.next(INTEGER)?;
    let scalar = key.next(OCTET_STRING)?;
    // A curve that is named already is named again; the public key is optional.
    let _ = key.next(explicit(0));
    let mut parts = vec![
        element(INTEGER, &[version]),
        element(OCTET_STRING, &[scalar]),
        element(explicit(0), &[&element(OBJECT, &[curve])]),
    ];
    if let Some(public) = key.next(explicit(1)) {
        Reader(public).next(BIT_STRING)?;
        parts.push(element(explicit(1), &[public]));
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Some(sequence(&parts))
}

fn sec1_to_pkcs8(sec1: &[u8]) -> Option<Vec<u8>> {
    let mut key = Reader(Reader(sec1).next(crate::der::SEQUENCE)?);
    key.next(INTEGER)?;
    let scalar = key.next(OCTET_STRING)?;
    let curve = match key.next(explicit(0)) {
        Some(named) => Reader(named).next(OBJECT)?,
        // A key that does not name its curve: the size determines it.
        None if scalar.len() == 32 => oid::P256,
        None if scalar.len() == 48 => oid::P384,
        None => return None,
    };
    Some(private_key_info(&ec_algorithm(curve), sec1))
}

fn private_key_info(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let version = element(INTEGER, &[&[0]]);
    sequence(&[&version, algorithm, &element(OCTET_STRING, &[key])])
}

#[cfg(test)]
mod tests;
