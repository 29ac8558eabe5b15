//! Compiled rules: which resources are encrypted with which providers and keys.
//!
//! An encrypted value begins with a prefix that names its format and its key. Prefixes of Bareboat begin with
//! `bareboat:enc:`, those of kube-apiserver with `k8s:enc:`.

use crate::ciphers::{
    cbc_open, derived_open, derived_seal, gcm_open, secretbox_open, secretbox_open_bare,
    secretbox_seal,
};
use crate::config::{Config, KeyConfig, Pattern, ProviderConfig};
use crate::kms::{Kms, KmsError, KmsHealth};
use bareboat_storage::{BoxError, Record, Value};
use std::sync::Arc;

const OWN: &[u8] = b"bareboat:enc:";
const FOREIGN: &[u8] = b"k8s:enc:";

/// The reason why the rules of a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A KMS plug-in does not work.
    #[error("the KMS plug-in {name} does not work")]
    Kms {
        /// The name of the plug-in in the configuration.
        name: String,
        /// The error of the plug-in.
        #[source]
        source: KmsError,
    },
}

/// The reason why a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The key of the value is not configured.
    #[error(
        "the value is encrypted with {how}, which is not configured for this resource; add this key to the providers in the \
         encryption configuration"
    )]
    NoKey {
        /// The provider and the name of the key.
        how: String,
    },
    /// The value is not encrypted, and the configuration does not allow plain values.
    #[error(
        "the value is not encrypted, and the provider identity is not configured for this resource; add identity as the last \
         provider until `bareboat migrate` has encrypted everything"
    )]
    Plain,
    /// The key is wrong, or the value was changed or moved.
    #[error(
        "the value does not decrypt with {how}: another key encrypted the value, or the value was changed or moved"
    )]
    WrongKey {
        /// The provider and the name of the key.
        how: String,
    },
    /// A KMS plug-in could not decrypt the key of the value.
    #[error("the KMS plug-in {name} did not decrypt the value")]
    Kms {
        /// The name of the plug-in in the configuration.
        name: String,
        /// The error of the plug-in.
        #[source]
        source: KmsError,
    },
}

/// The error for a value that could not be encrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a value could not be encrypted")]
pub struct SealError;

struct Key {
    name: String,
    secret: Vec<u8>,
}

enum Provider {
    AesGcm(Vec<Key>),
    AesCbc(Vec<Key>),
    Secretbox(Vec<Key>),
    Kms(Arc<Kms>),
    Identity,
}

struct Rule {
    patterns: Vec<Pattern>,
    providers: Vec<Provider>,
}

/// The compiled rules of a configuration: which providers and keys encrypt which resources.
#[derive(Default)]
pub struct Rules(Vec<Rule>);

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rules({})", self.0.len())
    }
}

/// A parsed prefix: the program that wrote the value, the provider, its version, the name of the key.
struct Label<'v> {
    own: bool,
    provider: &'v str,
    version: &'v str,
    name: &'v str,
    rest: &'v [u8],
}

impl<'v> Label<'v> {
    fn read(stored: &'v [u8]) -> Option<Label<'v>> {
        let own = stored.strip_prefix(OWN);
        let mut rest = own.or_else(|| stored.strip_prefix(FOREIGN))?;
        let mut word = || {
            let end = rest.iter().take(300).position(|&byte| byte == b':')?;
            let word = std::str::from_utf8(&rest[..end]).ok()?;
            rest = &rest[end + 1..];
            Some(word)
        };
        let (provider, version, name) = (word()?, word()?, word()?);
        Some(Label {
            own: own.is_some(),
            provider,
            version,
            name,
            rest,
        })
    }

    fn describe(&self) -> String {
        match self.provider {
            "kms" => format!("the KMS plug-in {:?}", self.name),
            provider => format!("the {provider} key {:?}", self.name),
        }
    }
}

/// Returns whether stored bytes are encrypted. An object that is not encrypted is JSON and begins with a brace.
pub(crate) fn is_encrypted(stored: &[u8]) -> bool {
    stored.starts_with(OWN) || stored.starts_with(FOREIGN)
}

/// Returns the prefix of an encrypted value, which names its key; empty for a plain value.
pub(crate) fn prefix(stored: &[u8]) -> &[u8] {
    let rest = Label::read(stored).map_or(stored.len(), |label| label.rest.len());
    match is_encrypted(stored) {
        true => &stored[..stored.len() - rest],
        false => &[],
    }
}

/// Returns the name of an object. The ciphertext is bound to it, so that a moved value does not decrypt.
fn place(resource: &str, key: &str) -> Vec<u8> {
    format!("{resource}/{key}").into_bytes()
}

impl Rules {
    /// Returns an empty set of rules: values are written without encryption, and encrypted values cannot be read.
    pub fn none() -> Rules {
        Rules::default()
    }

