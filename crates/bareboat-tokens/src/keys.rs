//! Keys that sign tokens, and keys that verify them.

use bareboat_api::{Value, value};
use bareboat_certificates::der::oid;
use bareboat_certificates::keys::{ec_public_key_info, rsa_public_key_info, to_pkcs8};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use sha2::Digest as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};
use x509_parser::public_key::PublicKey as ParsedKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The error of an unusable key. The text never contains the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text is not PEM.
    #[error("the text is not PEM")]
    NotPem,
    /// The text contains no key.
    #[error("the PEM text contains no key of the required type")]
    NoKey,
    /// The key is damaged or of an unsupported type.
    #[error("the key cannot be used: {0}; use RSA (2048 bits or more), ECDSA P-256 or P-384")]
    Unusable(String),
    /// The random source failed.
    #[error("signing failed")]
    Sign,
}

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
}

impl Algorithm {
    /// Returns the name in the header of a token.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        }
    }
}

/// A key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    id: String,
    /// The point of an elliptic curve, or an RSAPublicKey.
    bits: Vec<u8>,
    /// The members of the key in a key set.
    members: Vec<(&'static str, String)>,
}

impl PublicKey {
    /// Parses the public keys of a PEM text: public keys, certificates, or the public halves of
    /// private keys.
    pub fn from_pem(text: &str) -> Result<Vec<PublicKey>, KeyError> {
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
            let (kind, bytes) = section.map_err(|_| KeyError::NotPem)?;
            match kind {
                SectionKind::PublicKey => keys.push(PublicKey::from_info(&bytes)?),
                SectionKind::Certificate => {
                    let (_, certificate) = X509Certificate::from_der(&bytes)
                        .map_err(|error| KeyError::Unusable(error.to_string()))?;
                    keys.push(PublicKey::from_info(certificate.public_key().raw)?);
                }
                _ => {
                    if let Some(pair) = pair(&kind, &bytes)? {
                        keys.push(pair.public()?);
                    }
                }
            }
        }
        match keys.is_empty() {
            true => Err(KeyError::NoKey),
            false => Ok(keys),
        }
    }

    /// Parses a SubjectPublicKeyInfo in DER.
    fn from_info(info: &[u8]) -> Result<PublicKey, KeyError> {
        let unusable = |why: &str| KeyError::Unusable(why.to_owned());
        let (_, parsed) = SubjectPublicKeyInfo::from_der(info)
            .map_err(|error| KeyError::Unusable(error.to_string()))?;
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let bits = parsed.subject_public_key.data.to_vec();
        let (algorithm, members) = match parsed
            .parsed()
            .map_err(|error| KeyError::Unusable(error.to_string()))?
        {
            ParsedKey::RSA(key) => {
                let number = |bytes: &[u8]| {
                    let start = bytes.iter().take_while(|byte| **byte == 0).count();
                    encode(&bytes[start..])
                };
                let members = vec![
                    ("e", number(key.exponent)),
                    ("kty", "RSA".to_owned()),
                    ("n", number(key.modulus)),
                ];
                (Algorithm::Rs256, members)
            }
            ParsedKey::EC(point) => {
                let (algorithm, curve, size) = match point.data().len() {
                    65 => (Algorithm::Es256, "P-256", 32),
                    97 => (Algorithm::Es384, "P-384", 48),
                    _ => return Err(unusable("the elliptic curve is not supported")),
                };
                let coordinates = &point.data()[1..];
                let members = vec![
                    ("crv", curve.to_owned()),
                    ("kty", "EC".to_owned()),
                    ("x", encode(&coordinates[..size])),
                    ("y", encode(&coordinates[size..])),
                ];
                (algorithm, members)
            }
            _ => return Err(unusable("its algorithm is not supported")),
        };
        Ok(PublicKey {
            algorithm,
            id: encode(&sha2::Sha256::digest(info)),
            bits,
            members,
        })
    }

    /// Returns the key id for the headers of tokens: a digest of the key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the signature algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns whether this key made a signature.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm.verification(), &self.bits)
            .verify(message, signature)
            .is_ok()
    }

    /// Returns the key as a member of a key set (JWKS).
    pub fn to_value(&self) -> Value {
        let mut key = value!({
            "use": "sig",
            "kid": (self.id.as_str()),
            "alg": (self.algorithm.name()),
        });
        for (name, text) in &self.members {
            key.make_object().insert(*name, Value::from(text.as_str()));
        }
        key
    }
}

/// A key that signs.
pub struct SigningKey {
    pair: Pair,
    public: PublicKey,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.public.id)
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Parses the first private key of a PEM text: PKCS#8, SEC1 or PKCS#1.
    pub fn from_pem(text: &str) -> Result<SigningKey, KeyError> {
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
            let (kind, bytes) = section.map_err(|_| KeyError::NotPem)?;
            if let Some(pair) = pair(&kind, &bytes)? {
                let public = pair.public()?;
                return Ok(SigningKey { pair, public });
            }
        }
        Err(KeyError::NoKey)
    }

    /// Returns the public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a message.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::P256(key) | Pair::P384(key) => key
                .sign(&random, message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| KeyError::Sign),
            Pair::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(
                    &signature::RSA_PKCS1_SHA256,
                    &random,
                    message,
                    &mut signature,
                )
                .map_err(|_| KeyError::Sign)?;
                Ok(signature)
            }
        }
    }
}

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(rsa::KeyPair),
}

impl Pair {
    fn public(&self) -> Result<PublicKey, KeyError> {
        let info = match self {
            Pair::P256(key) => ec_public_key_info(oid::P256, key.public_key().as_ref()),
            Pair::P384(key) => ec_public_key_info(oid::P384, key.public_key().as_ref()),
            Pair::Rsa(key) => rsa_public_key_info(key.public().as_ref()),
        };
        PublicKey::from_info(&info)
    }
}

/// Returns the private key in a section of PEM; `None` if the section has none.
fn pair(kind: &SectionKind, bytes: &[u8]) -> Result<Option<Pair>, KeyError> {
    match to_pkcs8(kind, bytes) {
        Some(Ok(pkcs8)) => from_pkcs8(&pkcs8).map(Some),
        Some(Err(why)) => Err(KeyError::Unusable(why.to_string())),
        None => Ok(None),
    }
}

fn from_pkcs8(bytes: &[u8]) -> Result<Pair, KeyError> {
    let random = SystemRandom::new();
    let p256 = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    if let Ok(key) = EcdsaKeyPair::from_pkcs8(p256, bytes, &random) {
        return Ok(Pair::P256(key));
    }
    let p384 = &signature::ECDSA_P384_SHA384_FIXED_SIGNING;
    if let Ok(key) = EcdsaKeyPair::from_pkcs8(p384, bytes, &random) {
        return Ok(Pair::P384(key));
    }
    rsa::KeyPair::from_pkcs8(bytes)
        .map(Pair::Rsa)
        .map_err(|why| KeyError::Unusable(why.to_string()))
}

#[cfg(test)]
mod tests;
