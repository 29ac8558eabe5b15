//! The service account of a pod: the default account, the volume with a token, and the secrets it may use.
//!
//! This plug-in only adds the token volume; tokens are checked by the authenticator.
// Upstream: plugin/pkg/admission/serviceaccount.

mod secrets;
mod token_volume;

use super::refuse;
use crate::reach::{Fill, Reach};
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use std::time::Duration;

/// The storage resource of service accounts.
const ACCOUNTS: &str = "core/serviceaccounts";
/// The account of pods that name no account.
const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The wait between two lookups of an account that does not exist.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often an account is looked up. A controller creates the default account of a new namespace shortly after the
/// namespace, so that account is worth a longer wait.
fn lookups(name: &str) -> u32 {
    match name {
        DEFAULT => 50,
        _ => 10,
    }
}

/// Sets the service account and the token volume of pods, and rejects pods whose account does not exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceAccount;

impl Mutator for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        match super::subject(review) {
            Some(("", "pods", Operation::Create)) => Box::pin(complete(review, lookup)),
            _ => decided(Ok(())),
        }
    }
}

impl Validator for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        decided(check(review, lookup))
    }
}

/// Sets the account and the token volume of a new pod.
async fn complete(review: &mut Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let namespace = review.namespace;
    let Some(pod) = review.object.as_deref_mut() else {
        return Ok(());
    };
    if is_mirror(pod) {
        return Ok(());
    }
    if pod.value().text(&["spec", "serviceAccountName"]).is_empty() {
        let spec = pod.map_mut().object_mut("spec");
        spec.insert("serviceAccountName", Value::from(DEFAULT));
        spec.insert("serviceAccount", Value::from(DEFAULT));
    }
    let name = pod.value().text(&["spec", "serviceAccountName"]).to_owned();
    let Some(account) = wait_for_account(lookup, namespace, &name).await else {
        return Err(refuse(review.kind, pod, missing(namespace, &name)));
    };
    if wants_token(pod, &account) {
        token_volume::add(pod);
    }
    if pod.value().list(&["spec", "imagePullSecrets"]).is_empty() {
        let secrets: Vec<Value> = account
            .value()
            .list(&["imagePullSecrets"])
            .iter()
            .map(|secret| bareboat_api::value!({"name": (secret.text(&["name"]))}))
            .collect();
        if !secrets.is_empty() {
            let spec = pod.map_mut().object_mut("spec");
            spec.insert("imagePullSecrets", Value::Array(secrets));
        }
    }
    Ok(())
}

async fn wait_for_account(lookup: &dyn Lookup, namespace: &str, name: &str) -> Option<Object> {
    for _ in 1..lookups(name) {
        let account = lookup.get(ACCOUNTS, namespace, name);
        if account.is_some() {
            return account;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    lookup.get(ACCOUNTS, namespace, name)
}

/// Returns whether a pod gets a token volume: the pod decides, then its account. The default is yes.
fn wants_token(pod: &Object, account: &Object) -> bool {
    let of_pod = pod.at(&["spec", "automountServiceAccountToken"]);
    let of_account = account.get("automountServiceAccountToken");
    let flag = |value: Option<&Value>| value.and_then(Value::as_bool);
    flag(of_pod).or_else(|| flag(of_account)).unwrap_or(true)
}

fn check(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    if !review.kind.group.is_empty() || review.kind.names.plural != "pods" {
        return Ok(());
    }
    let Some(pod) = review.object.as_deref() else {
        return Ok(());
    };
    let refused = |why: String| refuse(review.kind, pod, why);
    let name = pod.value().text(&["spec", "serviceAccountName"]);
    match (review.operation, review.subresource) {
        (Operation::Create, "") if is_mirror(pod) => secrets::check_mirror(pod).map_err(refused),
        (Operation::Create, "") => {
            if name.is_empty() {
                let why = format!(
                    "no service account specified for pod {}/{}",
                    review.namespace,
                    pod.name()
                );
                return Err(refused(why));
            }
            let Some(account) = lookup.get(ACCOUNTS, review.namespace, name) else {
                return Err(refused(missing(review.namespace, name)));
            };
            secrets::check(pod, &account).map_err(refused)
        }
        (Operation::Update, "ephemeralcontainers") => {
            match lookup.get(ACCOUNTS, review.namespace, name) {
                Some(account) => secrets::check_ephemeral(pod, &account).map_err(refused),
                None if name.is_empty() => Ok(()),
                None => Err(refused(missing(review.namespace, name))),
            }
        }
        _ => Ok(()),
    }
}

/// Returns whether a pod mirrors a static pod of a kubelet.
fn is_mirror(pod: &Object) -> bool {
    pod.annotation(MIRROR).is_some()
}

fn missing(namespace: &str, name: &str) -> String {
    format!(
        "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
    )
}

#[cfg(test)]
mod tests;
