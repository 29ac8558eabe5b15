//! The identity that all servers of a shared store have in common: certificate authorities, the key of service account tokens,
//! encryption keys. The store has their fingerprints, never the keys.
//!
//! A server with other keys refuses to start: what one server signs or encrypts, the others could not verify or read. Keys may
//! change one server at a time: each must know the keys that the others use, not use them itself.

use crate::settings::Settings;
use anyhow::{Context as _, Result, bail};
use bareboat::api::Value;
use bareboat::encryption::Config;
use bareboat::prelude::*;
use bareboat::service_accounts::ServiceAccounts;
use bareboat::storage::{CommitError, Write};
use bareboat_certificates::pem;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// Where the store keeps fingerprints. No API serves it.
const RESOURCE: &str = "bareboat/identity";
/// How often a record is written that another server writes at the same time.
const TRIES: usize = 10;
/// How often a running server looks at its keys and those of others.
const AGAIN: Duration = Duration::from_secs(10);

/// The fingerprints of one class of keys.
struct Class {
    name: &'static str,
    /// The keys that this server signs or encrypts with.
    used: BTreeSet<String>,
    /// The keys that it verifies or decrypts with.
    known: BTreeSet<String>,
    /// What to do if a key is not known.
    advice: &'static str,
}

/// The keys of this server.
pub(crate) struct Keys<'a> {
    /// The CA that signs, in PEM.
    pub(crate) ca: &'a str,
    /// The CAs of clients, in PEM.
    pub(crate) client_cas: &'a str,
    /// The CA of the client certificate for other API servers, in PEM.
    pub(crate) front_proxy_ca: &'a str,
    /// The keys of service account tokens.
    pub(crate) accounts: &'a ServiceAccounts,
}

/// Compares the keys of this server with those that others of the same store use, and notes its own.
pub(crate) async fn check(store: &Store, settings: &Settings, keys: Keys<'_>) -> Result<()> {
    if store.is_shared() {
        for class in &classes(settings, keys)? {
            note(store, class, settings.storage.replace_identity).await?;
        }
    }
    Ok(())
}

/// Notes keys that change while the server runs, and logs keys of other servers that this one does not know. It ends with
/// the returned task.
pub(crate) fn follow(
    store: &Store,
    settings: &Settings,
    front_proxy_ca: &str,
    accounts: &ServiceAccounts,
) -> Option<Following> {
    if !store.is_shared() {
        return None;
    }
    let (store, settings) = (store.clone(), settings.clone());
    let (front_proxy_ca, accounts) = (front_proxy_ca.to_owned(), accounts.clone());
    Some(Following(tokio::spawn(async move {
        let (mut told, mut noted) = (String::new(), BTreeMap::new());
        loop {
            let keys = (&*front_proxy_ca, &accounts);
            let looked = look(&store, &settings, keys, &mut noted).await;
            let problem = looked
                .err()
                .map_or(String::new(), |error| format!("{error:#}"));
            if !problem.is_empty() && problem != told {
                tracing::error!(
                    error = problem,
                    "the keys of this server and of others differ"
                );
            }
            told = problem;
            tokio::time::sleep(AGAIN).await;
        }
    })))
}

