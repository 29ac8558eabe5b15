//! KMS v2: a plug-in encrypts a seed, and the keys of values are derived from the seed.
//!
//! The seed is used until the plug-in reports another key. So encryption never waits for the plug-in; decryption waits
//! once for each seed. Answers of a plug-in are not trusted: their sizes are limited, and they may be late or absent.

mod client;
pub(crate) mod messages;

use crate::ciphers::{derived_open, derived_seal, gcm_open, random};
use client::{Client, Connection, Encrypted};
use messages::EncryptedObject;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The interval of status calls to a plug-in.
const POLL: Duration = Duration::from_secs(60);
/// The interval of status calls while a plug-in fails.
const POLL_FAILING: Duration = Duration::from_secs(10);
/// The maximum number of decrypted seeds that are kept.
const REMEMBERED: usize = 1000;
/// How often a plug-in is called at the start, until it answers.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// The reason why a KMS plug-in could not be used. Never contains key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KmsError {
    /// The plug-in did not answer: the socket cannot be opened, or the call failed. Contains the error text.
    #[error("the plug-in cannot be reached: {0}")]
    Unreachable(String),
    /// The plug-in answered with an error status.
    #[error("the plug-in answered with gRPC status {code}: {message}")]
    Refused {
        /// The gRPC status code as text, or `none` if the answer has no code.
        code: String,
        /// The message of the gRPC status.
        message: String,
    },
    /// The answer of the plug-in is not valid. Contains the reason.
    #[error("the answer of the plug-in cannot be used: {0}")]
    BadAnswer(&'static str),
    /// The plug-in reports that it is not healthy. Contains the health text of its answer.
    #[error("the plug-in is not healthy: {0}")]
    Unhealthy(String),
    /// The value does not decrypt with the key that the plug-in returned.
    #[error("the value does not decrypt")]
    Failed,
}

/// The health of a KMS plug-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsHealth {
    /// The name of the plug-in in the configuration.
    pub name: String,
    /// The error of the last attempt; `None` if the plug-in works.
    pub problem: Option<KmsError>,
}

/// A seed from which keys are derived.
struct Seed {
    secret: [u8; 32],
    encrypted: Encrypted,
}

/// Decrypted seeds and keys, by their encrypted form and the id of the plug-in's key.
type Secrets = HashMap<(Vec<u8>, String), Arc<Vec<u8>>>;

/// A KMS plug-in: its client, the seed of new keys, and decrypted seeds.
pub(crate) struct Kms {
    name: String,
    client: Client,
    seed: RwLock<Arc<Seed>>,
    known: Mutex<Secrets>,
    problem: Mutex<Option<KmsError>>,
}

