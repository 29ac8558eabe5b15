//! Kubelets: how they are found, how this server authenticates to them, and the connectors that use them.

mod connect;
mod relay;

pub(crate) use connect::{page, target};

use crate::annotation::KUBELET_URL;
use crate::objects::{NODES, Opening, list, resource, text};
use crate::{handlers, logs, proxies};
use bareboat_api::admission::Lookup;
use bareboat_api::{Object, Status, Value};
use bareboat_server::{ClientIdentity, Connector, Places, Upstream, UpstreamTrust, Visit};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The timeout for the first byte of a kubelet's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The number of kubelets whose limits are kept. Above this number, entries of idle kubelets are dropped.
const KNOWN: usize = 1024;
/// The port of a kubelet whose Node does not publish a port.
const DEFAULT_PORT: i64 = 10250;

/// The settings for calls to kubelets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KubeletSettings {
    /// The types of node addresses, in order of preference.
    pub preferred_address_types: Vec<String>,
    /// The certificate presented to kubelets.
    pub identity: Option<ClientIdentity>,
    /// Which kubelet certificates are accepted. Without a CA bundle every certificate is accepted, as in
    /// kube-apiserver: by default, kubelets sign their certificates themselves.
    pub trust: UpstreamTrust,
}

impl Default for KubeletSettings {
    fn default() -> Self {
        let types = [
            "Hostname",
            "InternalDNS",
            "InternalIP",
            "ExternalDNS",
            "ExternalIP",
        ];
        KubeletSettings {
            preferred_address_types: types.map(str::to_owned).to_vec(),
            identity: None,
            trust: UpstreamTrust::Anything,
        }
    }
}

/// Serves the streams of pods, nodes and services through kubelets.
#[derive(Clone)]
pub struct Kubelets(Arc<Inner>);

impl std::fmt::Debug for Kubelets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubelets")
    }
}

struct Inner {
    settings: KubeletSettings,
    /// The limits of concurrent calls, by host and port.
    places: Mutex<HashMap<String, Arc<Places>>>,
}

/// The address of a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The base URL, without a slash at the end.
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) port: String,
}

impl Kubelets {
    /// Returns connectors that call kubelets with `settings`.
    pub fn new(settings: KubeletSettings) -> Kubelets {
        Kubelets(Arc::new(Inner {
            settings,
            places: Mutex::default(),
        }))
    }

    /// Returns the connector of a subresource of [`crate::SUBRESOURCES`]; `None` for any other subresource.
    pub fn connector(&self, plural: &str, subresource: &str) -> Option<Connector> {
        let own = self.clone();
        Some(match (plural, subresource) {
            ("pods", "exec") => Connector::program(move |visit| own.clone().command("exec", visit)),
            ("pods", "attach") => {
                Connector::program(move |visit| own.clone().command("attach", visit))
            }
            ("pods", "log") => Connector::program(move |visit| logs::serve(own.clone(), visit)),
            ("pods", "portforward") => Connector::program(move |visit| own.clone().ports(visit)),
            ("pods", "proxy") => {
                Connector::program_without_object(move |visit| proxies::pod(own.clone(), visit))
            }
            ("services", "proxy") => {
                Connector::program_without_object(move |visit| proxies::service(own.clone(), visit))
            }
            ("nodes", "proxy") => {
                Connector::program_without_object(move |visit| proxies::node(own.clone(), visit))
            }
            _ => return None,
        })
    }

    fn places(&self, url: &str) -> Arc<Places> {
        let server = server_of(url);
        let mut places = self.0.places.lock();
        if places.len() >= KNOWN && !places.contains_key(&server) {
            places.retain(|_, places| Arc::strong_count(places) > 1);
        }
        places.entry(server).or_default().clone()
    }

    /// Returns the upstream of the kubelet at `url`. If `unverified` is set, its certificate is not verified.
    pub(crate) fn upstream(&self, url: &str, unverified: bool) -> Upstream {
        let settings = &self.0.settings;
        let trust = match unverified {
            true => &UpstreamTrust::Anything,
            false => &settings.trust,
        };
        let identity = settings.identity.as_ref();
        Upstream::new(url, trust, identity, PATIENCE, &self.places(url))
    }

    /// Returns the upstream of a server that is not a kubelet. This server does not present its certificate there. Like
    /// kube-apiserver, it does not verify the certificate of such a server, because the server is addressed by its IP.
    pub(crate) fn other(&self, url: &str) -> Upstream {
        let places = self.places(url);
        Upstream::new(url, &UpstreamTrust::Anything, None, PATIENCE, &places)
    }

