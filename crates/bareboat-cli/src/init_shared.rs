//! `bareboat init-shared`: makes the keys that all servers of a shared store have in common.

use crate::account_keys::KeyFiles;
use crate::certificates::{self, Authority, write_private};
use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::path::PathBuf;

/// The help of the command.
pub(crate) const ABOUT: &str = "\
Makes a directory with the keys that all servers of a shared store must have: the certificate authority, the one for front proxies, \
the key that signs service account tokens, and an encryption key for secrets. Copy it to every server as its data directory, \
before the first start. Each server then makes its own serving certificate and kubeconfig beside them.

The store has fingerprints of these keys, never the keys. A server with others refuses to start and says which.

Keep a copy of the directory in a safe place: a backup of the store has no keys.";

/// Examples of the command.
pub(crate) const AFTER: &str = "\
Examples:
  bareboat init-shared keys
  scp -rp keys server-1:/var/lib/bareboat        to every server, over an encrypted connection
  bareboat serve --data-dir /var/lib/bareboat --storage URL --encryption-provider-config /var/lib/bareboat/encryption.yaml

To replace the key of service accounts: bareboat certificates rotate service-accounts on one server; give its public key to the others \
with --service-account-key-file; then copy certificates/service-accounts.* to all of them.

Exit codes:
  0  the directory is complete
  1  it is not; it was said why
  2  the command line makes no sense";

/// Flags of `bareboat init-shared`.
#[derive(clap::Args, Debug)]
pub(crate) struct InitSharedFlags {
    /// The directory to make; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Makes the directory and says what to do next.
pub(crate) fn run(flags: &InitSharedFlags) -> Result<()> {
    let dir = &flags.dir;
    let unusable = || format!("the directory {} cannot be made", dir.display());
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; choose another directory", dir.display());
    }
    crate::serve::private_directory(dir).with_context(unusable)?;
    let folder = certificates::folder(dir);
    crate::serve::private_directory(&folder).with_context(unusable)?;
    Authority::ensure(&folder, "ca", "bareboat-ca")?;
    Authority::ensure(&folder, "front-proxy-ca", "bareboat-front-proxy-ca")?;
    KeyFiles::new(dir, None, &[]).read()?;
    write_private(&dir.join("encryption.yaml"), &encryption()?)?;
    let text = format!(
        "{0} has the keys of all servers of a store:\n\
         \x20 certificates/ca.*              the certificate authority\n\
         \x20 certificates/front-proxy-ca.*  the one for front proxies\n\
         \x20 certificates/service-accounts.key  signs service account tokens\n\
         \x20 encryption.yaml                encrypts secrets\n\n\
         Next, on every server:\n\
         \x20 copy {0} there as its data directory, such as /var/lib/bareboat\n\
         \x20 bareboat serve --data-dir /var/lib/bareboat --storage URL --encryption-provider-config /var/lib/bareboat/encryption.yaml\n",
        dir.display()
    );
    crate::print(text.as_bytes())
}

/// An EncryptionConfiguration with a new key.
fn encryption() -> Result<String> {
    let mut key = [0; 32];
    let random = rustls::crypto::ring::default_provider().secure_random;
    let filled = random.fill(&mut key);
    if filled.is_err() {
        bail!("the system gives no random numbers");
    }
    Ok(format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers:\n  - secretbox:\n      keys:\n      - name: key1\n        secret: {}\n  - identity: {{}}\n",
        STANDARD.encode(key)
    ))
}
