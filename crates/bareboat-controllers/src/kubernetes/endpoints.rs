//! The Endpoints and EndpointSlices of the service `default/kubernetes`.

use bareboat_api::{Value, value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// The label of endpoint slices of `default/kubernetes` that only exist while some server has another port or address family than the first one.
pub(super) const EXTRA: &str = "bareboat.dev/endpoints";

/// Servers with one port.
struct Subset {
    port: u16,
    addresses: BTreeSet<IpAddr>,
}

fn subsets(servers: &BTreeSet<SocketAddr>) -> Vec<Subset> {
    let mut by_port: BTreeMap<u16, BTreeSet<IpAddr>> = BTreeMap::new();
    for server in servers {
        by_port
            .entry(server.port())
            .or_default()
            .insert(server.ip());
    }
    let subsets = by_port.into_iter();
    subsets
        .map(|(port, addresses)| Subset { port, addresses })
        .collect()
}

fn ports(port: u16) -> Value {
    value!([{"name": "https", "port": (i64::from(port)), "protocol": "TCP"}])
}

/// Returns the Endpoints that name these servers.
pub(super) fn endpoints(servers: &BTreeSet<SocketAddr>) -> Value {
    let subset = |subset: Subset| {
        let addresses = subset.addresses.iter();
        let addresses: Value = addresses
            .map(|ip| value!({"ip": (ip.to_string())}))
            .collect();
        value!({"addresses": addresses, "ports": (ports(subset.port))})
    };
    let subsets: Value = subsets(servers).into_iter().map(subset).collect();
    value!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": subsets,
    })
}

/// Returns the EndpointSlices that name these servers: `kubernetes`, and one for each further port or family.
pub(super) fn slices(servers: &BTreeSet<SocketAddr>) -> Vec<Value> {
    let mut slices = Vec::new();
    for (family, matches) in [
        ("IPv4", IpAddr::is_ipv4 as fn(&IpAddr) -> bool),
        ("IPv6", IpAddr::is_ipv6),
    ] {
        let servers = servers.iter().filter(|server| matches(&server.ip()));
        for subset in subsets(&servers.copied().collect()) {
            let mut labels = value!({"kubernetes.io/service-name": "kubernetes"});
            let mut name = "kubernetes".to_owned();
            if !slices.is_empty() {
                name = format!("kubernetes-{}-{}", family.to_lowercase(), subset.port);
                labels.make_object().insert(EXTRA, Value::string("true"));
            }
            let addresses = subset.addresses.iter();
            let endpoints: Value = addresses
                .map(|ip| value!({"addresses": [(ip.to_string())], "conditions": {"ready": true}}))
                .collect();
            slices.push(value!({
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "namespace": "default", "labels": labels},
                "addressType": family,
                "endpoints": endpoints,
                "ports": (ports(subset.port)),
            }));
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(list: Option<&Value>) -> &[Value] {
        list.and_then(Value::as_array).unwrap_or_default()
    }

    #[test]
    fn servers_are_grouped_by_family_and_port() {
        let servers = [
            "192.0.2.2:6443",
            "192.0.2.1:6443",
            "192.0.2.1:7",
            "[2001:db8::1]:6443",
        ];
        let servers = servers.map(|server| server.parse().expect("an address"));
        let servers = BTreeSet::from(servers);
        let brief = |slice: &Value| {
            let endpoints = items(slice.get("endpoints")).iter();
            let text = |endpoint: &Value| items(endpoint.get("addresses"))[0].to_string();
            let addresses: Vec<_> = endpoints.map(text).collect();
            let port = items(slice.get("ports"))[0]
                .get("port")
                .map(Value::to_string);
            let (name, family) = (slice.at(&["metadata", "name"]), slice.get("addressType"));
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let (name, family) = (text(name).unwrap(), text(family).unwrap());
            format!("{name} {family} {} {addresses:?}", port.unwrap())
        };
        let found: Vec<_> = slices(&servers).iter().map(brief).collect();
        assert_eq!(
            found,
            [
                r#"kubernetes IPv4 7 ["\"192.0.2.1\""]"#,
                r#"kubernetes-ipv4-6443 IPv4 6443 ["\"192.0.2.1\"", "\"192.0.2.2\""]"#,
                r#"kubernetes-ipv6-6443 IPv6 6443 ["\"2001:db8::1\""]"#,
            ]
        );
        let endpoints = endpoints(&servers);
        assert_eq!(items(endpoints.get("subsets")).len(), 2);
    }
}
