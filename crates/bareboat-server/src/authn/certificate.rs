//! Client certificates: the common name is the user, organizations are groups.

use super::{Authenticator, BadCredentials, Evidence, Peer};
use bareboat_api::Str;
use bareboat_api::kind::{BoxFuture, User};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The OID of the subject attribute that holds a uid.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";

/// Users by client certificates that a CA signed.
pub struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientCertificates {
    /// Trusts certificates that `verifier` accepts.
    pub fn new(verifier: Arc<dyn ClientCertVerifier>) -> ClientCertificates {
        ClientCertificates { verifier }
    }

    fn check(&self, peer: &Peer) -> Option<Result<User, BadCredentials>> {
        let (own, chain) = peer.certificates.split_first()?;
        let verified = self
            .verifier
            .verify_client_cert(own, chain, UnixTime::now());
        Some(match verified {
            Ok(_) => user_of_certificate(own),
            Err(error) => Err(BadCredentials(format!(
                "a client certificate was refused: {error}"
            ))),
        })
    }
}

impl Authenticator for ClientCertificates {
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        Box::pin(async move { self.check(evidence.peer).transpose() })
    }

    fn of_connection(&self, peer: &Peer) -> Option<Result<User, BadCredentials>> {
        self.check(peer)
    }
}

/// When the first of some certificates ends, in seconds since 1970. One that cannot be read has ended.
pub(super) fn end_of(certificates: &[CertificateDer<'_>]) -> i64 {
    let ends = certificates.iter().map(|certificate| {
        X509Certificate::from_der(certificate)
            .map_or(0, |(_, parsed)| parsed.validity().not_after.timestamp())
    });
    ends.min().unwrap_or(i64::MAX)
}

/// The user a certificate names.
pub fn user_of_certificate(certificate: &CertificateDer<'_>) -> Result<User, BadCredentials> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| BadCredentials(format!("a client certificate does not parse: {error}")))?;
    let subject = parsed.subject();
    // Of several common names the last one counts, as it does in Go.
    let name = subject
        .iter_common_name()
        .filter_map(|attribute| attribute.as_str().ok())
        .last();
    let name = name
        .filter(|name| !name.is_empty())
        .ok_or_else(|| BadCredentials("a client certificate has no common name".to_owned()))?;
    let uid = subject
        .iter_attributes()
        .find(|attribute| attribute.attr_type().to_id_string() == UID_OID)
        .and_then(|attribute| attribute.as_str().ok());
    let mut extra = std::collections::BTreeMap::new();
    let fingerprint = {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(certificate.as_ref());
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    extra.insert(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec![format!("X509SHA256={fingerprint}")],
    );
    Ok(User {
        name: Str::new(name),
        uid: Str::new(uid.unwrap_or("")),
        groups: subject
            .iter_organization()
            .filter_map(|attribute| attribute.as_str().ok())
            .map(Str::new)
            .collect(),
        extra,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names `O=crew, CN=first, O=watch, CN=last`, as its subject has them, for a hundred years.
    const TWO_NAMES: &str = "\
-----BEGIN CERTIFICATE-----
MIIB0jCCAXmgAwIBAgIUIEJq/09CnRlhuyd74c6PX96NFiIwCgYIKoZIzj0EAwIw
PjENMAsGA1UECgwEY3JldzEOMAwGA1UEAwwFZmlyc3QxDjAMBgNVBAoMBXdhdGNo
MQ0wCwYDVQQDDARsYXN0MCAXDTI2MTExNjE3NDUyNVoYDzIxMjYxMDIzMTc0NTI1
WjA+MQ0wCwYDVQQKDARjcmV3MQ4wDAYDVQQDDAVmaXJzdDEOMAwGA1UECgwFd2F0
Y2gxDTALBgNVBAMMBGxhc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQcDDVK
FQ9iTbgR70jQIASVCzyKclpG2WsFuAryPx9A+LAOld8y078cVx48pYRpRiGpbYZh
xAmjk7zw0JrBpP2Xo1MwUTAdBgNVHQ4EFgQUhN550v9mqi4hPwJslE8TjRwNllsw
HwYDVR0jBBgwFoAUhN550v9mqi4hPwJslE8TjRwNllswDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNHADBEAiAfKJ4uFQNPVqeHOjy/njIMx8xYznfdeTMrJk4h
wZxuNwIgICQjYBpwjHuzMYJqduAhfkhv5SQwYF7kYDv535TyjRw=
-----END CERTIFICATE-----
";

    #[test]
    fn of_two_common_names_the_last_one_counts() {
        let certificate = rustls_pemfile::certs(&mut TWO_NAMES.as_bytes())
            .next()
            .expect("one certificate")
            .expect("well-formed PEM");
        let user = user_of_certificate(&certificate).expect("a user");
        assert_eq!(user.name, "last");
        assert_eq!(user.groups, ["crew", "watch"]);
        let ends = end_of(&[certificate]);
        assert!(ends > 4_000_000_000, "{ends}");
    }
}
