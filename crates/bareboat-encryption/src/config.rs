//! Reads an EncryptionConfiguration. Invalid or unsupported settings are errors; there are no silent defaults.

use bareboat_api::Value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

const VERSION: &str = "apiserver.config.k8s.io/v1";
/// The default timeout of calls to a KMS plug-in.
const KMS_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum number of rules, of providers and of keys.
const MOST: usize = 1000;

/// The reason why a configuration cannot be used. Keys are never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{why}")]
pub struct ConfigError {
    path: String,
    why: String,
}

impl ConfigError {
    fn new(path: impl Into<String>, why: impl Into<String>) -> ConfigError {
        let path = path.into();
        let path = match path.is_empty() {
            true => path,
            false => format!("{path}: "),
        };
        ConfigError {
            path,
            why: why.into(),
        }
    }
}

/// A configuration. The first rule that matches a resource applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The rules, in the order in which they are tried.
    pub rules: Vec<RuleConfig>,
}

/// The providers that encrypt a set of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleConfig {
    /// The resources that the rule applies to.
    pub resources: Vec<Pattern>,
    /// The providers. The first provider encrypts; all of them decrypt.
    pub providers: Vec<ProviderConfig>,
}

/// A pattern of resources that a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The API group, empty for core; `None` matches all groups.
    group: Option<String>,
    /// The resource; `None` matches all resources of the group.
    resource: Option<String>,
}

/// A key with a name.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyConfig {
    /// The name of the key, which is stored with every value.
    pub name: String,
    pub(crate) secret: Vec<u8>,
}

impl std::fmt::Debug for KeyConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyConfig({})", self.name)
    }
}

/// A provider: a cipher with its keys, a KMS plug-in, or no encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderConfig {
    /// AES-GCM.
    AesGcm(Vec<KeyConfig>),
    /// AES-CBC, which is only used to decrypt.
    AesCbc(Vec<KeyConfig>),
    /// XSalsa20 and Poly1305.
    Secretbox(Vec<KeyConfig>),
    /// A KMS plug-in that holds the keys.
    Kms {
        /// The name of the plug-in, which is stored with every value.
        name: String,
        /// The Unix socket of the plug-in.
        socket: PathBuf,
        /// The timeout of calls to the plug-in.
        timeout: Duration,
    },
    /// No encryption.
    Identity,
}

impl ProviderConfig {
    /// Returns the fingerprints of the provider's keys, beginning with the key that encrypts. A fingerprint does not
    /// disclose the key.
    pub fn fingerprints(&self) -> Vec<String> {
        let (cipher, keys) = match self {
            Self::AesGcm(keys) => ("aesgcm", keys),
            Self::AesCbc(keys) => ("aescbc", keys),
            Self::Secretbox(keys) => ("secretbox", keys),
            Self::Kms { name, .. } => return vec![format!("kms:{name}")],
            Self::Identity => return Vec::new(),
        };
        let fingerprint = |key: &KeyConfig| {
            let mut text = b"bareboat encryption key ".to_vec();
            text.extend_from_slice(&key.secret);
            let hash = ring::digest::digest(&ring::digest::SHA256, &text);
            let hash = hash.as_ref()[..16].iter();
            let hex: String = hash.map(|byte| format!("{byte:02x}")).collect();
            format!("{cipher}:{}:{hex}", key.name)
        };
        keys.iter().map(fingerprint).collect()
    }
}

impl Pattern {
    /// Parses a pattern: `secrets`, `configmaps.`, `deployments.apps`, `*.apps`, `*.` or `*.*`.
    fn parse(text: &str) -> Result<Pattern, String> {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        if text == "*" {
            return Err(
                "use \"*.*\" for all resources, or \"*.\" for those of the core group".to_owned(),
            );
        }
        if resource.is_empty() || text.contains('/') || text.contains(char::is_whitespace) {
            return Err(format!(
                "{text:?} is not a resource such as secrets or deployments.apps"
            ));
        }
        if group == "*" && resource != "*" {
            return Err(format!(
                "{text:?} names a resource in all groups; name the group"
            ));
        }
        Ok(Pattern {
            group: (group != "*").then(|| group.to_owned()),
            resource: (resource != "*").then(|| resource.to_owned()),
        })
    }

