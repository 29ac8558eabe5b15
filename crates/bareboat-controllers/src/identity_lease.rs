//! Keeps the Lease of this server's identity, `kube-system/apiserver-HASH`, and deletes those of servers that are gone.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{join, read};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Event, EventKind, Resource, Store};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASES: &str = "coordination.k8s.io/leases";
const PREFIX: &str = "kube-system/";
const LABEL: &str = "apiserver.kubernetes.io/identity";
const COMPONENT: &str = "kube-apiserver";
const HOST_LABEL: &str = "kubernetes.io/hostname";
/// How long a Lease is valid without renewal.
const DURATION: i64 = 3600;
/// How often it is renewed: seldom, because each renewal is a write.
const RENEWAL: Duration = Duration::from_secs(600);

/// Keeps the Lease.
pub(crate) struct LeaseKeeper {
    client: Client,
    host: String,
    name: String,
    holder: String,
    /// Whether this process has written the Lease. Another holder after that is a second server on the host, with which
    /// it is shared.
    claimed: AtomicBool,
}

impl Controller for LeaseKeeper {
    const NAME: &'static str = "identity-lease";
    const MANAGER: &'static str = "kube-apiserver";
    const PARALLEL: usize = 1;
    const EVERYWHERE: bool = true;
    type Key = ();
    type Listener = LeaseListener;

    fn identity(_: &Table) -> Identity {
        let rules = ["create delete update | coordination.k8s.io | leases"];
        Identity::own("bareboat-identity-lease", &[]).and_in("kube-system", &rules)
    }

    fn has_work(server: &Server, options: &Options) -> bool {
        let table = server.catalog().table();
        options.hostname.is_some() && table.find("coordination.k8s.io", "leases").is_some()
    }

    fn new(context: &mut Context<'_>, queue: Arc<Queue<()>>) -> (LeaseKeeper, LeaseListener) {
        let host = context.options.hostname.clone().unwrap_or_default();
        let name = lease_name(&host);
        // Another process on this host is another holder.
        let mut digest = Sha256::new_with_prefix(std::process::id().to_le_bytes());
        digest.update(Timestamp::now().as_nanosecond().to_le_bytes());
        let holder = format!("{name}_{}", base32(&digest.finalize()[..16]));
        let listener = LeaseListener {
            queue,
            key: format!("{PREFIX}{name}"),
        };
        let keeper = LeaseKeeper {
            client: context.client.clone(),
            host,
            name,
            holder,
            claimed: AtomicBool::new(false),
        };
        (keeper, listener)
    }

    async fn reconcile(&self, (): ()) -> Verdict {
        match self.renew().await {
            Ok(wait) => {
                self.remove_others().await;
                Verdict::After(wait)
            }
            Err(status) => {
                // The namespace may not exist yet.
                if !matches!(status.code, 404 | 409) {
                    tracing::warn!(%status, "cannot write the Lease of this server");
                }
                Verdict::Retry
            }
        }
    }
}

impl LeaseKeeper {
    /// Writes the Lease if it is due, and returns when it is due again.
    async fn renew(&self) -> Result<Duration, Status> {
        let store = self.client.server().store().resource(LEASES);
        let now = Timestamp::now();
        let time = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let mut spec = value!({
            "holderIdentity": (self.holder.as_str()),
            "leaseDurationSeconds": DURATION,
            "renewTime": (time.as_str()),
        });
        let Some(entry) = store.get(&format!("{PREFIX}{}", self.name)) else {
            let mut labels = value!({});
            let members = labels.make_object();
            members.insert(LABEL, Value::string(COMPONENT));
            members.insert(HOST_LABEL, Value::string(&self.host));
            let lease = value!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": (self.name.as_str()), "namespace": "kube-system", "labels": labels},
                "spec": spec,
            });
            self.client.create(PATH, &lease).await?;
            self.claimed.store(true, Ordering::Relaxed);
            return Ok(RENEWAL);
        };
        let mut lease = read(&entry)?;
        let is_own = is_own(&lease, &self.holder, self.claimed.load(Ordering::Relaxed));
        let age = renewed(&lease).map(|renewed| now.duration_since(renewed));
        if let Some(age) = age.filter(|_| is_own)
            && let Ok(age) = Duration::try_from(age)
            && let Some(left) = RENEWAL.checked_sub(age).filter(|left| !left.is_zero())
        {
            return Ok(left);
        }
        if let Some(Value::Object(known)) = lease.get("spec") {
            for (key, member) in known.iter() {
                if !matches!(key, "holderIdentity" | "leaseDurationSeconds" | "renewTime") {
                    spec.make_object().insert(key, member.clone());
                }
            }
        }
        lease.map_mut().insert("spec", spec);
        let labels = lease.metadata_mut().object_mut("labels");
        labels.insert(LABEL, Value::string(COMPONENT));
        labels.insert(HOST_LABEL, Value::string(&self.host));
        let path = join(PATH, &self.name);
        self.client.update(&path, lease.value()).await?;
        self.claimed.store(true, Ordering::Relaxed);
        Ok(RENEWAL)
    }

    /// Deletes the Leases of servers that did not renew them.
    async fn remove_others(&self) {
        let store = self.client.server().store().resource(LEASES);
        let now = Timestamp::now();
        let mut expired = Vec::new();
        for entry in store.snapshot().range(PREFIX, None) {
            if entry.name() == self.name || entry.facets().label(LABEL) != Some(COMPONENT) {
                continue;
            }
            if read(entry).is_ok_and(|lease| has_expired(&lease, now)) {
                expired.push(entry.clone());
            }
        }
        for entry in expired {
            let options = value!({
                "kind": "DeleteOptions", "apiVersion": "v1",
                "preconditions": {
                    "uid": (&*entry.facets().uid),
                    "resourceVersion": (entry.revision().to_string()),
                },
            });
            let path = join(PATH, entry.name());
            if let Err(status) = self.client.remove(&path, &options).await {
                tracing::debug!(%status, name = entry.name(), "cannot delete an old Lease");
            }
        }
    }
}

