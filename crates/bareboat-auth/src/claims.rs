//! Maps the claims of a token to a user. The caller has verified the signature.

use crate::authentication::JwtIssuer;
use crate::mappings::Mapping;
use bareboat_api::kind::User;
use bareboat_api::{Str, Value, value};
use std::collections::BTreeMap;

/// How far the clock of an issuer may be ahead of ours, in seconds.
const AHEAD: i64 = 300;
/// The key under which the id of a token is kept.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The user of a valid token, and when the token expires.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The user that the claims are mapped to.
    pub user: User,
    /// When the token expires, in seconds since 1970.
    pub expires: i64,
}

impl JwtIssuer {
    /// Returns the user that claims are mapped to. The error is for the log and for TokenReviews, never for the client.
    pub fn identify(&self, claims: &Value, now: i64) -> Result<Identity, String> {
        if claims.get("iss").and_then(Value::as_str) != Some(self.url()) {
            return Err("the token is of another issuer".to_owned());
        }
        let expires = check_times(claims, now)?;
        self.check_audience(claims)?;
        for rule in &self.mappings.claim_rules {
            rule.check(claims)?;
        }
        let user = self.user(claims)?;
        if !self.mappings.user_rules.is_empty() {
            let shown = shown(&user);
            for rule in &self.mappings.user_rules {
                rule.check(&shown)?;
            }
        }
        Ok(Identity { user, expires })
    }

    fn check_audience(&self, claims: &Value) -> Result<(), String> {
        let held = texts(claims.get("aud")).unwrap_or_default();
        let known = |audience: &String| self.audiences.contains(audience);
        match held.iter().any(known) {
            true => Ok(()),
            false => Err(format!(
                "the token is for audiences {held:?}, not for one of {:?}",
                self.audiences
            )),
        }
    }

    fn user(&self, claims: &Value) -> Result<User, String> {
        let mappings = &self.mappings;
        let name = username(&mappings.username, claims)?;
        if name.is_empty() {
            return Err("the username is empty".to_owned());
        }
        refuse_system(&mappings.username, &name)?;
        let groups = match &mappings.groups {
            None => Vec::new(),
            Some(mapping) => groups(mapping, claims)?,
        };
        if let Some(mapping) = &mappings.groups {
            for group in &groups {
                refuse_system(mapping, group)?;
            }
        }
        let uid = match &mappings.uid {
            None => String::new(),
            Some(mapping) => text_of("uid", mapping, claims)?,
        };
        let mut extra = BTreeMap::new();
        for (key, expression) in &mappings.extra {
            let texts = expression
                .texts(claims)
                .map_err(|why| format!("extra {key} cannot be computed: {why}"))?;
            if !texts.is_empty() {
                extra.insert(key.clone(), texts);
            }
        }
        if let Some(id) = claims.get("jti").and_then(Value::as_str)
            && !id.is_empty()
        {
            extra.insert(CREDENTIAL.to_owned(), vec![format!("JTI={id}")]);
        }
        Ok(User {
            name: Str::new(name),
            uid: Str::new(uid),
            groups: groups.iter().map(Str::new).collect(),
            extra,
        })
    }
}

/// Returns when a token expires; fails if it has expired or is not valid yet.
fn check_times(claims: &Value, now: i64) -> Result<i64, String> {
    let time = |key: &str| match claims.get(key) {
        None => Ok(None),
        Some(Value::Int(seconds)) => Ok(Some(*seconds)),
        Some(Value::Float(seconds)) => Ok(Some(*seconds as i64)),
        Some(_) => Err(format!("the claim {key} is not a time")),
    };
    let expires = time("exp")?.ok_or("the token has no expiry")?;
    if now > expires {
        return Err("the token is expired".to_owned());
    }
    if time("nbf")?.is_some_and(|begins| begins > now.saturating_add(AHEAD)) {
        return Err("the token is not valid yet".to_owned());
    }
    if time("iat")?.is_some_and(|issued| issued > now.saturating_add(AHEAD)) {
        return Err("the token is issued in the future".to_owned());
    }
    Ok(expires)
}

fn username(mapping: &Mapping, claims: &Value) -> Result<String, String> {
    if let Mapping::Claim { name, .. } = mapping
        && name == "email"
    {
        match claims.get("email_verified") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Err("the email is not verified".to_owned()),
            Some(_) => return Err("the claim email_verified is not a bool".to_owned()),
        }
    }
    text_of("username", mapping, claims)
}

fn text_of(what: &str, mapping: &Mapping, claims: &Value) -> Result<String, String> {
    match mapping {
        Mapping::Claim { name, prefix } => match claims.get(name).and_then(Value::as_str) {
            Some("") => Ok(String::new()),
            Some(text) => Ok(format!("{prefix}{text}")),
            None => Err(format!("the claim {name} is missing or not a string")),
        },
        Mapping::Expression(expression) => expression
            .text(claims)
            .map_err(|why| format!("{what} cannot be computed: {why}")),
    }
}

fn groups(mapping: &Mapping, claims: &Value) -> Result<Vec<String>, String> {
    match mapping {
        Mapping::Claim { name, prefix } => {
            let found = texts(claims.get(name)).ok_or_else(|| {
                format!("the claim {name} is neither a string nor a list of them")
            })?;
            let full = found.iter().filter(|text| !text.is_empty());
            Ok(full.map(|text| format!("{prefix}{text}")).collect())
        }
        Mapping::Expression(expression) => expression
            .texts(claims)
            .map_err(|why| format!("groups cannot be computed: {why}")),
    }
}

/// Returns the texts of a claim: one, a list, or none if it is absent; `None` for any other type.
fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(vec![text.to_string()]),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect(),
        Some(_) => None,
    }
}

/// Names that begin with `system:` are for certificates and service accounts. A token may have one only if the configuration
/// itself contains it.
fn refuse_system(mapping: &Mapping, name: &str) -> Result<(), String> {
    match name.starts_with("system:") && !mapping.may_be_system() {
        true => Err(format!(
            "{name:?} begins with system:, but the mapping does not contain that prefix"
        )),
        false => Ok(()),
    }
}

/// Returns the user as validation rules read it.
fn shown(user: &User) -> Value {
    let mut extra = Value::object();
    for (key, values) in &user.extra {
        let values: Value = values.iter().map(String::as_str).collect();
        extra.make_object().insert(key.as_str(), values);
    }
    value!({
        "username": (user.name.clone()),
        "uid": (user.uid.clone()),
        "groups": (user.groups.iter().cloned().collect::<Value>()),
        "extra": (extra),
    })
}

#[cfg(test)]
mod tests;
