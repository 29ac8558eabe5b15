//! Client certificates: the common name is the user, organizations are groups.

use super::{Authenticator, BadCredentials, Evidence, FirstOf, Peer, authenticated};
use crate::revocation::Revocations;
use arc_swap::ArcSwap;
use bareboat_api::Str;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_certificates::certificate::{Attribute, Certificate};
use bareboat_certificates::der::{self, oid};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use sha2::Digest as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The OID of the subject attribute that holds a uid, 1.3.6.1.4.1.57683.2.
const UID_OID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// Authenticates users by client certificates of a CA. The CA can be replaced while the server runs.
#[derive(Clone)]
pub struct ClientCertificates(Arc<Trust>);

struct Trust {
    verifier: ArcSwap<Arc<dyn ClientCertVerifier>>,
    generation: AtomicU64,
    revocations: OnceLock<Revocations>,
}

bareboat_api::opaque_debug!(ClientCertificates);

impl ClientCertificates {
    /// Trusts certificates that `verifier` accepts.
    pub fn new(verifier: Arc<dyn ClientCertVerifier>) -> ClientCertificates {
        ClientCertificates(Arc::new(Trust {
            verifier: ArcSwap::from_pointee(verifier),
            generation: AtomicU64::new(0),
            revocations: OnceLock::new(),
        }))
    }

    /// Trusts only the certificates that another verifier accepts, from the next request on.
    pub fn replace(&self, verifier: Arc<dyn ClientCertVerifier>) {
        self.0.verifier.store(Arc::new(verifier));
        self.0.generation.fetch_add(1, Ordering::AcqRel);
        if let Some(revocations) = self.0.revocations.get() {
            revocations.everything_changed();
        }
    }

    fn check(&self, peer: &Peer) -> Option<Result<User, BadCredentials>> {
        let (own, chain) = peer.certificates.split_first()?;
        let verifier = self.0.verifier.load();
        match verifier.verify_client_cert(own, chain, UnixTime::now()) {
            Ok(_) => user_of_certificate(own).transpose(),
            Err(error) => Some(Err(BadCredentials(format!(
                "a client certificate was refused: {error}"
            )))),
        }
    }
}

impl Authenticator for ClientCertificates {
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        Box::pin(async move { self.check(evidence.peer).transpose() })
    }

    fn authenticate_now(
        &self,
        evidence: &Evidence<'_>,
    ) -> Option<Result<Option<Arc<User>>, BadCredentials>> {
        let found = self.check(evidence.peer).transpose();
        Some(found.map(|found| found.map(Arc::new)))
    }

    fn of_connection(&self, peer: &Peer) -> Option<Result<User, BadCredentials>> {
        self.check(peer)
    }

    fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    fn attach(&self, revocations: &Revocations) {
        let _ = self.0.revocations.set(revocations.clone());
    }
}

/// The user of a connection. It is determined once, and again when the client CA changes.
pub(crate) struct ConnectionIdentity(ArcSwap<Judged>);

/// The result of authenticating a connection by its certificates, and the generation of the authenticators (client CAs)
/// it was made with.
pub(crate) struct Judged {
    generation: u64,
    /// `None` if certificates do not name a user.
    pub(crate) user: Option<Result<Arc<User>, BadCredentials>>,
}

impl ConnectionIdentity {
    pub(crate) fn new(authn: &FirstOf, peer: &Peer) -> ConnectionIdentity {
        ConnectionIdentity(ArcSwap::from_pointee(judge(authn, peer)))
    }

    /// Returns the current user of the connection.
    pub(crate) fn current(&self, authn: &FirstOf, peer: &Peer) -> Arc<Judged> {
        let judged = self.0.load_full();
        if peer.certificates.is_empty() || judged.generation == authn.generation() {
            return judged;
        }
        let judged = Arc::new(judge(authn, peer));
        self.0.store(judged.clone());
        judged
    }
}

fn judge(authn: &FirstOf, peer: &Peer) -> Judged {
    // Read before the certificates are checked: a change in between is noticed at the next request.
    let generation = authn.generation();
    let found = authn.of_connection(peer);
    Judged {
        generation,
        user: found.map(|found| found.map(|user| authenticated(Arc::new(user)))),
    }
}

