//! The keys of service account tokens: one in the data directory signs, others may be given to check with.

use crate::certificates::write_private;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the signing key in the folder of certificates.
const FILE: &str = "service-accounts.key";

/// Keys in PEM.
pub(crate) struct AccountKeys {
    /// Signs new tokens.
    pub(crate) signing: String,
    /// Checks tokens beside the signing key.
    pub(crate) others: Vec<String>,
}

/// Reads the keys. Without a key of the operator's own, the data directory has one; it is made at the first start.
pub(crate) fn ensure(
    data: &Path,
    signing: Option<&Path>,
    others: &[PathBuf],
) -> Result<AccountKeys> {
    let read = |path: &Path| {
        fs::read_to_string(path)
            .with_context(|| format!("the key file {} cannot be read", path.display()))
    };
    let others = others
        .iter()
        .map(|path| read(path))
        .collect::<Result<_>>()?;
    let signing = match signing {
        Some(path) => read(path)?,
        None => {
            let path = data.join("certificates").join(FILE);
            match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let pair = rcgen::KeyPair::generate().context("a key cannot be made")?;
                    let text = pair.serialize_pem();
                    write_private(&path, &text)?;
                    text
                }
                // Never replaced in silence: all tokens that are out would end.
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!(
                            "the key of service account tokens {} cannot be read; restore it from a backup, or \
                             delete it to start with a new one, which ends all tokens",
                            path.display()
                        )
                    });
                }
            }
        }
    };
    Ok(AccountKeys { signing, others })
}
