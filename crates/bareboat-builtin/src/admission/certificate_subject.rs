//! Rejects requests for client certificates of `system:masters`.
// Upstream: plugin/pkg/admission/certificates/subjectrestriction.

use super::refuse;
use crate::reach::Reach;
use bareboat_api::admission::{Lookup, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

/// Rejects requests for client certificates of the group `system:masters`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CertificateSubject;

fn check(request: &Object) -> Result<(), String> {
    if request.value().text(&["spec", "signerName"]) != SIGNER {
        return Ok(());
    }
    let groups = organizations(request.value().text(&["spec", "request"]))
        .map_err(|why| format!("failed to parse CSR: {why}"))?;
    if groups.iter().any(|group| group == MASTERS) {
        return Err(format!(
            "use of {SIGNER} signer with {MASTERS} group is not allowed"
        ));
    }
    Ok(())
}

/// Returns the organizations in the subject of a base64-encoded certificate request.
fn organizations(request: &str) -> Result<Vec<String>, String> {
    let bytes = STANDARD
        .decode(request)
        .map_err(|error| error.to_string())?;
    let (_, pem) = parse_x509_pem(&bytes).map_err(|error| error.to_string())?;
    let parsed = X509CertificationRequest::from_der(&pem.contents);
    let (_, parsed) = parsed.map_err(|error| error.to_string())?;
    let subject = &parsed.certification_request_info.subject;
    // An unusual string encoding is compared byte by byte.
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let groups = subject
        .iter_organization()
        .map(|group| match group.as_str() {
            Ok(group) => group.to_owned(),
            Err(_) => text(group.as_slice()),
        });
    Ok(groups.collect())
}

impl Validator for CertificateSubject {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let about = super::subject(review);
        let group = "certificates.k8s.io";
        let plural = "certificatesigningrequests";
        let result = match (about, review.object.as_deref()) {
            (Some(about), Some(object)) if about == (group, plural, Operation::Create) => {
                check(object).map_err(|why| refuse(review.kind, object, why))
            }
            _ => Ok(()),
        };
        decided(result)
    }
}
