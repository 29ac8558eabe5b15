//! The state of networks that services get addresses from: ready, or going once the last address is gone.

use super::{ADDRESSES, NETWORKS, SERVICES, addresses};
use crate::Client;
use crate::conditions::now;
use crate::kinds::{is_deleting, join, read};
use crate::queue::Verdict;
use bareboat_api::{Object, Status, Value, value};
use bareboat_storage::Entry;
use http::Method;
use std::net::IpAddr;
use std::time::Duration;

const PATH: &str = "/apis/networking.k8s.io/v1/servicecidrs";
/// Keeps a network until nobody has an address of it.
pub(crate) const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// Under this name upstream writes.
const MANAGER: &str = "service-cidr-controller";
/// A write that chose its address before the network began to go is stored by then.
const SETTLED: Duration = Duration::from_secs(2);
/// The network that is there from the start is said to be ready by whoever makes it.
const DEFAULT: &str = "kubernetes";

/// Makes one network ready, or lets it go.
pub(super) async fn look(client: &Client, name: &str) -> Result<Verdict, Status> {
    let store = client.server().store();
    let Some(entry) = store.resource(NETWORKS).get(name) else {
        return Ok(Verdict::Done);
    };
    let client = client.named(MANAGER);
    let object = read(&entry)?;
    let guarded = object.finalizers().any(|own| own == FINALIZER);
    if !is_deleting(&entry) {
        if !guarded {
            guard(&client, name, &object).await?;
        }
        if name != DEFAULT && told(&object) != ("True", "") {
            tell(&client, name, true).await?;
        }
        return Ok(Verdict::Done);
    }
    if !guarded {
        return Ok(Verdict::Done);
    }
    if is_needed(&client, name, &object) {
        if told(&object).0 != "False" {
            tell(&client, name, false).await?;
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
    let patch = value!({"metadata": {
        "finalizers": kept,
        "resourceVersion": (object.resource_version()),
    }});
    client.merge(&join(PATH, name), &patch).await?;
    Ok(Verdict::Done)
}

/// How long ago the deletion began; long ago if that cannot be told.
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

/// What the condition `Ready` says, and why.
fn told(object: &Object) -> (&str, &str) {
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

async fn guard(client: &Client, name: &str, object: &Object) -> Result<(), Status> {
    let all: Value = object.finalizers().chain([FINALIZER]).collect();
    let patch = value!({"metadata": {
        "finalizers": all,
        "resourceVersion": (object.resource_version()),
    }});
    client.merge(&join(PATH, name), &patch).await.map(|_| ())
}

async fn tell(client: &Client, name: &str, ready: bool) -> Result<(), Status> {
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
    let path = format!(
        "{}/status?fieldManager={MANAGER}&force=true",
        join(PATH, name)
    );
    let media = "application/apply-patch+yaml";
    let applied = client.request(Method::PATCH, &path, media, Some(&status));
    applied.await.map(|_| ())
}

/// Whether an address that somebody has lies in the network, and in no other that stays.
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
        own.iter().any(|range| range.has(*address))
            && !others.iter().any(|range| range.has(*address))
    };
    let told = store.resource(ADDRESSES).snapshot();
    let told = told.range("", None).any(|entry| {
        let address: Result<IpAddr, _> = entry.key().parse();
        address.is_ok_and(|address| needed(&address))
    });
    told || {
        let services = store.resource(SERVICES).snapshot();
        services
            .range("", None)
            .any(|entry| addresses(entry).iter().any(needed))
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

    fn has(&self, address: IpAddr) -> bool {
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
    fn a_range_has_what_begins_as_it_does() {
        for (range, address, has) in [
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
            assert_eq!(parsed.has(address), has, "{range} {address}");
        }
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "x/8", "::/129"] {
            assert!(Range::parse(wrong).is_none(), "{wrong}");
        }
    }
}
