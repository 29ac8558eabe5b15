//! JSON Web Signatures in compact form: three parts of base64 with dots between them.
//!
//! A token is bounded before it is decoded. Encryption, compression, keys inside the header and critical extensions are
//! not supported and never looked at.

use crate::keys::{PublicKey, SigningKey};
use crate::{KeyError, keys};
use bareboat_api::{Value, value};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The longest token that is looked at.
pub const MAX_TOKEN: usize = 16 * 1024;

/// Why a token is not accepted. The texts go to the log and into TokenReviews; they never hold the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is not a signed token at all.
    #[error("the token is not a JSON Web Signature in compact form")]
    NotJws,
    /// The header asks for something that is not supported.
    #[error("the header of the token is not supported: {0}")]
    Header(&'static str),
    /// No key has the id the token names.
    #[error("invalid signature, no keys found")]
    NoKeys,
    /// No key made the signature.
    #[error("invalid signature")]
    Signature,
    /// The claims say that it is not good here or now.
    #[error("{0}")]
    Claims(String),
}

/// A token that was read but not yet checked.
#[derive(Debug)]
pub struct Jws<'a> {
    algorithm: String,
    key: Option<String>,
    claims: Value,
    signed: &'a [u8],
    signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Reads a token.
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

    /// The claims, which anybody may have written until [`Jws::verify`] says otherwise.
    pub fn unverified(&self) -> &Value {
        &self.claims
    }

    /// The claims, if one of the keys signed them with the algorithm the key is for.
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

/// Signs claims.
pub(crate) fn sign(key: &SigningKey, claims: &Value) -> Result<String, keys::KeyError> {
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

/// Reads a JSON object; a member that is there twice makes it unreadable.
fn object(bytes: &[u8]) -> Result<Value, TokenError> {
    let parsed = bareboat_wire::json::parse(bytes).map_err(|_| TokenError::NotJws)?;
    if !parsed.duplicates.is_empty() || parsed.value.as_object().is_none() {
        return Err(TokenError::NotJws);
    }
    Ok(parsed.value)
}
