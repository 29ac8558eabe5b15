//! Encryption at rest.
//!
//! [`Config`] reads an EncryptionConfiguration (`apiserver.config.k8s.io/v1`). [`Rules`] decides which providers
//! encrypt which resources. [`EncryptedBackend`] wraps a storage engine: it encrypts values of chosen resources before
//! they are committed and decrypts them when they are read. So the log, its history and backups contain ciphertext, and
//! the store sees plain values. Values of resources without a rule are not copied.
//!
//! Every ciphertext is bound to the key of its object: a value that was copied to another key does not decrypt.
//!
//! ```no_run
//! # mod bareboat { pub mod encryption { pub use bareboat_encryption::*; } pub mod storage { pub use bareboat_storage::*; } }
//! use bareboat::encryption::{Config, EncryptedBackend, Rules};
//! use bareboat::storage::{MemoryBackend, Store, StoreOptions};
//! use std::sync::Arc;
//!
//! # fn open(text: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let rules = Rules::new(&Config::parse(text)?)?;
//! let backend = EncryptedBackend::new(Arc::new(MemoryBackend::new()), rules);
//! let store = Store::open(Arc::new(backend), StoreOptions::default())?;
//! # Ok(()) }
//! ```

mod backend;
mod ciphers;
mod config;
mod kms;
mod rules;

pub use backend::{EncryptedBackend, Outdated};
pub use config::{Config, ConfigError, KeyConfig, Pattern, ProviderConfig, RuleConfig};
pub use kms::{KmsError, KmsHealth};
pub use rules::{OpenError, Rules, SealError, SetupError};
