//! ConfigMaps, Secrets and ServiceAccounts.

mod certificates;

use super::Rules;
use super::check::{Errors, immutable, path};
use crate::reach::{Fill, Reach};
use bareboat_api::kind::WriteContext;
use bareboat_api::{FieldError, Map, Object, Value, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Maximum total data size of a ConfigMap or Secret, in bytes.
const MAX_SIZE: usize = 1024 * 1024;

const FROZEN: &str = "field is immutable when `immutable` is set";

/// Returns the strategy of ConfigMap: validation; the data is immutable if `immutable` is set.
pub(crate) fn config_map() -> Rules {
    Rules::validating(validate_config_map)
        .updating(|new, old, wrong| frozen(new, old, &["data", "binaryData"], wrong))
}

/// Returns the strategy of Secret: validation and warnings; the type is immutable, and the data if `immutable` is set.
pub(crate) fn secret() -> Rules {
    Rules::validating(validate_secret)
        .warning(|new, _| certificates::warnings(new))
        .changing(prepare_secret_update)
        .updating(|new, old, wrong| {
            immutable(new.get("type"), old.get("type"), path(&["type"]), wrong);
            frozen(new, old, &["data"], wrong);
        })
}

/// Returns the strategy of ServiceAccount: warnings; of the deprecated list of secrets only names are kept.
pub(crate) fn service_account() -> Rules {
    Rules::default()
        .creating(|account, _| only_names(account))
        .changing(|account, _, _| only_names(account))
        .warning(|new, old| {
            const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";
            let has = |account: &Object| account.annotation(ENFORCED).is_some();
            let text = || {
                format!(
                    "metadata.annotations[{ENFORCED}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
                )
            };
            let fresh = has(new) && !old.is_some_and(has);
            fresh.then(text).into_iter().collect()
        })
}

/// Keeps only the names of a service account's secrets.
fn only_names(account: &mut Object) {
    for secret in account.map_mut().each("secrets") {
        secret.retain(|member, _| member == "name");
    }
}

fn validate_config_map(object: &Object, wrong: &mut Errors) {
    let empty = Map::new();
    let data = object.value().members(&["data"]).unwrap_or(&empty);
    let binary = object.value().members(&["binaryData"]).unwrap_or(&empty);
    let mut size = 0;
    for (key, value) in data.iter() {
        config_key(key, "data", wrong);
        if binary.contains_key(key) {
            let detail = "duplicate of key present in binaryData";
            wrong.push(FieldError::invalid(path(&["data"]).key(key), key, detail));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary.iter() {
        config_key(key, "binaryData", wrong);
        size += decoded_length(value);
    }
    if size > MAX_SIZE {
        // The size is that of both maps, so upstream names no field.
        wrong.push(FieldError::too_long(path(&[]), MAX_SIZE));
    }
}

fn config_key(key: &str, member: &str, wrong: &mut Errors) {
    for message in names::config_key(key) {
        wrong.push(FieldError::invalid(path(&[member]).key(key), key, message));
    }
}

fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or("");
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn frozen(new: &Object, old: &Object, members: &[&str], wrong: &mut Errors) {
    if !old.value().flag(&["immutable"]) {
        return;
    }
    if !new.value().flag(&["immutable"]) {
        wrong.push(FieldError::forbidden(path(&["immutable"]), FROZEN));
    }
    for member in members {
        if new.get(member) != old.get(member) {
            wrong.push(FieldError::forbidden(path(&[member]), FROZEN));
        }
    }
}

fn prepare_secret_update(new: &mut Object, old: &Object, _ctx: &WriteContext<'_>) {
    // An update without a type keeps the current type instead of the default.
    if new.value().text(&["type"]).is_empty() {
        let ty = old.value().text(&["type"]).to_owned();
        new.map_mut().insert("type", ty.into());
    }
}

fn validate_secret(object: &Object, wrong: &mut Errors) {
    let secret = object.value();
    let empty = Map::new();
    let data = secret.members(&["data"]).unwrap_or(&empty);
    let mut size = 0;
    for (key, value) in data.iter() {
        config_key(key, "data", wrong);
        size += decoded_length(value);
    }
    if size > MAX_SIZE {
        wrong.push(FieldError::too_long(path(&["data"]), MAX_SIZE));
    }
    let require = |key: &str, wrong: &mut Errors| {
        if !data.contains_key(key) {
            wrong.push(FieldError::required(path(&["data"]).key(key), ""));
        }
    };
    match secret.text(&["type"]) {
        "kubernetes.io/service-account-token" => {
            const KEY: &str = "kubernetes.io/service-account.name";
            if secret.text(&["metadata", "annotations", KEY]).is_empty() {
                let place = path(&["metadata", "annotations"]).key(KEY);
                wrong.push(FieldError::required(place, ""));
            }
        }
        "kubernetes.io/dockercfg" => docker_config(data, ".dockercfg", wrong),
        "kubernetes.io/dockerconfigjson" => docker_config(data, ".dockerconfigjson", wrong),
        "kubernetes.io/basic-auth"
            if !data.contains_key("username") && !data.contains_key("password") =>
        {
            for key in ["username", "password"] {
                require(key, wrong);
            }
        }
        "kubernetes.io/ssh-auth" => {
            let key = data.get_str("ssh-privatekey").unwrap_or("");
            if key.is_empty() {
                wrong.push(FieldError::required(
                    path(&["data"]).key("ssh-privatekey"),
                    "",
                ));
            }
        }
        "kubernetes.io/tls" => {
            require("tls.crt", wrong);
            require("tls.key", wrong);
        }
        _ => {}
    }
}

fn docker_config(data: &Map, key: &str, wrong: &mut Errors) {
    let place = path(&["data"]).key(key);
    let Some(text) = data.get_str(key) else {
        wrong.push(FieldError::required(place, ""));
        return;
    };
    let is_object = STANDARD
        .decode(text)
        .ok()
        .is_some_and(|bytes| serde_json::from_slice::<serde_json::Map<_, _>>(&bytes).is_ok());
    if !is_object {
        wrong.push(FieldError::invalid(
            place,
            "<secret contents redacted>",
            "must be a JSON object",
        ));
    }
}
