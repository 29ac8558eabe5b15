//! Service account tokens: claims, issuing and reading.

use crate::jws::{Jws, TokenError, sign};
use crate::keys::{KeyError, PublicKey, SigningKey};
use bareboat_api::{Map, Str, Value, value};

/// The prefix of service account user names.
pub const USER_PREFIX: &str = "system:serviceaccount:";
/// The issuer of tokens that are stored in secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// The allowed difference of clocks, in seconds.
const LEEWAY: i64 = 60;

/// An object that a token refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name of the object.
    pub name: Str,
    /// The uid of the object.
    pub uid: Str,
}

impl Reference {
    fn to_value(&self) -> Value {
        value!({"name": (self.name.clone()), "uid": (self.uid.clone())})
    }

    fn from_value(value: Option<&Value>) -> Option<Reference> {
        let value = value?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        Some(Reference {
            name: Str::new(text("name")?),
            uid: Str::new(text("uid")?),
        })
    }
}

/// The account of a token, and the objects it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The namespace of the account.
    pub namespace: Str,
    /// The name and uid of the service account.
    pub account: Reference,
    /// The secret the token depends on.
    pub secret: Option<Reference>,
    /// The pod the token depends on.
    pub pod: Option<Reference>,
    /// The node of the pod, or the node the token depends on if there is no pod.
    pub node: Option<Reference>,
    /// The audiences of the token; empty for legacy tokens.
    pub audiences: Vec<Str>,
    /// The id of the token; empty for legacy tokens.
    pub id: Str,
    /// The expiry, in seconds since 1970; `None` for legacy tokens.
    pub expires: Option<i64>,
    /// Whether the token is stored in a secret and valid as long as the secret exists.
    pub legacy: bool,
}

impl Claims {
    /// Returns the claims of a token that a secret holds. The token is valid as long as the secret holds it.
    pub fn of_secret(namespace: &str, account: Reference, secret: &str) -> Claims {
        Claims {
            namespace: Str::new(namespace),
            account,
            secret: Some(Reference {
                name: Str::new(secret),
                uid: Str::default(),
            }),
            pod: None,
            node: None,
            audiences: Vec::new(),
            id: Str::default(),
            expires: None,
            legacy: true,
        }
    }

    /// Returns the user name of the account.
    pub fn user_name(&self) -> String {
        format!("{USER_PREFIX}{}:{}", self.namespace, self.account.name)
    }

    /// Checks that the token has not expired. [`read`] checks this too; a caller that caches claims
    /// checks again.
    pub fn check_end(&self, now: i64) -> Result<(), TokenError> {
        match self.expires {
            Some(end) if now.saturating_sub(LEEWAY) > end => Err(expired()),
            _ => Ok(()),
        }
    }
}

fn expired() -> TokenError {
    TokenError::Claims("service account token has expired".to_owned())
}

/// Signs a token.
pub fn issue(
    key: &SigningKey,
    issuer: &str,
    claims: &Claims,
    now: i64,
) -> Result<String, KeyError> {
    if claims.legacy {
        return sign(key, &legacy_value(claims));
    }
    let mut bound = Map::new();
    bound.insert("namespace", Value::from(claims.namespace.clone()));
    bound.insert("serviceaccount", claims.account.to_value());
    let references = [
        ("node", &claims.node),
        ("pod", &claims.pod),
        ("secret", &claims.secret),
    ];
    for (name, reference) in references {
        if let Some(reference) = reference {
            bound.insert(name, reference.to_value());
        }
    }
    let claimed = value!({
        "aud": (claims.audiences.iter().cloned().collect::<Value>()),
        "exp": (claims.expires.unwrap_or(now)),
        "iat": (now),
        "iss": (issuer),
        "jti": (claims.id.clone()),
        "kubernetes.io": (Value::Object(bound)),
        "nbf": (now),
        "sub": (claims.user_name()),
    });
    sign(key, &claimed)
}

