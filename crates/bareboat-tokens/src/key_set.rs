//! The keys of another issuer, as it publishes them: a JSON Web Key Set.
//!
//! This module finds the key that signed a token; the caller fetches the set. Symmetric keys, keys for encryption and keys
//! of unknown types are ignored.

use crate::jws::{Jws, TokenError};
use bareboat_api::Value;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

/// The maximum number of keys of a set that are used.
const MOST_KEYS: usize = 128;

/// Why a key set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetError {
    /// The document is not a JSON object with a list `keys`.
    #[error("it is not a JSON Web Key Set")]
    NotKeySet,
    /// No key of the set can verify signatures.
    #[error("it has no key that can verify a signature")]
    NoKeys,
}

/// Public keys of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet(Vec<IssuerKey>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct IssuerKey {
    id: Option<String>,
    /// The member `alg` of the key; if present, the key verifies signatures of this algorithm only.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// The public key as an uncompressed point of the curve.
    P256(Vec<u8>),
    /// The public key as an uncompressed point of the curve.
    P384(Vec<u8>),
}

impl KeySet {
    /// Reads a key set.
    pub fn parse(json: &[u8]) -> Result<KeySet, KeySetError> {
        let parsed = bareboat_wire::json::parse(json).map_err(|_| KeySetError::NotKeySet)?;
        let keys = parsed.value.get("keys").and_then(Value::as_array);
        let keys: Vec<IssuerKey> = keys
            .ok_or(KeySetError::NotKeySet)?
            .iter()
            .filter_map(IssuerKey::read)
            .take(MOST_KEYS)
            .collect();
        match keys.is_empty() {
            true => Err(KeySetError::NoKeys),
            false => Ok(KeySet(keys)),
        }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that one of the keys signed a token. A token that names a key is checked with that key only.
    pub fn verify(&self, token: &Jws<'_>) -> Result<(), TokenError> {
        let mut tried = false;
        for key in &self.0 {
            if token.key_id().is_some() && key.id.as_deref() != token.key_id() {
                continue;
            }
            tried = true;
            if key.verifies(token) {
                return Ok(());
            }
        }
        Err(match tried {
            true => TokenError::Signature,
            false => TokenError::NoKeys,
        })
    }
}

impl IssuerKey {
    fn read(value: &Value) -> Option<IssuerKey> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |name: &str| {
            URL_SAFE_NO_PAD
                .decode(text(name)?.trim_end_matches('='))
                .ok()
        };
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4u8][..], &x, &y].concat())
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa {
                modulus: without_zeros(bytes("n")?),
                exponent: without_zeros(bytes("e")?),
            },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            _ => return None,
        };
        Some(IssuerKey {
            id: text("kid").map(str::to_owned),
            algorithm: text("alg").map(str::to_owned),
            material,
        })
    }

    /// Returns whether this key made the signature, with the algorithm that the header names.
    fn verifies(&self, token: &Jws<'_>) -> bool {
        let name = token.algorithm();
        if self.algorithm.as_deref().is_some_and(|own| own != name) {
            return false;
        }
        let (message, signature) = (token.signed(), token.signature());
        let curve = |algorithm, point: &[u8]| {
            UnparsedPublicKey::new(algorithm, point)
                .verify(message, signature)
                .is_ok()
        };
        match (&self.material, name) {
            (Material::P256(point), "ES256") => curve(&signature::ECDSA_P256_SHA256_FIXED, point),
            (Material::P384(point), "ES384") => curve(&signature::ECDSA_P384_SHA384_FIXED, point),
            (Material::Rsa { modulus, exponent }, _) => {
                let parameters = match name {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, message, signature).is_ok()
            }
            _ => false,
        }
    }
}

/// Numbers are written without leading zeros; some issuers add one.
fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes[zeros..].to_vec()
}

#[cfg(test)]
mod tests;
