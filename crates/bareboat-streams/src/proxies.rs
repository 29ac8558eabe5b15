//! Serves `pods/proxy`, `services/proxy` and `nodes/proxy`: forwards requests to an HTTP server.
//!
//! The name in the URL may include a scheme and a port: `web`, `web:8080`, `https:web:8443`.

use crate::kubelet::{Kubelets, authority};
use crate::objects::{self, list, resource, text};
use bareboat_api::resolver::ServiceResolver as _;
use bareboat_api::{Status, Value};
use bareboat_builtin::services::ServiceEndpoints;
use bareboat_server::reply::{Body, Response};
use bareboat_server::{Upstream, Visit};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use std::net::IpAddr;

/// The parts of such a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    scheme: String,
    name: String,
    port: String,
}

fn split(id: &str, kind: &str) -> Result<Named, Status> {
    let parts: Vec<&str> = id.split(':').collect();
    let (scheme, name, port) = match parts[..] {
        [name] => ("", name, ""),
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => ("", "", ""),
    };
    // Only these characters may become part of the host of a URL.
    let is_clean = port
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if name.is_empty() || !matches!(scheme, "" | "http" | "https") || !is_clean {
        return Err(Status::bad_request(format!(
            "invalid {kind} request {id:?}"
        )));
    }
    Ok(Named {
        scheme: if scheme.is_empty() { "http" } else { scheme }.to_owned(),
        name: name.to_owned(),
        port: port.to_owned(),
    })
}

/// Forwards a request to a port of a pod.
pub(crate) async fn pod(kubelets: Kubelets, visit: Visit) -> Result<Response, Status> {
    let named = split(&visit.question.name, "pod")?;
    let pod = {
        let objects = visit.question.access.objects();
        objects::pod(objects, &visit.question.namespace, &named.name)?
    };
    let containers = list(pod.value(), &["spec", "containers"]).iter();
    let declared = containers
        .filter_map(|container| list(container, &["ports"]).first())
        .find_map(|port| port.get("containerPort").and_then(Value::as_i64));
    let port = match (named.port.as_str(), declared) {
        ("", Some(port)) => port.to_string(),
        (port, _) => port.to_owned(),
    };
    let ip = text(pod.value(), &["status", "podIP"]);
    if ip.parse::<IpAddr>().is_err() {
        return Err(Status::bad_request("address not allowed"));
    }
    let url = format!("{}://{}", named.scheme, authority(ip, &port));
    forward(kubelets.other(&url), &url, visit).await
}

/// Forwards a request to an endpoint of a service.
pub(crate) async fn service(kubelets: Kubelets, visit: Visit) -> Result<Response, Status> {
    let named = split(&visit.question.name, "service")?;
    let url = {
        let objects = visit.question.access.objects();
        let namespace = &visit.question.namespace;
        let service = objects.get("core/services", namespace, &named.name);
        let service =
            service.ok_or_else(|| Status::not_found(resource("services"), &named.name))?;
        let mut ports = list(service.value(), &["spec", "ports"]).iter();
        let number = |port: &Value| port.get("port").and_then(Value::as_i64);
        let port = match named.port.parse::<i64>() {
            Ok(wanted) => {
                let found = ports.find(|port| number(port) == Some(wanted));
                found.ok_or_else(|| {
                    Status::unavailable(format!(
                        "no service port {wanted} found for service {:?}",
                        named.name
                    ))
                })?
            }
            Err(_) => {
                let found = ports.find(|port| text(port, &["name"]) == named.port);
                found.ok_or_else(|| no_endpoints(&visit.question.name))?
            }
        };
        let port = number(port).and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| no_endpoints(&named.name))?;
        let resolver = ServiceEndpoints::default();
        let endpoints = resolver.endpoints(namespace, &named.name, port, objects);
        let endpoints = endpoints.map_err(Status::unavailable)?;
        let endpoint = endpoints.first().ok_or_else(|| no_endpoints(&named.name))?;
        let at = authority(&endpoint.host, &endpoint.port.to_string());
        format!("{}://{at}", named.scheme)
    };
    forward(kubelets.other(&url), &url, visit).await
}