    /// Returns whether the pattern matches a storage resource, such as `core/secrets` or `apps/deployments`.
    pub fn matches(&self, stored: &str) -> bool {
        let (group, resource) = stored.split_once('/').unwrap_or(("core", stored));
        let group = if group == "core" { "" } else { group };
        self.group.as_deref().is_none_or(|own| own == group)
            && self.resource.as_deref().is_none_or(|own| own == resource)
    }

    /// Returns whether the pattern matches everything that `other` matches.
    fn covers(&self, other: &Pattern) -> bool {
        (self.group.is_none() || self.group == other.group)
            && (self.resource.is_none() || self.resource == other.resource)
    }
}

impl Config {
    /// Parses a configuration in YAML or JSON.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let parsed = bareboat_wire::yaml::parse(text.as_bytes())
            .map_err(|error| ConfigError::new("", error.to_string()))?;
        if let Some(twice) = parsed.duplicates.first() {
            return Err(ConfigError::new("", twice.to_string()));
        }
        let value = parsed.value;
        for (key, expected) in [("apiVersion", VERSION), ("kind", "EncryptionConfiguration")] {
            if value.get(key).and_then(Value::as_str) != Some(expected) {
                return Err(ConfigError::new(key, format!("must be {expected}")));
            }
        }
        only(&value, "", &["apiVersion", "kind", "resources"])?;
        let mut config = Config::default();
        let mut names = HashSet::new();
        for (index, rule) in list(&value, "", "resources")?.iter().enumerate() {
            let path = format!("resources[{index}]");
            let rule = rule_of(rule, &path, &mut names)?;
            for pattern in &rule.resources {
                let earlier = config.rules.iter().flat_map(|rule| &rule.resources);
                if earlier.into_iter().any(|other| other.covers(pattern)) {
                    return Err(ConfigError::new(
                        path,
                        "an earlier rule already applies to these resources; put the more specific rule first",
                    ));
                }
            }
            config.rules.push(rule);
        }
        Ok(config)
    }
}

fn rule_of(
    value: &Value,
    path: &str,
    kms_names: &mut HashSet<String>,
) -> Result<RuleConfig, ConfigError> {
    only(value, path, &["resources", "providers"])?;
    let mut rule = RuleConfig {
        resources: Vec::new(),
        providers: Vec::new(),
    };
    for (index, name) in list(value, path, "resources")?.iter().enumerate() {
        let place = format!("{path}.resources[{index}]");
        let text = name.as_str().unwrap_or("");
        let pattern = Pattern::parse(text).map_err(|why| ConfigError::new(&place, why))?;
        if rule.resources.contains(&pattern) {
            return Err(ConfigError::new(place, format!("{text:?} is listed twice")));
        }
        rule.resources.push(pattern);
    }
    for (index, provider) in list(value, path, "providers")?.iter().enumerate() {
        let place = format!("{path}.providers[{index}]");
        rule.providers
            .push(provider_of(provider, &place, kms_names)?);
    }
    if let Some(ProviderConfig::AesCbc(_)) = rule.providers.first() {
        return Err(ConfigError::new(
            format!("{path}.providers[0]"),
            "aescbc does not detect a changed value, so it is not used to encrypt; put aesgcm, secretbox or kms first, and keep \
             aescbc after it to decrypt old values",
        ));
    }
    Ok(rule)
}

fn provider_of(
    value: &Value,
    path: &str,
    kms_names: &mut HashSet<String>,
) -> Result<ProviderConfig, ConfigError> {
    only(
        value,
        path,
        &["aesgcm", "aescbc", "secretbox", "kms", "identity"],
    )?;
    let members = value.as_object().into_iter().flat_map(|map| map.iter());
    let members: Vec<_> = members.filter(|(_, member)| !member.is_null()).collect();
    let [(kind, member)] = members.as_slice() else {
        return Err(ConfigError::new(
            path,
            "name exactly one of aesgcm, aescbc, secretbox, kms and identity",
        ));
    };
    let path = format!("{path}.{kind}");
    match *kind {
        "identity" => Ok(ProviderConfig::Identity),
        "kms" => kms_of(member, &path, kms_names),
        "aesgcm" => keys_of(member, &path, &[16, 32]).map(ProviderConfig::AesGcm),
        "aescbc" => keys_of(member, &path, &[16, 24, 32]).map(ProviderConfig::AesCbc),
        _ => keys_of(member, &path, &[32]).map(ProviderConfig::Secretbox),
    }
}

