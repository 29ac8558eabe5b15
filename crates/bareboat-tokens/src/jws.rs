//! JSON Web Signatures in compact form: three base64 parts separated by dots.
//!
//! The length of a token is checked before it is decoded. Encryption, compression, keys inside the
//! header and critical extensions are not supported.

use crate::keys::{PublicKey, SigningKey};
use crate::{KeyError, keys};
use bareboat_api::{Value, value};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The maximum length of a token.
pub const MAX_TOKEN: usize = 16 * 1024;

/// The error of a rejected token. The texts appear in the log and in TokenReviews; they never
/// contain the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The text is not a JSON Web Signature in compact form.
    #[error("the token is not a JSON Web Signature in compact form")]
    NotJws,
    /// The header requires an unsupported feature.
    #[error("the header of the token is not supported: {0}")]
    Header(&'static str),
    /// No key has the token's key id.
    #[error("invalid signature, no keys found")]
    NoKeys,
    /// No key verifies the signature.
    #[error("invalid signature")]
    Signature,
    /// The claims are not valid here or now.
    #[error("{0}")]
    Claims(String),
}

/// A parsed token that is not verified yet.
#[derive(Debug)]
pub struct Jws<'a> {
    algorithm: String,
    key: Option<String>,
    claims: Value,
    signed: &'a [u8],
    signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Parses a token.
    pub fn parse(token: &'a str) -> Result<Jws<'a>, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::NotJws);
        }
        let mut parts = token.splitn(4, '.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::NotJws);
        };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::NotJws);
        let header_value = object(&decode(header)?)?;
        let text = |key: &str| header_value.get(key).and_then(Value::as_str);
        if header_value.get("crit").is_some() {
            return Err(TokenError::Header("critical extensions"));
        }
        if header_value.get("enc").is_some() || header_value.get("zip").is_some() {
            return Err(TokenError::Header("encryption or compression"));
        }
        let algorithm = text("alg").ok_or(TokenError::Header("no algorithm"))?;
        Ok(Jws {
            algorithm: algorithm.to_owned(),
            key: text("kid").filter(|id| !id.is_empty()).map(str::to_owned),
            claims: object(&decode(claims)?)?,
            signed: &token.as_bytes()[..header.len() + 1 + claims.len()],
            signature: decode(signature)?,
        })
    }

    /// Returns the claims, which are not trustworthy before [`Jws::verify`] succeeds.
    pub fn unverified(&self) -> &Value {
        &self.claims
    }

    /// Returns the algorithm that the header names.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// Returns the key id in the header, if there is one.
    pub fn key_id(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the bytes that were signed.
    pub(crate) fn signed(&self) -> &[u8] {
        self.signed
    }

    /// Returns the decoded signature.
    pub(crate) fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// Returns the claims, if one of the keys signed them with the key's algorithm.
    pub fn verify<'k>(
        self,
        keys: impl IntoIterator<Item = &'k PublicKey>,
    ) -> Result<Value, TokenError> {
        let mut tried = false;
        for key in keys {
            if self.key.as_deref().is_some_and(|id| id != key.id()) {
                continue;
            }
            tried = true;
            if key.algorithm().name() == self.algorithm
                && key.verifies(self.signed, &self.signature)
            {
                return Ok(self.claims);
            }
        }
        Err(match tried {
            true => TokenError::Signature,
            false => TokenError::NoKeys,
        })
    }
}

/// Signs claims, whose content is not checked.
pub fn sign(key: &SigningKey, claims: &Value) -> Result<String, keys::KeyError> {
    let header = value!({
        "alg": (key.public().algorithm().name()),
        "kid": (key.public().id()),
    });
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_json());
    let mut token = format!("{}.{}", encode(&header), encode(claims));
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    token.push_str(&URL_SAFE_NO_PAD.encode(signature));
    if token.len() > MAX_TOKEN {
        return Err(KeyError::Unusable(
            "the token would be too long; ask for fewer audiences".to_owned(),
        ));
    }
    Ok(token)
}

/// Parses a JSON object; a duplicate member is an error.
fn object(bytes: &[u8]) -> Result<Value, TokenError> {
    let parsed = bareboat_wire::json::parse(bytes).map_err(|_| TokenError::NotJws)?;
    if !parsed.duplicates.is_empty() || parsed.value.as_object().is_none() {
        return Err(TokenError::NotJws);
    }
    Ok(parsed.value)
}
