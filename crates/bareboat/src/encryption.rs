//! Encryption at rest: a backend that wraps another one.

pub use bareboat_encryption::{
    Config, ConfigError, EncryptedBackend, KmsError, KmsHealth, OpenError, Outdated, Rules,
    SealError, SetupError,
};