fn keys_of(value: &Value, path: &str, sizes: &[usize]) -> Result<Vec<KeyConfig>, ConfigError> {
    only(value, path, &["keys"])?;
    let mut keys: Vec<KeyConfig> = Vec::new();
    for (index, key) in list(value, path, "keys")?.iter().enumerate() {
        let path = format!("{path}.keys[{index}]");
        only(key, &path, &["name", "secret"])?;
        let text = |member: &str| key.get(member).and_then(Value::as_str).unwrap_or("");
        let name = text("name");
        if keys.iter().any(|other| other.name == name) {
            return Err(ConfigError::new(
                path,
                format!("the name {name:?} is used twice"),
            ));
        }
        let name =
            stored_name(name).map_err(|why| ConfigError::new(format!("{path}.name"), why))?;
        let secret = STANDARD.decode(text("secret").trim());
        let path = format!("{path}.secret");
        let secret = secret.map_err(|_| ConfigError::new(&path, "the key is not base64"))?;
        if !sizes.contains(&secret.len()) {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            return Err(ConfigError::new(
                path,
                format!(
                    "the key has {} bytes; it must have {}",
                    secret.len(),
                    sizes.join(" or ")
                ),
            ));
        }
        keys.push(KeyConfig { name, secret });
    }
    Ok(keys)
}

fn kms_of(
    value: &Value,
    path: &str,
    names: &mut HashSet<String>,
) -> Result<ProviderConfig, ConfigError> {
    only(
        value,
        path,
        &["apiVersion", "name", "endpoint", "timeout", "cachesize"],
    )?;
    let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or("");
    let at = |member: &str| format!("{path}.{member}");
    if text("apiVersion") != "v2" {
        return Err(ConfigError::new(
            at("apiVersion"),
            "only v2 is supported; kube-apiserver also has v1 disabled",
        ));
    }
    if value.get("cachesize").is_some_and(|size| !size.is_null()) {
        return Err(ConfigError::new(at("cachesize"), "v2 has no such setting"));
    }
    let name = stored_name(text("name")).map_err(|why| ConfigError::new(at("name"), why))?;
    if !names.insert(name.clone()) {
        return Err(ConfigError::new(
            at("name"),
            format!("the name {name:?} is used twice"),
        ));
    }
    let socket = text("endpoint").strip_prefix("unix://").unwrap_or("");
    if socket.is_empty() {
        return Err(ConfigError::new(
            at("endpoint"),
            "must be a socket such as unix:///var/run/kms.sock",
        ));
    }
    let timeout = match text("timeout") {
        "" => KMS_TIMEOUT,
        text => {
            let parsed = bareboat_api::time::parse_duration(text).ok();
            let parsed = parsed.and_then(|nanos| u64::try_from(nanos).ok());
            match parsed {
                Some(nanos) if nanos > 0 => Duration::from_nanos(nanos),
                _ => {
                    let why = format!("{text:?} is not a duration such as 3s");
                    return Err(ConfigError::new(at("timeout"), why));
                }
            }
        }
    };
    Ok(ProviderConfig::Kms {
        name,
        socket: PathBuf::from(socket),
        timeout,
    })
}

/// Checks a name that is stored with values, between colons.
fn stored_name(name: &str) -> Result<String, String> {
    match name.is_empty() || name.contains(':') || name.len() > 253 {
        true => Err(format!(
            "{name:?} must be a name of 1 to 253 bytes without a colon"
        )),
        false => Ok(name.to_owned()),
    }
}

/// Returns the list in `member`, which must not be empty.
fn list<'v>(value: &'v Value, path: &str, member: &str) -> Result<&'v [Value], ConfigError> {
    let path = match path.is_empty() {
        true => member.to_owned(),
        false => format!("{path}.{member}"),
    };
    match value.get(member).and_then(Value::as_array) {
        Some(items) if !items.is_empty() && items.len() <= MOST => Ok(items),
        Some(items) if items.len() > MOST => Err(ConfigError::new(path, "the list is too long")),
        _ => Err(ConfigError::new(
            path,
            "must be a list with at least one item",
        )),
    }
}

/// Fails if `value` has members that are not in `known`, so that misspelt members are noticed.
fn only(value: &Value, path: &str, known: &[&str]) -> Result<(), ConfigError> {
    let Some(map) = value.as_object() else {
        return Err(ConfigError::new(path, "must be an object"));
    };
    match map.iter().find(|(key, _)| !known.contains(key)) {
        Some((key, _)) => Err(ConfigError::new(path, format!("there is no field {key:?}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
