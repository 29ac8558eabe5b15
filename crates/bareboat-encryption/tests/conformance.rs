//! Runs the conformance suite of backends on a backend that encrypts everything.

use bareboat_encryption::{Config, EncryptedBackend, Rules};
use bareboat_storage::conformance::Site;
use bareboat_storage::{Backend, MemoryBackend};
use std::sync::Arc;

const CONFIG: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ['*.*']
  providers:
  - aesgcm: {keys: [{name: a, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
";

fn encrypted() -> impl Site {
    let inner = MemoryBackend::new();
    move || -> Arc<dyn Backend> {
        let config = Config::parse(CONFIG).expect("a valid configuration");
        let rules = Rules::new(&config).expect("no plug-in is needed");
        Arc::new(EncryptedBackend::new(Arc::new(inner.clone()), rules))
    }
}

bareboat_storage::conformance!(encrypted);
bareboat_storage::backup_conformance!(encrypted);