fn legacy_value(claims: &Claims) -> Value {
    let secret = claims.secret.as_ref().map_or("", |secret| &secret.name);
    value!({
        "iss": (LEGACY_ISSUER),
        "kubernetes.io/serviceaccount/namespace": (claims.namespace.clone()),
        "kubernetes.io/serviceaccount/secret.name": (secret),
        "kubernetes.io/serviceaccount/service-account.name": (claims.account.name.clone()),
        "kubernetes.io/serviceaccount/service-account.uid": (claims.account.uid.clone()),
        "sub": (claims.user_name()),
    })
}

/// Reads a token and checks everything that needs no other object: issuer, signature and times.
///
/// Returns `None` for a foreign token: it is not a JSON Web Signature, or has another issuer.
pub fn read<'k>(
    token: &str,
    issuers: &[String],
    keys: impl IntoIterator<Item = &'k PublicKey>,
    now: i64,
) -> Result<Option<Claims>, TokenError> {
    let Ok(jws) = Jws::parse(token) else {
        return Ok(None);
    };
    let issuer = jws.unverified().get("iss").and_then(Value::as_str);
    let legacy = issuer == Some(LEGACY_ISSUER);
    let ours = issuer.is_some_and(|issuer| issuers.iter().any(|known| known == issuer));
    if !legacy && !ours {
        return Ok(None);
    }
    let value = jws.verify(keys)?;
    let claims = if legacy {
        legacy_claims(&value)
    } else {
        check_times(&value, now)?;
        bound_claims(&value)
    };
    let claims = claims.ok_or_else(|| TokenError::Claims("the claims are malformed".to_owned()))?;
    if value.get("sub").and_then(Value::as_str) != Some(claims.user_name().as_str()) {
        return Err(TokenError::Claims("sub claim is invalid".to_owned()));
    }
    Ok(Some(claims))
}

fn check_times(value: &Value, now: i64) -> Result<(), TokenError> {
    let time = |key: &str| value.get(key).and_then(Value::as_i64);
    let fail = |why: &str| Err(TokenError::Claims(format!("service account token {why}")));
    match time("exp") {
        Some(end) if now.saturating_sub(LEEWAY) <= end => {}
        Some(_) => return Err(expired()),
        None => return fail("has no expiry"),
    }
    if time("nbf").is_some_and(|begin| now.saturating_add(LEEWAY) < begin) {
        return fail("is not valid yet");
    }
    if time("iat").is_some_and(|issued| now.saturating_add(LEEWAY) < issued) {
        return fail("is issued in the future");
    }
    Ok(())
}

fn bound_claims(value: &Value) -> Option<Claims> {
    let bound = value.get("kubernetes.io")?;
    let audiences = match value.get("aud") {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .map(Str::new)
            .collect(),
        Some(Value::String(one)) => vec![Str::new(one)],
        _ => Vec::new(),
    };
    let reference = |key: &str| Reference::from_value(bound.get(key));
    Some(Claims {
        namespace: Str::new(bound.get("namespace")?.as_str()?),
        account: reference("serviceaccount")?,
        secret: reference("secret"),
        pod: reference("pod"),
        node: reference("node"),
        audiences,
        id: Str::new(value.get("jti").and_then(Value::as_str).unwrap_or("")),
        expires: value.get("exp").and_then(Value::as_i64),
        legacy: false,
    })
}

fn legacy_claims(value: &Value) -> Option<Claims> {
    let text = |key: &str| {
        let claim = format!("kubernetes.io/serviceaccount/{key}");
        value.get(&claim).and_then(Value::as_str).map(Str::new)
    };
    let account = Reference {
        name: text("service-account.name")?,
        uid: text("service-account.uid")?,
    };
    let (namespace, secret) = (text("namespace")?, text("secret.name")?);
    Some(Claims::of_secret(&namespace, account, &secret))
}

#[cfg(test)]
mod tests;
