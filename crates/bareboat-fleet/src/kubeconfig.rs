//! Reads the text of a kubeconfig. Unlike clients' own, it comes from an object, so it may name neither programs nor files.

use bareboat_api::Value;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// What a kubeconfig says about its current context.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Kubeconfig {
    pub(crate) server: String,
    pub(crate) authorities: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) certificate: Option<(String, String)>,
}

/// Fields that make a client run programs, read files or take a way that this server does not take.
const REFUSED_OF_USERS: [(&str, &str); 8] = [
    ("exec", "it runs a program"),
    ("auth-provider", "it runs a program"),
    ("tokenFile", "it names a file; use token"),
    (
        "client-certificate",
        "it names a file; use client-certificate-data",
    ),
    ("client-key", "it names a file; use client-key-data"),
    ("username", "passwords are not supported"),
    ("password", "passwords are not supported"),
    ("as", "impersonation is not supported"),
];
const REFUSED_OF_CLUSTERS: [(&str, &str); 3] = [
    (
        "certificate-authority",
        "it names a file; use certificate-authority-data",
    ),
    ("proxy-url", "proxies are not supported"),
    ("tls-server-name", "other server names are not supported"),
];

/// Reads the current context. All users and clusters are judged, so that another context cannot be dangerous later.
pub(crate) fn read(text: &[u8], insecure: bool) -> Result<Kubeconfig, String> {
    let parsed = bareboat_wire::yaml::parse(text).map_err(|_| "it is not YAML".to_owned())?;
    let file = parsed.value;
    judge(&file, "users", "user", &REFUSED_OF_USERS)?;
    judge(&file, "clusters", "cluster", &REFUSED_OF_CLUSTERS)?;
    let text = |from: &Value, key: &str| from.get(key).and_then(Value::as_str).map(str::to_owned);
    let current = text(&file, "current-context").filter(|name| !name.is_empty());
    let current = current.ok_or("it has no current context")?;
    let context = entry(&file, "contexts", "context", &current)?;
    let cluster = text(context, "cluster").unwrap_or_default();
    let cluster = entry(&file, "clusters", "cluster", &cluster)?;
    let none = Value::object();
    let user = match text(context, "user").filter(|name| !name.is_empty()) {
        Some(name) => entry(&file, "users", "user", &name)?,
        None => &none,
    };
    if cluster.get("insecure-skip-tls-verify") == Some(&Value::Bool(true)) && !insecure {
        return Err(
            "insecure-skip-tls-verify needs the annotation fleet.bareboat.dev/insecure: \"true\""
                .to_owned(),
        );
    }
    let server = text(cluster, "server").ok_or("the cluster has no server")?;
    if !server.starts_with("https://") {
        return Err("members are reached by https only".to_owned());
    }
    let chain = pem(user, "client-certificate-data")?;
    let key = pem(user, "client-key-data")?;
    let certificate = match (chain, key) {
        (Some(chain), Some(key)) => Some((chain, key)),
        (None, None) => None,
        _ => return Err("a client certificate needs its key".to_owned()),
    };
    Ok(Kubeconfig {
        server,
        authorities: pem(cluster, "certificate-authority-data")?,
        token: text(user, "token").filter(|token| !token.is_empty()),
        certificate,
    })
}

fn judge(file: &Value, list: &str, key: &str, refused: &[(&str, &str)]) -> Result<(), String> {
    let entries = file.get(list).and_then(Value::as_array).unwrap_or_default();
    for entry in entries {
        let Some(content) = entry.get(key) else {
            continue;
        };
        for (field, why) in refused {
            let value = content.get(field);
            let is_set = value.is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
            if is_set {
                return Err(format!("{list} may not have {field}: {why}"));
            }
        }
    }
    Ok(())
}

fn entry<'f>(file: &'f Value, list: &str, key: &str, name: &str) -> Result<&'f Value, String> {
    let entries = file.get(list).and_then(Value::as_array).unwrap_or_default();
    let mut named = entries
        .iter()
        .filter(|entry| entry.get("name").and_then(Value::as_str) == Some(name));
    let found = named.next().and_then(|entry| entry.get(key));
    found.ok_or_else(|| format!("it has no {key} {name:?}"))
}

fn pem(from: &Value, key: &str) -> Result<Option<String>, String> {
    let Some(text) = from
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
    else {
        return Ok(None);
    };
    let bytes = BASE64_STANDARD.decode(text.trim()).ok();
    let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    decoded
        .map(Some)
        .ok_or_else(|| format!("{key} is not base64 of PEM"))
}
