//! CertificateSigningRequests: signs approved requests for client certificates, and deletes old requests.
//!
//! Only the signer `kubernetes.io/kube-apiserver-client` is served. Requests for other signers are left to other programs,
//! but deleted like all others when they are old. The key of the authority is not in the API: the program that starts the
//! controllers passes it as a [`CertificateAuthority`].

mod judge;

use crate::Client;
use crate::Options;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::of_store;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Status, Value, value};
use bareboat_certificates::CertificateAuthority;
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Event, EventKind, Resource, Store};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use judge::{Judgement, judge};
use std::sync::Arc;
use std::time::Duration;

/// The store resource of CertificateSigningRequests.
const REQUESTS: &str = "certificates.k8s.io/certificatesigningrequests";
const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// The account that Kubernetes' controllers use.
const ACCOUNT: &str = "certificate-controller";

/// How client certificates of approved requests are signed.
#[derive(Clone)]
pub struct CertificateSigning {
    /// The certificate authority that signs.
    pub authority: Arc<dyn CertificateAuthority>,
    /// The longest life of a certificate, and the life of those that are requested without one.
    pub longest: Duration,
}

bareboat_api::opaque_debug!(CertificateSigning);

/// Notices requests that were created or changed.
pub(crate) struct RequestListener(Arc<Queue<Arc<str>>>);

impl Listener for RequestListener {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(REQUESTS).snapshot().range("", None) {
            self.0.add(entry.key().into());
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == REQUESTS && event.kind != EventKind::Deleted {
            self.0.add(event.key().into());
        }
    }
}

/// Signs and deletes requests. Keys are their names.
pub(crate) struct CertificateSigner {
    client: Client,
    signing: Option<CertificateSigning>,
}

impl Controller for CertificateSigner {
    const NAME: &'static str = "certificates";
    const MANAGER: &'static str = ACCOUNT;
    const PARALLEL: usize = 4;
    type Key = Arc<str>;
    type Listener = RequestListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes(ACCOUNT)
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        of_store(&server.catalog().table(), REQUESTS).is_some()
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (CertificateSigner, RequestListener) {
        let signer = CertificateSigner {
            client: context.client.clone(),
            signing: context.options.certificate_signing.clone(),
        };
        (signer, RequestListener(queue))
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        match self.handle(&name).await {
            Ok(verdict) => verdict,
            // It was deleted or changed meanwhile, and an event follows.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(request = %name, %status, "cannot handle a CertificateSigningRequest");
                Verdict::Retry
            }
        }
    }
}

impl CertificateSigner {
    async fn handle(&self, name: &str) -> Result<Verdict, Status> {
        let path = format!("{PATH}/{name}");
        let request = self.client.get(&path).await?;
        let request = request.value();
        let limits = self.signing.as_ref().map(|signing| judge::Limits {
            longest: i64::try_from(signing.longest.as_secs()).unwrap_or(i64::MAX),
            authority_ends: signing.authority.ends(),
        });
        match judge(request, now(), limits) {
            Judgement::Wait(seconds) => Ok(Verdict::After(Duration::from_secs(seconds))),
            Judgement::Remove => {
                let options = value!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "preconditions": {
                        "uid": (member(request, "uid")),
                        "resourceVersion": (member(request, "resourceVersion")),
                    },
                });
                self.client.delete(&path, &options).await?;
                Ok(Verdict::Done)
            }
            Judgement::Refuse(why) => self.write(&path, refused(request, &why)).await,
            Judgement::Sign(template) => {
                let Some(signing) = &self.signing else {
                    return Ok(Verdict::Done);
                };
                match signing.authority.issue(&template) {
                    Ok(certificate) => self.write(&path, signed(request, &certificate)).await,
                    Err(error) => {
                        tracing::error!(request = %name, %error, "cannot sign a certificate");
                        Ok(Verdict::Retry)
                    }
                }
            }
        }
    }

    /// Writes the status. The event of the write brings the request back.
    async fn write(&self, path: &str, request: Value) -> Result<Verdict, Status> {
        self.client
            .update(&format!("{path}/status"), &request)
            .await?;
        Ok(Verdict::Done)
    }
}

/// The request with its certificate.
fn signed(request: &Value, certificate: &str) -> Value {
    with_status(
        request,
        "certificate",
        Value::from(STANDARD.encode(certificate)),
    )
}

/// The request with the condition that says why it has none.
fn refused(request: &Value, why: &str) -> Value {
    let conditions = request.at(&["status", "conditions"]);
    let mut conditions = conditions.and_then(Value::as_array).unwrap_or(&[]).to_vec();
    let time = crate::conditions::now();
    conditions.push(value!({
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": (why),
        "lastUpdateTime": (time.as_str()),
        "lastTransitionTime": (time.as_str()),
    }));
    with_status(request, "conditions", Value::Array(conditions))
}

fn with_status(request: &Value, member: &str, content: Value) -> Value {
    let mut request = request.clone();
    let mut status = request.get("status").cloned().unwrap_or_default();
    status.make_object().insert(member, content);
    request.make_object().insert("status", status);
    request
}

fn member(request: &Value, name: &str) -> Value {
    let found = request.at(&["metadata", name]);
    found.cloned().unwrap_or_default()
}

/// Seconds since 1970.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
