//! Keeps the conditions of ServiceCIDRs, and lets a deleted ServiceCIDR go when no service has an address in it.

use crate::Client;
use crate::addresses::{ADDRESSES, NETWORKS, SERVICES, addresses_of, serves_addresses};
use crate::conditions::now;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{is_deleting, join, read};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/apis/networking.k8s.io/v1/servicecidrs";
/// Keeps a ServiceCIDR until no service has an address in it.
pub(crate) const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// The field manager that Kubernetes' controller uses.
const MANAGER: &str = "service-cidr-controller";
/// How long after its deletion a ServiceCIDR stays at least. A service that got its address before the deletion is stored by
/// then.
const SETTLED: Duration = Duration::from_secs(2);
/// The ServiceCIDR that exists from the start. The controller that creates it also sets its condition.
const DEFAULT: &str = "kubernetes";

/// Writes conditions and finalizers. Keys are names of ServiceCIDRs.
pub(crate) struct CidrController {
    client: Client,
}

impl Controller for CidrController {
    const NAME: &'static str = "service-cidrs";
    const MANAGER: &'static str = MANAGER;
    const PARALLEL: usize = 4;
    type Key = Arc<str>;
    type Listener = CidrListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes("service-cidrs-controller")
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        serves_addresses(server)
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (CidrController, CidrListener) {
        let client = context.client.clone();
        let listener = CidrListener {
            queue,
            deleting: HashSet::new(),
        };
        (CidrController { client }, listener)
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        match self.bring_up_to_date(&name).await {
            Ok(verdict) => verdict,
            // It was deleted or changed meanwhile, and an event follows.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(%name, %status, "cannot update a ServiceCIDR");
                Verdict::Retry
            }
        }
    }
}

impl CidrController {
    async fn bring_up_to_date(&self, name: &str) -> Result<Verdict, Status> {
        let client = &self.client;
        let store = client.server().store();
        let Some(entry) = store.resource(NETWORKS).get(name) else {
            return Ok(Verdict::Done);
        };
        let object = read(&entry)?;
        let guarded = object.finalizers().any(|own| own == FINALIZER);
        if !is_deleting(&entry) {
            if !guarded {
                add_finalizer(client, name, &object).await?;
            }
            if name != DEFAULT && ready_condition(&object) != ("True", "") {
                write_condition(client, name, true).await?;
            }
            return Ok(Verdict::Done);
        }
        if !guarded {
            return Ok(Verdict::Done);
        }
        if is_needed(client, name, &object) {
            if ready_condition(&object).0 != "False" {
                write_condition(client, name, false).await?;
            }
            return Ok(Verdict::Done);
        }
        let left = SETTLED.saturating_sub(since_deletion(&entry));
        if !left.is_zero() {
            return Ok(Verdict::After(left));
        }
        let kept: Value = object
            .finalizers()
            .filter(|own| *own != FINALIZER)
            .collect();
        set_finalizers(client, name, &object, kept).await?;
        Ok(Verdict::Done)
    }
}

/// Notices changes of ServiceCIDRs, and addresses that become free.
pub(crate) struct CidrListener {
    queue: Arc<Queue<Arc<str>>>,
    /// ServiceCIDRs under deletion.
    deleting: HashSet<Arc<str>>,
}

impl CidrListener {
    fn add_deleting(&self) {
        for name in &self.deleting {
            self.queue.add(name.clone());
        }
    }
}

