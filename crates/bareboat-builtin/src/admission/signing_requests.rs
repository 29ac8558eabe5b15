//! Who may approve requests for certificates, and who may sign them.
// Upstream: plugin/pkg/admission/certificates/{approval,signing}.

use super::refuse;
use crate::reach::Reach;
use bareboat_api::admission::{Operation, Review, Right, Validator, World};
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Object, Status};

const GROUP: &str = "certificates.k8s.io";

/// Refuses approvals and signatures by users without the right to give them for that signer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SigningRequests;

/// Whether a user may do something for a signer: by its name, or by `domain/*`.
async fn may(world: &dyn World, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or("");
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let right = Right {
            verb,
            group: GROUP,
            resource: "signers",
            name: &name,
            ..Right::default()
        };
        if world.may(user, right).await {
            return true;
        }
    }
    false
}

/// Whether a write sets or changes what only a signer says.
fn signs(new: &Object, old: &Object) -> bool {
    ["certificate", "conditions"]
        .iter()
        .any(|member| new.at(&["status", member]) != old.at(&["status", member]))
}

async fn check(review: &Review<'_>, world: &dyn World) -> Result<(), Status> {
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
    if may(world, review.user, verb, signer).await {
        return Ok(());
    }
    let shown = bareboat_api::field::go_quote(signer);
    let why = format!("user not permitted to {verb} requests with signerName {shown}");
    Err(refuse(review.kind, new, why))
}

impl Validator for SigningRequests {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if review.kind.group != GROUP || review.kind.names.plural != "certificatesigningrequests" {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(check(review, world))
    }
}