impl Kms {
    /// Connects to a plug-in, and lets it encrypt the first seed.
    pub(crate) fn connect(
        name: &str,
        socket: &Path,
        timeout: Duration,
    ) -> Result<Arc<Kms>, KmsError> {
        let client = Client::new(socket.to_owned(), timeout)
            .map_err(|error| KmsError::Unreachable(error.to_string()))?;
        let connection = client.connection();
        let seed = client.wait(async move {
            let mut tries = 0;
            loop {
                tries += 1;
                match first_seed(&connection).await {
                    // The plug-in may have been started at the same time as this server.
                    Err(_) if tries < TRIES => tokio::time::sleep(BETWEEN_TRIES).await,
                    outcome => return outcome,
                }
            }
        })?;
        let kms = Arc::new(Kms {
            name: name.to_owned(),
            client,
            seed: RwLock::new(Arc::new(seed)),
            known: Mutex::default(),
            problem: Mutex::new(None),
        });
        let connection = kms.client.connection();
        kms.client.spawn(poll(Arc::downgrade(&kms), connection));
        Ok(kms)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn health(&self) -> KmsHealth {
        KmsHealth {
            name: self.name.clone(),
            problem: self.problem.lock().clone(),
        }
    }

    /// Encrypts a value and appends the result.
    pub(crate) fn seal(
        &self,
        plain: &[u8],
        place: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), KmsError> {
        let seed = self.seed.read().clone();
        let mut object = EncryptedObject {
            key_id: seed.encrypted.key_id.clone(),
            source: seed.encrypted.ciphertext.clone(),
            annotations: seed.encrypted.annotations.clone(),
            source_type: 1,
            ..EncryptedObject::default()
        };
        derived_seal(&seed.secret, plain, place, &mut object.data).map_err(|_| KmsError::Failed)?;
        object.write(out);
        Ok(())
    }

    /// Decrypts the bytes after the prefix. Calls the plug-in for a seed that is not cached.
    pub(crate) fn open(&self, stored: &[u8], place: &[u8]) -> Result<Vec<u8>, KmsError> {
        let object = EncryptedObject::read(stored).ok_or(KmsError::Failed)?;
        let secret = self.secret(&object)?;
        let opened = match object.source_type {
            0 => gcm_open(&secret, &object.data, place),
            1 => derived_open(&secret, &object.data, place),
            _ => return Err(KmsError::Failed),
        };
        opened.map_err(|_| KmsError::Failed)
    }

    /// Returns whether a value is encrypted under the plug-in's current key.
    pub(crate) fn is_current(&self, stored: &[u8]) -> bool {
        let current = self.seed.read().clone();
        EncryptedObject::read(stored).is_some_and(|object| {
            object.source_type == 1 && object.key_id == current.encrypted.key_id
        })
    }

    fn secret(&self, object: &EncryptedObject) -> Result<Arc<Vec<u8>>, KmsError> {
        let seed = self.seed.read().clone();
        if seed.encrypted.ciphertext == object.source && seed.encrypted.key_id == object.key_id {
            return Ok(Arc::new(seed.secret.to_vec()));
        }
        let place = (object.source.clone(), object.key_id.clone());
        if let Some(secret) = self.known.lock().get(&place) {
            return Ok(secret.clone());
        }
        let encrypted = Encrypted {
            ciphertext: object.source.clone(),
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let connection = self.client.connection();
        let asked = Instant::now();
        let secret = self
            .client
            .wait(async move { connection.decrypt(&encrypted, &uid()).await })?;
        tracing::debug!(plug_in = %self.name, elapsed = ?asked.elapsed(), "a seed was decrypted");
        let secret = Arc::new(secret);
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(place, secret.clone());
        Ok(secret)
    }
}

fn uid() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn checked_key_id(connection: &Connection) -> Result<String, KmsError> {
    let status = connection.status().await?;
    if !matches!(status.version.as_str(), "v2" | "v2beta1") {
        return Err(KmsError::BadAnswer("the version is not v2"));
    }
    match status.healthz.as_str() {
        "ok" => Ok(status.key_id),
        other => Err(KmsError::Unhealthy(other.chars().take(200).collect())),
    }
}

async fn first_seed(connection: &Connection) -> Result<Seed, KmsError> {
    checked_key_id(connection).await?;
    new_seed(connection).await
}

async fn new_seed(connection: &Connection) -> Result<Seed, KmsError> {
    let secret: [u8; 32] = random().map_err(|_| KmsError::Failed)?;
    let encrypted = connection.encrypt(&secret, &uid()).await?;
    Ok(Seed { secret, encrypted })
}

/// Checks the status of a plug-in periodically. When the plug-in reports another key, creates a new seed for later
/// values.
async fn poll(kms: Weak<Kms>, connection: Arc<Connection>) {
    let mut failing = false;
    loop {
        tokio::time::sleep(if failing { POLL_FAILING } else { POLL }).await;
        let Some(current) = kms.upgrade().map(|kms| kms.seed.read().clone()) else {
            return;
        };
        let outcome = async {
            let id = checked_key_id(&connection).await?;
            match id == current.encrypted.key_id {
                true => Ok(None),
                false => new_seed(&connection).await.map(Some),
            }
        }
        .await;
        let Some(kms) = kms.upgrade() else {
            return;
        };
        failing = outcome.is_err();
        match outcome {
            Ok(seed) => {
                *kms.problem.lock() = None;
                if let Some(seed) = seed {
                    tracing::info!(plug_in = %kms.name, "the key of the plug-in changed");
                    *kms.seed.write() = Arc::new(seed);
                }
            }
            Err(error) => {
                tracing::error!(plug_in = %kms.name, %error, "a KMS plug-in does not work");
                *kms.problem.lock() = Some(error);
            }
        }
    }
}