/// Returns whether the Lease is that of this server, so that it is written only when it is due.
fn is_own(lease: &Object, holder: &str, claimed: bool) -> bool {
    let held_by = lease.at(&["spec", "holderIdentity"]);
    let held_by = held_by.and_then(Value::as_str);
    lease.label(LABEL) == Some(COMPONENT) && (claimed || held_by == Some(holder))
}

fn renewed(lease: &Object) -> Option<Timestamp> {
    let text = lease.at(&["spec", "renewTime"])?.as_str()?;
    text.parse().ok()
}

/// A Lease without a time counts as expired, as upstream does.
fn has_expired(lease: &Object, now: Timestamp) -> bool {
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]);
    let seconds = seconds.and_then(Value::as_i64).unwrap_or(0);
    match renewed(lease) {
        Some(renewed) => now.duration_since(renewed) > SignedDuration::from_secs(seconds),
        None => true,
    }
}

/// The name of the Lease of an API server on a host, as kube-apiserver makes it.
fn lease_name(host: &str) -> String {
    let mut digest = Sha256::new();
    for part in [host, COMPONENT] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        digest.update(length.to_be_bytes());
        digest.update(part);
    }
    format!("apiserver-{}", base32(&digest.finalize()[..16]))
}

/// Lower-case base32 without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut out = String::new();
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(ALPHABET[(buffer >> bits) as usize & 31]));
        }
    }
    if bits > 0 {
        out.push(char::from(ALPHABET[(buffer << (5 - bits)) as usize & 31]));
    }
    out
}

/// Notices when the Lease is changed or deleted.
pub(crate) struct LeaseListener {
    queue: Arc<Queue<()>>,
    key: String,
}

impl Listener for LeaseListener {
    fn reset(&mut self, _: &Store) {
        self.queue.add(());
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == LEASES && event.kind != EventKind::Added && event.key() == self.key {
            self.queue.add(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_that_of_rfc_4648_in_lower_case() {
        for (bytes, text) in [
            ("", ""),
            ("f", "my"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
        assert_eq!(lease_name("host").len(), "apiserver-".len() + 26);
    }

    #[test]
    fn another_holder_is_accepted_once_the_lease_was_claimed() {
        for (component, holder, claimed, own) in [
            (COMPONENT, "us", false, true),
            (COMPONENT, "them", false, false),
            (COMPONENT, "them", true, true),
            ("other", "us", true, false),
        ] {
            let mut labels = value!({});
            let members = labels.make_object();
            members.insert(LABEL, Value::string(component));
            let lease = value!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "a", "labels": labels},
                "spec": {"holderIdentity": holder},
            });
            let lease = Object::try_from(lease).expect("an object");
            assert_eq!(is_own(&lease, "us", claimed), own, "{component} {holder}");
        }
    }

    #[test]
    fn a_lease_expires_after_its_duration() {
        let now: Timestamp = "2026-01-01T02:00:00Z".parse().expect("a time");
        for (renewed, expired) in [
            ("2026-01-01T01:30:00Z", false),
            ("2026-01-01T00:30:00Z", true),
            ("", true),
        ] {
            let lease = value!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
                "spec": {"leaseDurationSeconds": 3600, "renewTime": renewed},
            });
            let lease = Object::try_from(lease).expect("an object");
            assert_eq!(has_expired(&lease, now), expired, "{renewed}");
        }
    }
}