impl Listener for CidrListener {
    fn reset(&mut self, store: &Store) {
        self.deleting.clear();
        for entry in store.resource(NETWORKS).snapshot().range("", None) {
            let name: Arc<str> = entry.key().into();
            if is_deleting(entry) {
                self.deleting.insert(name.clone());
            }
            self.queue.add(name);
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let deleted = event.kind == EventKind::Deleted;
        match resource.name() {
            ADDRESSES if deleted => self.add_deleting(),
            NETWORKS if deleted => {
                self.deleting.remove(event.key());
            }
            NETWORKS => {
                let name: Arc<str> = event.key().into();
                if is_deleting(&event.entry) {
                    self.deleting.insert(name.clone());
                }
                self.queue.add(name);
                // A deleted ServiceCIDR may go if another one covers its addresses.
                self.add_deleting();
            }
            _ => {}
        }
    }
}

/// How long ago the deletion began. A timestamp that cannot be read counts as long ago.
fn since_deletion(entry: &Entry) -> Duration {
    let began = entry.facets().deletion_timestamp.as_deref();
    match began.map(str::parse::<jiff::Timestamp>) {
        Some(Ok(began)) => {
            let since = jiff::Timestamp::now().duration_since(began);
            Duration::try_from(since).unwrap_or(Duration::ZERO)
        }
        _ => SETTLED,
    }
}

/// Status and reason of the condition `Ready`.
fn ready_condition(object: &Object) -> (&str, &str) {
    let conditions = object.at(&["status", "conditions"]);
    let conditions = conditions.and_then(Value::as_array).unwrap_or(&[]).iter();
    for condition in conditions {
        let text = |member: &str| condition.get(member).and_then(Value::as_str).unwrap_or("");
        if text("type") == "Ready" {
            return (text("status"), text("reason"));
        }
    }
    ("", "")
}

async fn add_finalizer(client: &Client, name: &str, object: &Object) -> Result<(), Status> {
    let all: Value = object.finalizers().chain([FINALIZER]).collect();
    set_finalizers(client, name, object, all).await
}

async fn set_finalizers(
    client: &Client,
    name: &str,
    object: &Object,
    finalizers: Value,
) -> Result<(), Status> {
    let patch = value!({"metadata": {
        "finalizers": finalizers,
        "resourceVersion": (object.resource_version()),
    }});
    client.merge(&join(PATH, name), &patch).await.map(|_| ())
}

async fn write_condition(client: &Client, name: &str, ready: bool) -> Result<(), Status> {
    let condition = match ready {
        true => value!({
            "type": "Ready",
            "status": "True",
            "reason": "",
            "message": "Kubernetes Service CIDR is ready",
            "lastTransitionTime": (now()),
        }),
        false => value!({
            "type": "Ready",
            "status": "False",
            "reason": "Terminating",
            "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
            "lastTransitionTime": (now()),
        }),
    };
    let status = value!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let path = format!("{}/status", join(PATH, name));
    client.apply(&path, MANAGER, &status).await
}

/// Whether a service has an address in this ServiceCIDR that no other ServiceCIDR covers.
fn is_needed(client: &Client, name: &str, object: &Object) -> bool {
    let store = client.server().store();
    let own = ranges(object);
    let mut others = Vec::new();
    for entry in store.resource(NETWORKS).snapshot().range("", None) {
        if entry.key() != name && !is_deleting(entry) {
            others.extend(read(entry).map(|other| ranges(&other)).unwrap_or_default());
        }
    }
    let needed = |address: &IpAddr| {
        own.iter().any(|range| range.contains(*address))
            && !others.iter().any(|range| range.contains(*address))
    };
    let objects = store.resource(ADDRESSES).snapshot();
    let known = objects.range("", None).any(|entry| {
        let address: Result<IpAddr, _> = entry.key().parse();
        address.is_ok_and(|address| needed(&address))
    });
    known || {
        let services = store.resource(SERVICES).snapshot();
        services
            .range("", None)
            .any(|entry| addresses_of(entry).iter().any(needed))
    }
}

/// A range of addresses.
struct Range {
    base: IpAddr,
    length: u32,
}

impl Range {
    fn parse(text: &str) -> Option<Range> {
        let (base, length) = text.split_once('/')?;
        let base: IpAddr = base.parse().ok()?;
        let bits = if base.is_ipv4() { 32 } else { 128 };
        let length = length.parse().ok().filter(|length| *length <= bits)?;
        Some(Range { base, length })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, bits: u32| {
            let rest = bits - self.length;
            rest == 128 || a >> rest == b >> rest
        };
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                same(u32::from(base).into(), u32::from(address).into(), 32)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => same(base.into(), address.into(), 128),
            _ => false,
        }
    }
}

fn ranges(object: &Object) -> Vec<Range> {
    let listed = object.at(&["spec", "cidrs"]).and_then(Value::as_array);
    let listed = listed.unwrap_or(&[]).iter();
    listed
        .filter_map(|text| Range::parse(text.as_str()?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn a_range_contains_addresses_with_its_prefix() {
        for (range, address, contains) in [
            ("10.0.0.0/24", "10.0.0.255", true),
            ("10.0.0.0/24", "10.0.1.0", false),
            ("10.0.0.0/24", "::ffff:10.0.0.1", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/64", "2001:db8::ffff", true),
            ("2001:db8::/64", "2001:db8:0:1::", false),
        ] {
            let parsed = Range::parse(range).expect(range);
            let address = address.parse().expect(address);
            assert_eq!(parsed.contains(address), contains, "{range} {address}");
        }
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "x/8", "::/129"] {
            assert!(Range::parse(wrong).is_none(), "{wrong}");
        }
    }
}
