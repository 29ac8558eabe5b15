//! Keys of service account tokens: one in the data directory signs; its predecessors and additional ones verify.

use crate::certificates::{folder, now, write_private};
use anyhow::{Context, Result};
use bareboat_certificates::KeyPair;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File name of the signing key in the certificates directory.
pub(crate) const FILE: &str = "service-accounts.key";
/// File name of the keys that signed before.
pub(crate) const RETIRED: &str = "service-accounts.retired.pem";

const HEADER: &str =
    "# Public keys that sign no tokens any more. Each checks tokens until the time above it.\n";
const UNTIL: &str = "# until ";

/// Keys in PEM.
pub(crate) struct AccountKeys {
    /// Signs new tokens.
    pub(crate) signing: String,
    /// Additional keys that verify tokens.
    pub(crate) others: Vec<String>,
}

/// The files with keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyFiles {
    signing: PathBuf,
    /// Whether the signing key is that of the data directory, which the first start makes.
    own: bool,
    others: Vec<PathBuf>,
}

impl KeyFiles {
    /// Returns the files of the settings.
    pub(crate) fn new(data: &Path, signing: Option<&Path>, others: &[PathBuf]) -> KeyFiles {
        let own = folder(data).join(FILE);
        KeyFiles {
            signing: signing.map_or(own, Path::to_owned),
            own: signing.is_none(),
            others: others.to_vec(),
        }
    }

    /// Returns all files, to watch their changes.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let mut all = vec![self.signing.clone()];
        all.extend(self.others.iter().cloned());
        if self.own {
            all.push(self.signing.with_file_name(RETIRED));
        }
        all
    }

    /// Reads the keys. Makes the data directory's own key if it does not exist.
    pub(crate) fn read(&self) -> Result<AccountKeys> {
        let read = |path: &Path| {
            fs::read_to_string(path)
                .with_context(|| format!("the key file {} cannot be read", path.display()))
        };
        let others = self.others.iter().map(|path| read(path));
        let mut others: Vec<String> = others.collect::<Result<_>>()?;
        if !self.own {
            let signing = read(&self.signing)?;
            return Ok(AccountKeys { signing, others });
        }
        let signing = match fs::read_to_string(&self.signing) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = generate()?;
                write_private(&self.signing, &text)?;
                text
            }
            // Never replaced silently: all tokens would become invalid.
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "the key of service account tokens {} cannot be read; restore it from a backup, or \
                         delete it to start with a new one, which ends all tokens",
                        self.signing.display()
                    )
                });
            }
        };
        let path = self.signing.with_file_name(RETIRED);
        if !path.exists()
            && let Err(error) = write_private(&path, HEADER)
        {
            tracing::warn!(error = %format!("{error:#}"), "the file of retired keys could not be made");
        }
        let retired = read_retired(&path)?;
        others.extend(retired.into_iter().map(|key| key.pem));
        Ok(AccountKeys { signing, others })
    }
}

fn generate() -> Result<String> {
    let key = KeyPair::generate().context("a key cannot be made")?;
    Ok(key.to_pkcs8_pem())
}

/// A key that no longer signs tokens, but still verifies them.
pub(crate) struct Retired {
    /// The public key in PEM.
    pub(crate) pem: String,
    /// When the key stops verifying tokens, in seconds since 1970.
    pub(crate) until: i64,
}

/// Reads the keys that signed before and still verify.
pub(crate) fn read_retired(path: &Path) -> Result<Vec<Retired>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let mut keys = Vec::new();
    let mut until = None;
    let mut block: Option<String> = None;
    for line in text.lines() {
        if let Some(time) = line.strip_prefix(UNTIL) {
            let time: jiff::Timestamp = time
                .trim()
                .parse()
                .with_context(|| format!("{}: {:?} is not a time", path.display(), time.trim()))?;
            until = Some(time.as_second());
        }
        if line.starts_with("-----BEGIN ") {
            block = Some(String::new());
        }
        if let Some(text) = &mut block {
            text.push_str(line);
            text.push('\n');
        }
        if line.starts_with("-----END ")
            && let Some(pem) = block.take()
        {
            // A key without a time was added by hand, and stays until it is removed by hand.
            let until = until.take().unwrap_or(i64::MAX);
            keys.push(Retired { pem, until });
        }
    }
    keys.retain(|key| key.until > now());
    Ok(keys)
}

/// Makes a new signing key. The old one verifies tokens for so long.
pub(crate) fn rotate(data: &Path, keep: Duration) -> Result<()> {
    let dir = folder(data);
    let signing = dir.join(FILE);
    let before = fs::read_to_string(&signing).with_context(|| {
        format!(
            "{} cannot be read; keys that --service-account-signing-key-file names are rotated by writing those files",
            signing.display()
        )
    })?;
    let before = KeyPair::from_pem(&before)
        .with_context(|| format!("{} cannot be used", signing.display()))?;
    let path = dir.join(RETIRED);
    let mut retired = read_retired(&path)?;
    let seconds = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
    retired.push(Retired {
        pem: before.public_pem(),
        until: now().saturating_add(seconds),
    });
    let mut text = HEADER.to_owned();
    for key in &retired {
        if let Ok(time) = jiff::Timestamp::from_second(key.until) {
            text.push_str(&format!("{UNTIL}{time}\n"));
        }
        text.push_str(&key.pem);
    }
    // The old key must be accepted before the new one signs.
    write_private(&path, &text)?;
    write_private(&signing, &generate()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_rotated_key_checks_until_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(folder(dir.path())).unwrap();
        let files = KeyFiles::new(dir.path(), None, &[]);
        let first = files.read().unwrap();
        assert!(first.others.is_empty());
        rotate(dir.path(), Duration::from_secs(3600)).unwrap();
        let second = files.read().unwrap();
        assert_ne!(first.signing, second.signing);
        let public = KeyPair::from_pem(&first.signing).unwrap().public_pem();
        assert_eq!(second.others, [public]);
        rotate(dir.path(), Duration::ZERO).unwrap();
        assert_eq!(files.read().unwrap().others, second.others);
        assert!(files.all().iter().all(|path| path.exists()));
    }

    #[test]
    fn a_key_that_is_no_file_is_an_error_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder(dir.path()).join(FILE)).unwrap();
        let files = KeyFiles::new(dir.path(), None, &[]);
        let error = files.read().err().unwrap();
        assert!(format!("{error:#}").contains("backup"), "{error:#}");
        assert!(rotate(dir.path(), Duration::ZERO).is_err());
    }
}