/// Returns when the first of some certificates expires, in seconds since 1970. An unreadable one counts as expired.
pub(super) fn end_of(certificates: &[CertificateDer<'_>]) -> i64 {
    let ends = certificates
        .iter()
        .map(|certificate| Certificate::parse(certificate).map_or(0, |parsed| parsed.not_after));
    ends.min().unwrap_or(i64::MAX)
}

fn parse<'c>(certificate: &'c CertificateDer<'_>) -> Result<Certificate<'c>, BadCredentials> {
    Certificate::parse(certificate)
        .ok_or_else(|| BadCredentials("a client certificate does not parse".to_owned()))
}

/// Returns the common name of a certificate. Of several, the last one is used, as in Go.
pub(super) fn common_name(
    certificate: &CertificateDer<'_>,
) -> Result<Option<String>, BadCredentials> {
    last_common_name(&parse(certificate)?.subject)
}

fn last_common_name(subject: &[Attribute<'_>]) -> Result<Option<String>, BadCredentials> {
    let mut names = subject.iter().filter(|it| it.oid == oid::COMMON_NAME);
    let name = names.next_back().map(text).transpose()?;
    Ok(name.filter(|name| !name.is_empty()))
}

/// Returns the text of an attribute, whatever string type it has.
fn text(attribute: &Attribute<'_>) -> Result<String, BadCredentials> {
    let value = attribute.value;
    let utf8 = || String::from_utf8(value.to_vec()).ok();
    let text = match attribute.tag {
        der::UTF8_STRING | der::PRINTABLE_STRING | der::IA5_STRING | der::NUMERIC_STRING => utf8(),
        der::TELETEX_STRING => Some(value.iter().map(|byte| char::from(*byte)).collect()),
        der::BMP_STRING if value.len().is_multiple_of(2) => {
            let units = value.chunks_exact(2);
            let units = units.map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).ok()
        }
        _ => None,
    };
    text.filter(|text| !text.chars().any(char::is_control))
        .ok_or_else(|| {
            BadCredentials("a name in a client certificate is not a plain text".to_owned())
        })
}

/// Returns the user a certificate names; `None` if it has no common name.
pub fn user_of_certificate(
    certificate: &CertificateDer<'_>,
) -> Result<Option<User>, BadCredentials> {
    let parsed = parse(certificate)?;
    let subject = &parsed.subject;
    let Some(name) = last_common_name(subject)? else {
        return Ok(None);
    };
    let organizations = subject.iter().filter(|it| it.oid == oid::ORGANIZATION);
    let groups: Result<Vec<String>, _> = organizations.map(text).collect();
    let mut extra = std::collections::BTreeMap::new();
    let digest = sha2::Sha256::digest(certificate.as_ref());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    extra.insert(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec![format!("X509SHA256={digest}")],
    );
    Ok(Some(User {
        name: Str::new(name),
        uid: uid(subject)?,
        groups: groups?.iter().map(Str::new).collect(),
        extra,
    }))
}

fn uid(subject: &[Attribute<'_>]) -> Result<Str, BadCredentials> {
    let bad = |why: &str| BadCredentials(format!("a client certificate has {why}"));
    let mut uids = subject.iter().filter(|it| it.oid == UID_OID);
    let Some(uid) = uids.next() else {
        return Ok(Str::default());
    };
    if uids.next().is_some() {
        return Err(bad("several uids"));
    }
    let uid = text(uid)?;
    match uid.is_empty() {
        true => Err(bad("an empty uid")),
        false => Ok(Str::new(uid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject as _;

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

    /// Names `CN=ann` with the uids `one` and `two`, for a hundred years.
    const TWO_UIDS: &str = "\
-----BEGIN CERTIFICATE-----
MIIBajCCAQ8CFFNg27tbrd/8FhlnHcb41Uh09ZQuMAoGCCqGSM49BAMCMDYxDDAK
BgNVBAMMA2FubjESMBAGCSsGAQQBg8JTAgwDb25lMRIwEAYJKwYBBAGDwlMCDAN0
d28wIBcNMjYxMTE4MDY1MDQyWhgPMjEyNjEwMjUwNjUwNDJaMDYxDDAKBgNVBAMM
A2FubjESMBAGCSsGAQQBg8JTAgwDb25lMRIwEAYJKwYBBAGDwlMCDAN0d28wWTAT
BgcqhkjOPQIBBggqhkjOPQMBBwNCAATrnZFEk+R/+vwqfVMztE2zDXpiup3m/2re
j58iS/I4dvGpyaMglwBqqLQN6I5PYcIFznI7jBATngO8I977LXOdMAoGCCqGSM49
BAMCA0kAMEYCIQDD78zL3+8W39k6czM6iXTfmi9PZm6ekJRDd4QTSpSfuwIhAPFB
qRqTqSNb3ua24qxmvyWqvT0ix7xqkU1QSYtFifor
-----END CERTIFICATE-----
";

    #[test]
    fn a_certificate_with_two_uids_is_refused() {
        let certificate = CertificateDer::from_pem_slice(TWO_UIDS.as_bytes());
        let refused = user_of_certificate(&certificate.expect("a certificate"));
        let error = refused.expect_err("no user");
        assert_eq!(error.to_string(), "a client certificate has several uids");
    }

    #[test]
    fn of_two_common_names_the_last_one_counts() {
        let certificate =
            CertificateDer::from_pem_slice(TWO_NAMES.as_bytes()).expect("a certificate");
        let user = user_of_certificate(&certificate).expect("a user");
        let user = user.expect("it has a common name");
        assert_eq!(user.name, "last");
        assert_eq!(user.groups, ["crew", "watch"]);
        let ends = end_of(&[certificate]);
        assert!(ends > 4_000_000_000, "{ends}");
    }
}
