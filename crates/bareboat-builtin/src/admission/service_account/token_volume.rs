//! The volume `kube-api-access-…` with a token, the CA certificate and the namespace, mounted into all containers.

use super::{Fill, Reach};
use bareboat_api::{Object, Value, value};
use ring::rand::{SecureRandom as _, SystemRandom};

const PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The characters of generated names.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The token lifetime that kube-apiserver requests.
const EXPIRATION_SECONDS: i64 = 3607;

/// Adds the volume, and mounts it in every container that does not use this path.
pub(super) fn add(pod: &mut Object) {
    let volumes = pod.value().list(&["spec", "volumes"]);
    let known = volumes
        .iter()
        .map(|volume| volume.text(&["name"]))
        .find(|name| name.starts_with(PREFIX))
        .map(str::to_owned);
    let has_volume = known.is_some();
    let name = known.unwrap_or_else(|| format!("{PREFIX}{}", suffix()));
    let mount = value!({
        "name": (name.as_str()),
        "readOnly": true,
        "mountPath": MOUNT_PATH,
    });
    let spec = pod.map_mut().object_mut("spec");
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.each(list) {
            let mounts = container.entry_or_insert_with("volumeMounts", || Value::Array(vec![]));
            let Value::Array(mounts) = mounts else {
                continue;
            };
            if !mounts
                .iter()
                .any(|mount| mount.text(&["mountPath"]) == MOUNT_PATH)
            {
                mounts.push(mount.clone());
                mounted = true;
            }
        }
    }
    if !mounted || has_volume {
        return;
    }
    if let Value::Array(volumes) = spec.entry_or_insert_with("volumes", || Value::Array(vec![])) {
        volumes.push(value!({"name": name, "projected": (projection())}));
    }
}

fn projection() -> Value {
    value!({
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": EXPIRATION_SECONDS, "path": "token"}},
            {"configMap": {
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
                "name": "kube-root-ca.crt",
            }},
            {"downwardAPI": {"items": [{
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                "path": "namespace",
            }]}},
        ],
    })
}

/// Returns five random characters.
fn suffix() -> String {
    let mut bytes = [0; 5];
    // Without random numbers the name is still valid, since a pod has one such volume.
    let _ = SystemRandom::new().fill(&mut bytes);
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    bytes.iter().map(letter).collect()
}