    /// Compiles a configuration. Connects to KMS plug-ins and blocks until they answer.
    pub fn new(config: &Config) -> Result<Rules, SetupError> {
        let mut rules = Vec::new();
        for rule in &config.rules {
            let providers = rule.providers.iter().map(Provider::new);
            rules.push(Rule {
                patterns: rule.resources.clone(),
                providers: providers.collect::<Result<_, _>>()?,
            });
        }
        Ok(Rules(rules))
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the health of each KMS plug-in.
    pub fn health(&self) -> Vec<KmsHealth> {
        let providers = self.0.iter().flat_map(|rule| &rule.providers);
        let plug_ins = providers.filter_map(|provider| match provider {
            Provider::Kms(kms) => Some(kms.health()),
            _ => None,
        });
        plug_ins.collect()
    }

    fn rule(&self, resource: &str) -> Option<&Rule> {
        let mut rules = self.0.iter();
        rules.find(|rule| {
            rule.patterns
                .iter()
                .any(|pattern| pattern.matches(resource))
        })
    }

    /// Returns the provider that encrypts `resource`; `None` if its values are stored plain.
    fn writer(&self, resource: &str) -> Option<&Provider> {
        let first = self.rule(resource)?.providers.first()?;
        match first {
            Provider::Identity => None,
            provider => Some(provider),
        }
    }

    /// Returns whether values of a resource are encrypted.
    pub(crate) fn encrypts(&self, resource: &str) -> bool {
        !self.0.is_empty() && self.writer(resource).is_some()
    }

    /// Encrypts a value; returns `None` if the value must be stored plain.
    pub fn seal(
        &self,
        resource: &str,
        key: &str,
        plain: &[u8],
    ) -> Result<Option<Vec<u8>>, SealError> {
        let Some(writer) = self.writer(resource) else {
            return Ok(None);
        };
        writer.seal(plain, &place(resource, key)).map(Some)
    }

    /// Decrypts stored bytes; returns `None` if they are plain.
    pub fn open(
        &self,
        resource: &str,
        key: &str,
        stored: &[u8],
    ) -> Result<Option<Vec<u8>>, OpenError> {
        let rule = self.rule(resource);
        if !is_encrypted(stored) {
            return match rule {
                Some(rule) if !rule.reads_plain() => Err(OpenError::Plain),
                _ => Ok(None),
            };
        }
        let unknown = || OpenError::NoKey {
            how: "an unknown provider".to_owned(),
        };
        let label = Label::read(stored).ok_or_else(unknown)?;
        let providers = rule.map_or(&[][..], |rule| &rule.providers);
        let place = place(resource, key);
        for provider in providers {
            if let Some(opened) = provider.open(&label, &place) {
                return opened.map(Some);
            }
        }
        Err(OpenError::NoKey {
            how: label.describe(),
        })
    }

    /// Returns whether stored bytes have the current format and key of the first provider.
    pub fn is_current(&self, resource: &str, stored: &[u8]) -> bool {
        match (self.writer(resource), Label::read(stored)) {
            (None, label) => label.is_none() && !is_encrypted(stored),
            (Some(provider), Some(label)) => provider.wrote(&label),
            (Some(_), None) => false,
        }
    }
}

impl Rules {
    /// Returns the stored value, encrypted again by the first provider; `None` if the value already has that provider's
    /// current format and key. Every value is decrypted, so that a missing key is noticed before the key is removed
    /// permanently.
    pub fn rewritten(&self, record: &Record) -> Result<Option<Value>, BoxError> {
        let Some(value) = record.value.as_ref().filter(|value| !value.is_damaged()) else {
            return Ok(None);
        };
        let stored = value.to_bytes();
        let plain = self.open(&record.resource, &record.key, &stored)?;
        if self.is_current(&record.resource, &stored) {
            return Ok(None);
        }
        let plain = plain.map_or(stored, Into::into);
        let sealed = self.seal(&record.resource, &record.key, &plain)?;
        Ok(Some(Value::new(sealed.map_or(plain, Into::into))))
    }
}

impl Rule {
    fn reads_plain(&self) -> bool {
        let mut providers = self.providers.iter();
        providers.any(|provider| matches!(provider, Provider::Identity))
    }
}

fn keys(configured: &[KeyConfig]) -> Vec<Key> {
    let keys = configured.iter().map(|key| Key {
        name: key.name.clone(),
        secret: key.secret.clone(),
    });
    keys.collect()
}

impl Provider {
    fn new(config: &ProviderConfig) -> Result<Provider, SetupError> {
        Ok(match config {
            ProviderConfig::AesGcm(configured) => Provider::AesGcm(keys(configured)),
            ProviderConfig::AesCbc(configured) => Provider::AesCbc(keys(configured)),
            ProviderConfig::Secretbox(configured) => Provider::Secretbox(keys(configured)),
            ProviderConfig::Kms {
                name,
                socket,
                timeout,
            } => {
                let kms = Kms::connect(name, socket, *timeout);
                Provider::Kms(kms.map_err(|source| SetupError::Kms {
                    name: name.clone(),
                    source,
                })?)
            }
            ProviderConfig::Identity => Provider::Identity,
        })
    }