/// A task that ends when this is dropped.
pub(crate) struct Following(tokio::task::JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Compares the keys as they are in the files now, and notes those that changed since the last time. Servers that use
/// different keys in the meantime do not overwrite each other's notes again and again.
async fn look(
    store: &Store,
    settings: &Settings,
    (front_proxy_ca, accounts): (&str, &ServiceAccounts),
    noted: &mut BTreeMap<&'static str, BTreeSet<String>>,
) -> Result<()> {
    let files = crate::reloads::client_ca_files(settings);
    let read = |path: &std::path::PathBuf| {
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let client_cas = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    let own = crate::certificates::folder(&settings.store.data_dir).join("ca.crt");
    let keys = Keys {
        ca: &read(&own)?,
        client_cas: &client_cas.join("\n"),
        front_proxy_ca,
        accounts,
    };
    for class in &classes(settings, keys)? {
        match noted.insert(class.name, class.used.clone()) {
            Some(before) if before != class.used => note(store, class, false).await?,
            _ => compare(class, &stored(store, class)?)?,
        }
    }
    Ok(())
}

fn classes(settings: &Settings, keys: Keys<'_>) -> Result<[Class; 4]> {
    let (signing, verifying) = keys.accounts.key_ids();
    let ca = certificates(keys.ca);
    let front_proxy = certificates(keys.front_proxy_ca);
    Ok([
        Class {
            name: "ca",
            known: certificates(keys.client_cas).union(&ca).cloned().collect(),
            used: ca,
            advice: "certificates/ca.crt and ca.key; or trust the other CA with --client-ca",
        },
        Class {
            name: "front-proxy-ca",
            known: front_proxy.clone(),
            used: front_proxy,
            advice: "certificates/front-proxy-ca.crt and front-proxy-ca.key",
        },
        Class {
            name: "service-accounts",
            used: BTreeSet::from([signing]),
            known: verifying.into_iter().collect(),
            advice: "certificates/service-accounts.key; or accept the other key with --service-account-key-file",
        },
        encryption(settings)?,
    ])
}

/// The fingerprints of certificates in PEM.
fn certificates(text: &str) -> BTreeSet<String> {
    let hex = |der: Vec<u8>| -> String {
        let hash = Sha256::digest(der);
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    pem::certificates(text).into_iter().map(hex).collect()
}

/// The fingerprints of encryption keys.
fn encryption(settings: &Settings) -> Result<Class> {
    let mut class = Class {
        name: "encryption",
        used: BTreeSet::new(),
        known: BTreeSet::new(),
        advice: "--encryption-provider-config with the same keys",
    };
    let Some(path) = &settings.storage.encryption_provider_config else {
        return Ok(class);
    };
    let unusable = || {
        let path = path.display();
        format!("the encryption configuration {path} cannot be used")
    };
    let text = fs::read_to_string(path).with_context(unusable)?;
    for rule in Config::parse(&text).with_context(unusable)?.rules {
        let first = rule.providers.first();
        let first = first.and_then(|first| first.fingerprints().into_iter().next());
        class.used.extend(first);
        let all = rule.providers.iter();
        class.known.extend(all.flat_map(|all| all.fingerprints()));
    }
    Ok(class)
}

/// Returns the fingerprints in the store.
fn stored(store: &Store, class: &Class) -> Result<BTreeSet<String>> {
    let found = store.resource(RESOURCE).get(class.name);
    let stored = found.as_ref().map(|entry| read(entry.json()));
    Ok(stored.transpose()?.unwrap_or_default())
}

/// Fails if other servers use a key that this one does not know.
fn compare(class: &Class, stored: &BTreeSet<String>) -> Result<()> {
    let Some(other) = stored.difference(&class.known).next() else {
        return Ok(());
    };
    bail!(
        "other servers of this store use another key for {} ({other}), which this server does not know; give all \
         servers the same {}. bareboat init-shared makes keys for all of them; if the others and their keys are \
         gone, start with --replace-identity once",
        class.name,
        class.advice
    );
}

/// Compares one class with the record in the store, and writes the record if it is another one.
async fn note(store: &Store, class: &Class, replace: bool) -> Result<()> {
    let resource = store.resource(RESOURCE);
    for _ in 0..TRIES {
        let found = resource.get(class.name);
        let stored = stored(store, class)?;
        if !replace {
            compare(class, &stored)?;
        }
        if stored == class.used {
            return Ok(());
        }
        let value = written(class);
        let write = match &found {
            Some(entry) => Write::replace(&resource, entry, value.into()),
            None => Write::create(&resource, class.name, value.into()),
        };
        match store.commit(write).await {
            Ok(_) => return Ok(()),
            // Another server was faster.
            Err(
                CommitError::Conflict { .. }
                | CommitError::AlreadyExists { .. }
                | CommitError::NotFound,
            ) => {}
            Err(error) => return Err(error).context("the fingerprints of keys cannot be written"),
        }
    }
    bail!("other servers change the keys of this store all the time")
}

/// The record of a class. The type and the metadata of a stored object come first.
fn written(class: &Class) -> String {
    let used = class.used.iter().map(|one| Value::from(one.as_str()));
    format!(
        r#"{{"apiVersion":"bareboat/v1","kind":"Identity","metadata":{{"name":"{}"}},"fingerprints":{}}}"#,
        class.name,
        Value::Array(used.collect())
    )
}

fn read(json: &[u8]) -> Result<BTreeSet<String>> {
    let parsed = bareboat_wire::json::parse(json).context("the stored fingerprints are damaged")?;
    let all = parsed.value.get("fingerprints").and_then(Value::as_array);
    let all = all.into_iter().flatten();
    Ok(all
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect())
}