    /// Finds the kubelet of a node.
    pub(crate) fn of_node(&self, objects: &dyn Lookup, name: &str) -> Result<Location, Status> {
        let node = objects.get(NODES, "", name);
        let node = node.ok_or_else(|| Status::not_found(resource("nodes"), name))?;
        if let Some(url) = node.annotation(KUBELET_URL) {
            return annotated(url);
        }
        let addresses = list(node.value(), &["status", "addresses"]);
        let host = self
            .0
            .settings
            .preferred_address_types
            .iter()
            .find_map(|kind| {
                let mut all = addresses.iter();
                let found = all.find(|address| text(address, &["type"]) == kind)?;
                Some(text(found, &["address"]))
            });
        let Some(host) = host.filter(|host| !host.is_empty()) else {
            let known: Vec<String> = addresses
                .iter()
                .map(|address| {
                    format!(
                        "{{{} {}}}",
                        text(address, &["type"]),
                        text(address, &["address"])
                    )
                })
                .collect();
            let known = known.join(" ");
            return Err(Status::new(
                500,
                "",
                format!("no preferred addresses found; known addresses: [{known}]"),
            ));
        };
        let endpoint = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
        let port = node.value().at(&endpoint).and_then(Value::as_i64);
        let port = port.filter(|port| *port > 0).unwrap_or(DEFAULT_PORT);
        Ok(Location {
            url: format!("https://{}", authority(host, &port.to_string())),
            host: host.to_owned(),
            port: port.to_string(),
        })
    }

    /// Finds the kubelet of a pod; `None` for a pod without a node.
    pub(crate) fn of_pod(
        &self,
        objects: &dyn Lookup,
        pod: &Object,
    ) -> Result<Option<Location>, Status> {
        if let Some(url) = pod.annotation(KUBELET_URL) {
            return annotated(url).map(Some);
        }
        match text(pod.value(), &["spec", "nodeName"]) {
            "" => Ok(None),
            node => self.of_node(objects, node).map(Some),
        }
    }
}

fn annotated(url: &str) -> Result<Location, Status> {
    let bad = || {
        Status::bad_request(format!(
            "the annotation {KUBELET_URL} is not an http or https URL: {url:?}"
        ))
    };
    let uri: http::Uri = url.parse().map_err(|_| bad())?;
    let usual = usual_port(&uri).ok_or_else(bad)?;
    let host = uri
        .host()
        .filter(|host| !host.is_empty() && uri.query().is_none());
    Ok(Location {
        url: url.trim_end_matches('/').to_owned(),
        host: host.ok_or_else(bad)?.to_owned(),
        port: uri.port_u16().unwrap_or(usual).to_string(),
    })
}

fn usual_port(uri: &http::Uri) -> Option<u16> {
    match uri.scheme_str()? {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    }
}

/// Returns host and port of a URL. Both together identify a server, whatever the path.
fn server_of(url: &str) -> String {
    let uri = url.parse::<http::Uri>().ok();
    let server = uri.and_then(|uri| {
        let port = uri.port_u16().or_else(|| usual_port(&uri))?;
        Some(format!("{}:{port}", uri.host()?.to_ascii_lowercase()))
    });
    // URLs without a host and port are never called.
    server.unwrap_or_default()
}

/// Joins host and port; puts an IPv6 address in brackets.
pub(crate) fn authority(host: &str, port: &str) -> String {
    let host = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    match port {
        "" => host,
        port => format!("{host}:{port}"),
    }
}

impl Kubelets {
    /// Finds the kubelet of the requested pod.
    fn located(&self, visit: &Visit, pod: &Object) -> Result<Location, Status> {
        let location = self.of_pod(visit.question.access.objects(), pod)?;
        location.ok_or_else(|| {
            Status::bad_request(format!("pod {} does not have a host assigned", pod.name()))
        })
    }

    async fn command(
        self,
        subresource: &'static str,
        mut visit: Visit,
    ) -> Result<bareboat_server::reply::Response, Status> {
        let opening = Opening::of(&visit);
        let mut options = handlers::command_options(opening, subresource).await?;
        let pod = handlers::pod(visit.object.take())?;
        options.container = crate::objects::container(&pod, &options.container)?;
        let location = self.located(&visit, &pod)?;
        let path = [subresource, pod.namespace(), pod.name(), &options.container];
        let target = connect::target(&path, &options.for_kubelet());
        let upstream = self.upstream(&location.url, false);
        connect::command(visit, &upstream, &target, options.with_terminal_rules()).await
    }

    async fn ports(self, mut visit: Visit) -> Result<bareboat_server::reply::Response, Status> {
        let opening = Opening::of(&visit);
        let ports = handlers::port_options(opening).await?;
        let pod = handlers::pod(visit.object.take())?;
        let location = self.located(&visit, &pod)?;
        let mut query = String::new();
        if !ports.is_empty() {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            crate::options::add(&mut query, "port", &ports.join(","));
        }
        let path = ["portForward", pod.namespace(), pod.name()];
        let target = connect::target(&path, &query);
        let upstream = self.upstream(&location.url, false);
        connect::ports(visit, &upstream, &target).await
    }
}

#[cfg(test)]
mod tests;
