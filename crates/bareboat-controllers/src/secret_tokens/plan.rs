//! What to do with a Secret for a token: a comparison of the Secret with its account, without I/O.

use super::TYPE;
use bareboat_api::{Map, Object, Str, Value};
use bareboat_tokens::account::{Claims, Reference};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The label with the day of the last use.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// What to do with a Secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing.
    Leave,
    /// Delete it: its account is gone.
    Remove,
    /// Write what is missing.
    Fill(Box<Missing>),
}

/// What a Secret lacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// The claims of the token, unless it has one.
    pub(super) claims: Option<Claims>,
    /// Other members of `data`, not encoded.
    data: Vec<(&'static str, String)>,
    /// The uid of the account.
    uid: Str,
}

/// The name of the account of a Secret.
pub(super) fn account_of(secret: &Object) -> Option<&str> {
    let name = secret.annotation(ACCOUNT_NAME);
    name.filter(|name| !name.is_empty() && is_for_token(secret))
}

fn is_for_token(secret: &Object) -> bool {
    secret.get("type").and_then(Value::as_str) == Some(TYPE)
}

/// Compares a Secret with its account and with the CA certificates it should hold.
pub(super) fn plan(secret: &Object, account: Option<&Object>, ca: Option<&str>) -> Plan {
    if account_of(secret).is_none() || secret.deletion_timestamp().is_some() {
        return Plan::Leave;
    }
    let wanted = secret.annotation(ACCOUNT_UID).unwrap_or("");
    // An account that was created again under the same name is another account.
    let Some(account) = account.filter(|it| wanted.is_empty() || wanted == it.uid()) else {
        return Plan::Remove;
    };
    let mut data = Vec::new();
    if let Some(ca) = ca.filter(|ca| held(secret, "ca.crt").as_deref() != Some(ca.as_bytes())) {
        data.push(("ca.crt", ca.to_owned()));
    }
    let lacks = |key: &str| held(secret, key).is_none_or(|bytes| bytes.is_empty());
    if lacks("namespace") {
        data.push(("namespace", secret.namespace().to_owned()));
    }
    let claims = lacks("token").then(|| {
        let account = Reference {
            name: Str::new(account.name()),
            uid: Str::new(account.uid()),
        };
        Claims::of_secret(secret.namespace(), account, secret.name())
    });
    match data.is_empty() && claims.is_none() {
        true => Plan::Leave,
        false => Plan::Fill(Box::new(Missing {
            claims,
            data,
            uid: Str::new(account.uid()),
        })),
    }
}

/// The decoded bytes of a member of `data`.
fn held(secret: &Object, key: &str) -> Option<Vec<u8>> {
    let text = secret.at(&["data", key]).and_then(Value::as_str)?;
    STANDARD.decode(text).ok()
}

/// Writes what a Secret lacks, with a token for its claims.
pub(super) fn fill(secret: &mut Object, missing: &Missing, token: Option<&str>) {
    let mut data = match secret.get("data") {
        Some(Value::Object(data)) => data.clone(),
        _ => Map::new(),
    };
    let others = missing.data.iter().map(|(key, text)| (*key, text.as_str()));
    for (key, text) in others.chain(token.map(|token| ("token", token))) {
        data.insert(key, Value::from(STANDARD.encode(text)));
    }
    secret.map_mut().insert("data", Value::Object(data));
    insert(secret, "annotations", ACCOUNT_UID, &missing.uid);
}

/// Notes the day of the last use. Returns whether the Secret changed.
pub(super) fn note_use(secret: &mut Object, today: &str) -> bool {
    let changes = account_of(secret).is_some() && secret.label(LAST_USED) != Some(today);
    if changes {
        insert(secret, "labels", LAST_USED, today);
    }
    changes
}

fn insert(secret: &mut Object, member: &str, key: &'static str, text: &str) {
    let mut map = secret.meta(member).cloned().unwrap_or_default();
    map.make_object().insert(key, Value::from(text));
    secret.set_meta(member, map);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn object(value: Value) -> Object {
        Object::try_from(value).expect("an object")
    }

    fn account(uid: &str) -> Object {
        object(value!({"metadata": {"name": "robot", "namespace": "a", "uid": uid}}))
    }

    fn secret(uid: &str) -> Object {
        object(value!({
            "metadata": {"name": "s", "namespace": "a", "annotations": {
                (ACCOUNT_NAME): "robot", (ACCOUNT_UID): uid}},
            "type": TYPE,
        }))
    }

    #[test]
    fn a_filled_secret_is_left_alone_until_the_certificates_change() {
        let (mut secret, account) = (secret(""), account("1"));
        let Plan::Fill(missing) = plan(&secret, Some(&account), Some("CA")) else {
            panic!("it lacks everything");
        };
        assert_eq!(missing.claims.as_ref().map(|it| it.legacy), Some(true));
        fill(&mut secret, &missing, Some("token"));
        assert_eq!(held(&secret, "token").as_deref(), Some(&b"token"[..]));
        assert_eq!(held(&secret, "namespace").as_deref(), Some(&b"a"[..]));
        assert_eq!(secret.annotation(ACCOUNT_UID), Some("1"));
        assert_eq!(plan(&secret, Some(&account), Some("CA")), Plan::Leave);
        let Plan::Fill(missing) = plan(&secret, Some(&account), Some("CA 2")) else {
            panic!("its certificates are old");
        };
        assert_eq!(missing.claims, None, "it keeps its token");
    }

    #[test]
    fn a_secret_of_an_account_that_is_gone_is_removed() {
        assert_eq!(plan(&secret("1"), None, None), Plan::Remove);
        assert_eq!(plan(&secret("1"), Some(&account("2")), None), Plan::Remove);
        let mut leaving = secret("1");
        leaving.set_meta("deletionTimestamp", Value::from("2026-01-01T00:00:00Z"));
        assert_eq!(plan(&leaving, None, None), Plan::Leave);
        let mut other = secret("1");
        other.map_mut().insert("type", Value::from("Opaque"));
        assert_eq!(plan(&other, None, None), Plan::Leave);
    }

    #[test]
    fn the_last_use_is_written_once_a_day() {
        let mut secret = secret("1");
        assert!(note_use(&mut secret, "2026-01-01"));
        assert!(!note_use(&mut secret, "2026-01-01"));
        assert!(note_use(&mut secret, "2026-01-02"));
        assert_eq!(secret.label(LAST_USED), Some("2026-01-02"));
    }
}
