//! What is told about secrets that hold a certificate and its key.
//!
//! Whether both are there in the form programs read them in is looked at. Whether they belong
//! together is found out by whoever uses them.

use crate::reach::Reach;
use bareboat_api::{Object, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The most kinds of blocks that are told of.
const MAX_TOLD: usize = 16;

/// Warns about a certificate or a key that cannot be found.
pub(super) fn warnings(secret: &Object) -> Vec<String> {
    if secret.value().text(&["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let decoded = |key: &str| {
        let text = secret.at(&["data", key]).and_then(Value::as_str);
        let bytes = STANDARD.decode(text.unwrap_or("")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let problem = certificate(&decoded("tls.crt")).or_else(|| key(&decoded("tls.key")));
    problem.into_iter().collect()
}

fn certificate(text: &str) -> Option<String> {
    let blocks = blocks(text);
    if blocks.contains(&"CERTIFICATE") {
        return None;
    }
    Some(match blocks.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        several => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            several.join(" ")
        ),
    })
}

fn key(text: &str) -> Option<String> {
    let blocks = blocks(text);
    let is_key = |name: &str| name == "PRIVATE KEY" || name.ends_with(" PRIVATE KEY");
    if blocks.iter().any(|name| is_key(name)) {
        return None;
    }
    Some(match blocks.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        ["CERTIFICATE"] => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        several => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            several.join(" ")
        ),
    })
}

/// What the blocks of a text are called, those that end as they begin and hold something readable.
fn blocks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line
            .trim_end()
            .strip_prefix("-----BEGIN ")
            .and_then(|rest| rest.strip_suffix("-----"))
        else {
            continue;
        };
        let mut content = String::new();
        let mut rest = lines.clone();
        let ended = rest.by_ref().find_map(|line| {
            let line = line.trim();
            if line.starts_with("-----BEGIN ") {
                return Some(false);
            }
            let end = line.strip_prefix("-----END ");
            if end.is_none() && !line.contains(':') {
                content.push_str(line);
            }
            end.map(|end| end.strip_suffix("-----") == Some(name))
        });
        if ended == Some(true) && STANDARD.decode(&content).is_ok() {
            lines = rest;
            found.push(name);
            // A certificate or a key is all that is looked for; the rest is told, not searched.
            if found.len() == MAX_TOLD {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{certificate, key};

    #[test]
    fn what_is_missing_is_told() {
        let crt = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n";
        let rsa = "-----BEGIN RSA PRIVATE KEY-----\nAAEC\n-----END RSA PRIVATE KEY-----\n";
        let cases = [
            (certificate(crt), None),
            (certificate(&format!("{rsa}{crt}")), None),
            (
                certificate("text"),
                Some("any PEM data in certificate input"),
            ),
            (certificate(rsa), Some("may have been switched")),
            (
                certificate(&format!("{rsa}{rsa}")),
                Some("types: [RSA PRIVATE KEY RSA PRIVATE KEY]"),
            ),
            (key(rsa), None),
            (key(""), Some("any PEM data in key input")),
            (key(crt), Some("a certificate rather than a key")),
            (
                key(&format!("{crt}{crt}")),
                Some("[CERTIFICATE CERTIFICATE]"),
            ),
            (
                key("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----"),
                Some("any PEM data in key input"),
            ),
            (
                key("-----BEGIN PRIVATE KEY-----\nAAEC\n-----END X-----"),
                Some("any PEM data in key input"),
            ),
        ];
        for (index, (told, wanted)) in cases.into_iter().enumerate() {
            match (told, wanted) {
                (None, None) => {}
                (Some(told), Some(wanted)) => assert!(told.contains(wanted), "{index}: {told}"),
                other => panic!("{index}: {other:?}"),
            }
        }
    }
}
