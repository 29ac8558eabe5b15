//! Certificate signing requests (PKCS#10).
//!
//! Admission, the signer and authentication must read the same user from a subject. All of them use the same library, and a
//! subject that it cannot read completely is refused here.

use crate::issue::is_sequence;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer as _, X509Name};

/// The subject attribute that holds the uid of a user.
const UID: &str = "1.3.6.1.4.1.57683.2";
/// The largest request that is read.
const LARGEST: usize = 1 << 20;

/// Why a request cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no PEM block of a request.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotPem,
    /// The request is damaged.
    #[error("the request does not parse: {0}")]
    Malformed(String),
    /// The request is not signed with the private key of the public key it names.
    #[error("the request is not signed with its own key")]
    Signature,
    /// The subject cannot be read as a user.
    #[error("the subject {0}")]
    Subject(&'static str),
}

/// The user that the subject of a client certificate names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSubject {
    /// The name: the last common name.
    pub name: String,
    /// The groups: all organizations.
    pub groups: Vec<String>,
}

/// A request that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    /// The subject, a Name in DER.
    pub subject: Vec<u8>,
    /// The public key, a SubjectPublicKeyInfo in DER.
    pub public_key_info: Vec<u8>,
    /// The user that the subject names.
    pub client: Result<ClientSubject, RequestError>,
    der: Vec<u8>,
}

impl SigningRequest {
    /// Reads the first request of a PEM text. The signature is not checked yet.
    pub fn from_pem(text: &[u8]) -> Result<SigningRequest, RequestError> {
        if text.len() > LARGEST {
            return Err(RequestError::NotPem);
        }
        let first = <(SectionKind, Vec<u8>)>::pem_slice_iter(text).next();
        match first {
            Some(Ok((SectionKind::Csr, der))) => SigningRequest::from_der(der),
            _ => Err(RequestError::NotPem),
        }
    }

    fn from_der(der: Vec<u8>) -> Result<SigningRequest, RequestError> {
        let malformed = |error: &dyn std::fmt::Display| RequestError::Malformed(error.to_string());
        let (rest, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|error| malformed(&error))?;
        if !rest.is_empty() {
            return Err(malformed(&"trailing data"));
        }
        let info = &parsed.certification_request_info;
        let subject = info.subject.as_raw().to_vec();
        let public_key_info = info.subject_pki.raw.to_vec();
        if !is_sequence(&subject) || !is_sequence(&public_key_info) {
            return Err(malformed(&"subject or key are not DER"));
        }
        Ok(SigningRequest {
            client: client(&info.subject),
            subject,
            public_key_info,
            der,
        })
    }

    /// Checks that the requester has the private key.
    pub fn verify(&self) -> Result<(), RequestError> {
        let parsed = X509CertificationRequest::from_der(&self.der);
        let verified = parsed.ok().map(|(_, parsed)| parsed.verify_signature());
        match verified {
            Some(Ok(())) => Ok(()),
            _ => Err(RequestError::Signature),
        }
    }
}

/// Returns the user and groups of a subject. Refuses a subject without a common name, with a uid, or with text that
/// authentication cannot read.
fn client(subject: &X509Name<'_>) -> Result<ClientSubject, RequestError> {
    let mut client = ClientSubject::default();
    let odd = RequestError::Subject("has a common name or an organization that is not plain text");
    for name in subject.iter_common_name() {
        name.as_str()
            .map_err(|_| odd.clone())?
            .clone_into(&mut client.name);
    }
    for group in subject.iter_organization() {
        let group = group.as_str().map_err(|_| odd.clone())?;
        client.groups.push(group.to_owned());
    }
    let uid = subject
        .iter_attributes()
        .any(|attribute| attribute.attr_type().to_id_string() == UID);
    match (uid, client.name.is_empty()) {
        (true, _) => Err(RequestError::Subject(
            "names a uid, which users may not choose",
        )),
        (_, true) => Err(RequestError::Subject("has no common name")),
        _ => Ok(client),
    }
}

#[cfg(test)]
mod tests;
