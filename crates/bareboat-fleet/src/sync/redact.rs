//! Secrets on the shelf: their keys, and digests of their values, which tell whether two are equal.

use bareboat_api::{Map, Value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// What happens to values of Secrets.
#[derive(Clone)]
pub(crate) enum Redaction {
    /// Nothing: the type has no confidential values, or they may be stored.
    None,
    /// Values are replaced by digests, with a salt of the shelf.
    Digests(Arc<[u8]>),
}

impl Redaction {
    /// Replaces the values of a Secret.
    pub(super) fn apply(&self, object: &mut Value) {
        let Redaction::Digests(salt) = self else {
            return;
        };
        let Some(map) = object.as_object_mut() else {
            return;
        };
        map.remove("stringData");
        let Some(data) = map.get_mut("data").and_then(Value::as_object_mut) else {
            map.remove("data");
            return;
        };
        let mut redacted = Map::new();
        for (key, value) in data.iter() {
            let digest = Sha256::new()
                .chain_update(&**salt)
                .chain_update(value.as_str().unwrap_or(""));
            let hex: String = digest
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            // Clients decode values as base64.
            let shown = BASE64_STANDARD.encode(format!("sha256:{hex}"));
            redacted.insert(key, Value::string(shown));
        }
        *data = redacted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn values_become_digests() {
        let redaction = Redaction::Digests(Arc::from(*b"salt"));
        let secret = |text: &str| {
            let mut secret = value!({"data": {"password": (BASE64_STANDARD.encode(text))}, "stringData": {"a": "b"}, "type": "Opaque"});
            redaction.apply(&mut secret);
            secret
        };
        let one = secret("hunter2");
        assert_eq!(one, secret("hunter2"));
        assert_ne!(one, secret("hunter3"));
        assert_eq!(one.get("stringData"), None);
        let text = String::from_utf8(one.to_json()).expect("JSON is UTF-8");
        assert!(!text.contains(&BASE64_STANDARD.encode("hunter2")), "{text}");
        let shown = one
            .at(&["data", "password"])
            .and_then(Value::as_str)
            .expect("the key is there");
        let decoded = BASE64_STANDARD.decode(shown).expect("it is base64");
        assert!(decoded.starts_with(b"sha256:"));
    }
}