    fn seal(&self, plain: &[u8], place: &[u8]) -> Result<Vec<u8>, SealError> {
        let begin = |kind: &str, name: &str| format!("bareboat:enc:{kind}:v1:{name}:").into_bytes();
        match self {
            Provider::AesGcm(keys) => {
                let key = keys.first().ok_or(SealError)?;
                let mut out = begin("aesgcm", &key.name);
                derived_seal(&key.secret, plain, place, &mut out).map_err(|_| SealError)?;
                Ok(out)
            }
            Provider::Secretbox(keys) => {
                let key = keys.first().ok_or(SealError)?;
                let mut out = begin("secretbox", &key.name);
                secretbox_seal(&key.secret, plain, place, &mut out).map_err(|_| SealError)?;
                Ok(out)
            }
            Provider::Kms(kms) => {
                let mut out = format!("k8s:enc:kms:v2:{}:", kms.name()).into_bytes();
                kms.seal(plain, place, &mut out).map_err(|_| SealError)?;
                Ok(out)
            }
            Provider::AesCbc(_) | Provider::Identity => Err(SealError),
        }
    }

    /// Decrypts the value; returns `None` if this provider does not have the key that `label` names.
    fn open(&self, label: &Label<'_>, place: &[u8]) -> Option<Result<Vec<u8>, OpenError>> {
        let named = |keys: &[Key]| -> Option<Vec<u8>> {
            let key = keys.iter().find(|key| key.name == label.name)?;
            Some(key.secret.clone())
        };
        let opened = match (self, label.own, label.provider, label.version) {
            (Provider::AesGcm(keys), true, "aesgcm", "v1") => {
                derived_open(&named(keys)?, label.rest, place)
            }
            (Provider::AesGcm(keys), false, "aesgcm", "v1") => {
                gcm_open(&named(keys)?, label.rest, place)
            }
            (Provider::AesCbc(keys), false, "aescbc", "v1") => cbc_open(&named(keys)?, label.rest),
            (Provider::Secretbox(keys), true, "secretbox", "v1") => {
                secretbox_open(&named(keys)?, label.rest, place)
            }
            (Provider::Secretbox(keys), false, "secretbox", "v1") => {
                secretbox_open_bare(&named(keys)?, label.rest)
            }
            (Provider::Kms(kms), false, "kms", "v2") if kms.name() == label.name => {
                return Some(kms.open(label.rest, place).map_err(|source| match source {
                    KmsError::Failed => OpenError::WrongKey {
                        how: label.describe(),
                    },
                    source => OpenError::Kms {
                        name: kms.name().to_owned(),
                        source,
                    },
                }));
            }
            _ => return None,
        };
        Some(opened.map_err(|_| OpenError::WrongKey {
            how: label.describe(),
        }))
    }

    /// Returns whether this provider writes values with such a label.
    fn wrote(&self, label: &Label<'_>) -> bool {
        let first = |keys: &[Key]| keys.first().is_some_and(|key| key.name == label.name);
        match (self, label.own, label.provider) {
            (Provider::AesGcm(keys), true, "aesgcm") => first(keys),
            (Provider::Secretbox(keys), true, "secretbox") => first(keys),
            (Provider::Kms(kms), false, "kms") => {
                kms.name() == label.name && kms.is_current(label.rest)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