fn no_endpoints(name: &str) -> Status {
    Status::unavailable(format!("no endpoints available for service {name:?}"))
}

/// Forwards a request to the kubelet of a node, or to another port of the node.
pub(crate) async fn node(kubelets: Kubelets, visit: Visit) -> Result<Response, Status> {
    let named = split(&visit.question.name, "node")?;
    let location = kubelets.of_node(visit.question.access.objects(), &named.name)?;
    if named.port.is_empty() || named.port == location.port {
        let upstream = kubelets.upstream(&location.url, false);
        return forward(upstream, &location.url, visit).await;
    }
    let url = format!(
        "{}://{}",
        named.scheme,
        authority(&location.host, &named.port)
    );
    forward(kubelets.other(&url), &url, visit).await
}

/// Splits a path after its segment `proxy`, which is the eighth segment in a namespace and the sixth otherwise.
fn cut(path: &str) -> (&str, &str) {
    let segments = match path.split('/').nth(3) {
        Some("namespaces") => 8,
        _ => 6,
    };
    let end = path
        .match_indices('/')
        .nth(segments - 1)
        .map_or(path.len(), |(at, _)| at);
    path.split_at(end)
}

async fn forward(to: Upstream, url: &str, visit: Visit) -> Result<Response, Status> {
    let uri = visit.request.uri().clone();
    let (prefix, path) = cut(uri.path());
    let query = uri.query().map(|query| format!("?{query}"));
    let query = query.unwrap_or_default();
    if path.is_empty() && matches!(*visit.request.method(), Method::GET | Method::HEAD) {
        return Ok(moved(&format!("{prefix}/{query}")));
    }
    let path = if path.is_empty() { "/" } else { path };
    let target = format!("{path}{query}");
    let mut response = visit.calls.forward(&to, &target, visit.request).await?;
    if let Some(location) = response.headers().get(header::LOCATION)
        && let Some(location) = within(location, prefix, url)
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

fn moved(to: &str) -> Response {
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

/// Converts a redirect of the server to a path below the proxy; returns `None` if the redirect leads to another server.
fn within(location: &HeaderValue, prefix: &str, url: &str) -> Option<HeaderValue> {
    let target: Uri = location.to_str().ok()?.parse().ok()?;
    let own: Uri = url.parse().ok()?;
    if target.host().is_some() && target.authority() != own.authority() {
        return None;
    }
    let path = target.path_and_query()?.as_str();
    if !path.starts_with('/') {
        return None;
    }
    HeaderValue::from_str(&format!("{prefix}{path}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_scheme_and_a_port() {
        let parts = |id: &str| split(id, "pod").map(|it| (it.scheme, it.name, it.port));
        let of = |a: &str, b: &str, c: &str| Ok((a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(parts("web"), of("http", "web", ""));
        assert_eq!(parts("web:80"), of("http", "web", "80"));
        assert_eq!(parts("https:web:"), of("https", "web", ""));
        for bad in ["", ":80", "ftp:web:1", "a:b:c:d", "web:1@evil", "web:80/x"] {
            let status = parts(bad).expect_err(bad);
            assert_eq!(status.message, format!("invalid pod request {bad:?}"));
        }
    }

    #[test]
    fn paths_are_cut_after_the_subresource() {
        let node = "/api/v1/nodes/n/proxy";
        assert_eq!(cut(node), (node, ""));
        assert_eq!(cut("/api/v1/nodes/n/proxy/a/proxy/b"), (node, "/a/proxy/b"));
        let pod = "/api/v1/namespaces/proxy/pods/proxy/proxy";
        assert_eq!(cut(&format!("{pod}/x/")), (pod, "/x/"));
    }

    #[test]
    fn redirects_stay_below_the_proxy() {
        let within = |to: &'static str| {
            let value = HeaderValue::from_static(to);
            let found = within(&value, "/p/proxy", "http://10.0.0.1:80");
            found.map(|value| value.to_str().expect("text").to_owned())
        };
        assert_eq!(within("/login?a=b"), Some("/p/proxy/login?a=b".to_owned()));
        assert_eq!(
            within("http://10.0.0.1:80/x"),
            Some("/p/proxy/x".to_owned())
        );
        assert_eq!(within("http://other/x"), None);
    }
}
