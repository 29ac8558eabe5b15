//! Authorizes approval and signing of CertificateSigningRequests.
// Upstream: plugin/pkg/admission/certificates/{approval,signing}.

use super::refuse;
use crate::reach::Reach;
use bareboat_api::admission::{Lookup, Operation, Review, Right, Validator, decided};
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Object, Status, Value};
use bareboat_certificates::SigningRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const GROUP: &str = "certificates.k8s.io";
/// The signer of client certificates that this server accepts.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Rejects approvals and signatures of users without the permission for that signer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SigningRequests;

/// Returns whether a user has a permission for a signer, by its name or by `domain/*`.
async fn may(lookup: &dyn Lookup, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or("");
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let right = Right {
            verb,
            group: GROUP,
            resource: "signers",
            name: &name,
            ..Right::default()
        };
        if lookup.may(user, right).await {
            return true;
        }
    }
    false
}

/// Returns whether a write changes fields that only a signer may set.
fn signs(new: &Object, old: &Object) -> bool {
    ["certificate", "conditions"]
        .iter()
        .any(|member| new.at(&["status", member]) != old.at(&["status", member]))
}

async fn check(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let (Some(new), Some(old), Operation::Update) =
        (review.object.as_deref(), review.old, review.operation)
    else {
        return Ok(());
    };
    let verb = match review.subresource {
        "approval" => "approve",
        "status" if signs(new, old) => "sign",
        _ => return Ok(()),
    };
    let signer = old.value().text(&["spec", "signerName"]);
    if !may(lookup, review.user, verb, signer).await {
        let shown = bareboat_api::field::go_quote(signer);
        let why = format!("user not permitted to {verb} requests with signerName {shown}");
        return Err(refuse(review.kind, new, why));
    }
    if verb == "approve" && signer == CLIENT_SIGNER && is_approved(new) && !is_approved(old) {
        let granted = may_grant(lookup, review.user, old).await;
        return granted.map_err(|why| refuse(review.kind, new, why));
    }
    Ok(())
}

fn is_approved(request: &Object) -> bool {
    let conditions = request.at(&["status", "conditions"]);
    let mut conditions = conditions.and_then(Value::as_array).unwrap_or(&[]).iter();
    conditions.any(|condition| condition.get("type").and_then(Value::as_str) == Some("Approved"))
}

/// Checks the user and groups of a client certificate. Approving it grants all their permissions, so system names
/// require the permission to impersonate them.
async fn may_grant(lookup: &dyn Lookup, user: &User, request: &Object) -> Result<(), String> {
    let text = STANDARD.decode(request.value().text(&["spec", "request"]));
    let text = text.map_err(|error| format!("failed to parse CSR: {error}"))?;
    let subject = SigningRequest::from_pem(&text)
        .and_then(|request| request.client)
        .map_err(|error| format!("failed to parse CSR: {error}"))?;
    let users = [("users", &subject.name)].into_iter();
    let groups = subject.groups.iter().map(|group| ("groups", group));
    for (resource, name) in users.chain(groups) {
        if !name.starts_with("system:") {
            continue;
        }
        let right = match name.strip_prefix("system:serviceaccount:") {
            Some(account) if resource == "users" => {
                let (namespace, name) = account.split_once(':').unwrap_or((account, ""));
                Right {
                    verb: "impersonate",
                    resource: "serviceaccounts",
                    namespace,
                    name,
                    ..Right::default()
                }
            }
            _ => Right {
                verb: "impersonate",
                resource,
                name,
                ..Right::default()
            },
        };
        if !lookup.may(user, right).await {
            let shown = bareboat_api::field::go_quote(name);
            return Err(format!(
                "user not permitted to approve a certificate for {shown} without the right to impersonate it"
            ));
        }
    }
    Ok(())
}

impl Validator for SigningRequests {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if review.kind.group != GROUP || review.kind.names.plural != "certificatesigningrequests" {
            return decided(Ok(()));
        }
        Box::pin(check(review, lookup))
    }
}
