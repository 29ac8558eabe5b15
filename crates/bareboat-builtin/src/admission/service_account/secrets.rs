//! Restricts the Secrets of a pod to those of its account, if the account requires it.

use super::Reach;
use bareboat_api::{Object, Value};

/// The annotation of accounts whose pods may use only the secrets of the account.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

fn is_enforced(account: &Object) -> bool {
    let value = account.annotation(ENFORCE);
    value.is_some_and(|value| matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True"))
}

/// Checks the secrets of a new pod.
pub(super) fn check(pod: &Object, account: &Object) -> Result<(), String> {
    if !is_enforced(account) {
        return Ok(());
    }
    let allowed = |name: &str| names(account, "secrets").any(|known| known == name);
    let owner = account.name();
    for volume in pod.value().list(&["spec", "volumes"]) {
        let name = volume.text(&["secret", "secretName"]);
        if volume.has(&["secret"]) && !allowed(name) {
            return Err(format!(
                "volume with secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
            ));
        }
    }
    check_containers(pod, account, "initContainers", "init container")?;
    check_containers(pod, account, "containers", "container")?;
    let pulled = pod.value().list(&["spec", "imagePullSecrets"]);
    for (index, secret) in pulled.iter().enumerate() {
        let name = secret.text(&["name"]);
        if !names(account, "imagePullSecrets").any(|known| known == name) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{name}\" is not allowed because service account {owner} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// Checks the secrets of ephemeral containers.
pub(super) fn check_ephemeral(pod: &Object, account: &Object) -> Result<(), String> {
    match is_enforced(account) {
        true => check_containers(pod, account, "ephemeralContainers", "ephemeral container"),
        false => Ok(()),
    }
}

fn check_containers(pod: &Object, account: &Object, list: &str, what: &str) -> Result<(), String> {
    let allowed = |name: &str| names(account, "secrets").any(|known| known == name);
    let owner = account.name();
    for container in pod.value().list(&["spec", list]) {
        let own = container.text(&["name"]);
        for variable in container.list(&["env"]) {
            let name = variable.text(&["valueFrom", "secretKeyRef", "name"]);
            if variable.has(&["valueFrom", "secretKeyRef"]) && !allowed(name) {
                let variable = variable.text(&["name"]);
                return Err(format!(
                    "{what} {own} with envVar {variable} referencing secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
                ));
            }
        }
        for source in container.list(&["envFrom"]) {
            let name = source.text(&["secretRef", "name"]);
            if source.has(&["secretRef"]) && !allowed(name) {
                return Err(format!(
                    "{what} {own} with envFrom referencing secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that a mirror pod uses no account and no secrets.
pub(super) fn check_mirror(pod: &Object) -> Result<(), String> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    if !spec.text(&["serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let containers = ["initContainers", "containers", "ephemeralContainers"];
    let mut containers = containers.iter().flat_map(|list| spec.list(&[list]));
    let uses = |container: &Value| {
        let env = container.list(&["env"]).iter();
        let from = container.list(&["envFrom"]).iter();
        env.clone()
            .any(|variable| variable.has(&["valueFrom", "secretKeyRef"]))
            || from.clone().any(|source| source.has(&["secretRef"]))
    };
    let mounts = |volume: &Value| volume.has(&["secret"]) || projects(volume, "secret");
    if !spec.list(&["imagePullSecrets"]).is_empty()
        || containers.any(uses)
        || spec.list(&["volumes"]).iter().any(mounts)
    {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let token = |volume: &Value| projects(volume, "serviceAccountToken");
    match spec.list(&["volumes"]).iter().any(token) {
        true => Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned()),
        false => Ok(()),
    }
}

fn projects(volume: &Value, source: &str) -> bool {
    let sources = volume.list(&["projected", "sources"]);
    sources.iter().any(|projection| projection.has(&[source]))
}

fn names<'a>(account: &'a Object, list: &str) -> impl Iterator<Item = &'a str> {
    let list = account.get(list).and_then(Value::as_array).unwrap_or(&[]);
    list.iter().map(|reference| reference.text(&["name"]))
}
