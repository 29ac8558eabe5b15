//! Parses a URL: group, version, resource, namespace, name, subresource and verb.
//!
//! It does not check whether the resource exists; the catalog does.

use super::options::is_true;
use super::query::{Query, percent_decode};
use bareboat_api::Str;
use bareboat_api::admission::Right;
use bareboat_api::fields::Selector;
use http::Method;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The target of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the request is for a resource; otherwise only `verb` and `path` are set.
    pub is_resource: bool,
    /// The path as sent, decoded.
    pub path: String,
    /// The verb for authorization.
    pub verb: Str,
    /// The API group, empty for core.
    pub group: Str,
    /// The API version, such as `v1`.
    pub version: Str,
    /// The namespace, empty for cluster scope or all namespaces.
    pub namespace: Str,
    /// The resource, such as `pods`.
    pub resource: Str,
    /// The name of the object, empty for collections.
    pub name: Str,
    /// The subresource.
    pub subresource: Str,
    /// Path segments after the subresource.
    pub rest: Vec<Str>,
    /// The field selector of a request for a collection, as it was sent.
    pub field_selector: Str,
    /// The label selector of a request for a collection, as it was sent.
    pub label_selector: Str,
}

/// A path that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPath;

impl RequestInfo {
    /// Returns the request that a right is needed for.
    pub fn of_right(right: Right<'_>) -> RequestInfo {
        RequestInfo {
            is_resource: true,
            verb: Str::new(right.verb),
            group: Str::new(right.group),
            resource: Str::new(right.resource),
            subresource: Str::new(right.subresource),
            namespace: Str::new(right.namespace),
            name: Str::new(right.name),
            ..RequestInfo::default()
        }
    }

    /// Parses method, path and query.
    pub fn parse(method: &Method, path: &str, query: &Query) -> Result<RequestInfo, MalformedPath> {
        let decoded = percent_decode(path).ok_or(MalformedPath)?;
        let is_plain = matches!(decoded, Cow::Borrowed(_));
        let mut info = RequestInfo {
            path: decoded.into_owned(),
            verb: match *method {
                Method::GET => Str::const_new("get"),
                _ => Str::new(method.as_str().to_ascii_lowercase()),
            },
            ..RequestInfo::default()
        };
        // Split before decoding, so that an escaped slash stays inside its segment. If the path can be decoded, so can its
        // segments.
        let mut parts = SmallVec::<[Cow<'_, str>; 10]>::new();
        for part in segments(path.trim_matches('/')) {
            parts.push(match is_plain {
                true => Cow::Borrowed(part),
                false => percent_decode(part).ok_or(MalformedPath)?,
            });
        }
        let (grouped, mut parts) = match parts.split_first() {
            Some((first, rest)) if first == "api" && rest.len() >= 2 => (false, rest),
            Some((first, rest)) if first == "apis" && rest.len() >= 3 => (true, rest),
            _ => return Ok(info),
        };
        let mut next = || match parts.split_first() {
            Some((first, rest)) => {
                parts = rest;
                Str::new(first)
            }
            None => Str::default(),
        };
        info.is_resource = true;
        if grouped {
            info.group = next();
        }
        info.version = next();

        let legacy = parts.len() > 1 && matches!(&*parts[0], "watch" | "proxy");
        if legacy {
            info.verb = Str::new(&parts[0]);
            parts = &parts[1..];
        } else {
            info.verb = Str::const_new(verb_of(method));
        }
        if parts[0] == "namespaces" && parts.len() > 1 {
            info.namespace = Str::new(&parts[1]);
            // `namespaces/a/status` is a subresource of the namespace, not a resource in it.
            if parts.len() > 2 && !matches!(&*parts[2], "status" | "finalize") {
                parts = &parts[2..];
            }
        }
        let mut parts = parts.iter().map(Str::new);
        info.resource = parts.next().unwrap_or_default();
        info.name = parts.next().unwrap_or_default();
        if info.verb != "proxy" {
            info.subresource = parts.next().unwrap_or_default();
        }
        info.rest = parts.collect();
        info.refine_verb(legacy, query);
        if info.is_collection() {
            let text = |key: &str| query.get(key).map(Str::new).unwrap_or_default();
            info.field_selector = text("fieldSelector");
            info.label_selector = text("labelSelector");
        }
        Ok(info)
    }

    /// Turns `get` and `delete` of a collection into `list`, `watch` or `deletecollection`.
    fn refine_verb(&mut self, legacy: bool, query: &Query) {
        if self.name.is_empty() && self.verb == "delete" {
            self.verb = Str::const_new("deletecollection");
            return;
        }
        let collection = self.name.is_empty() && self.verb == "get";
        let old_watch = legacy && self.verb == "watch" && self.name.is_empty();
        if !collection && !old_watch {
            return;
        }
        if collection {
            let watch = query.get("watch").is_some_and(is_true);
            self.verb = Str::const_new(if watch { "watch" } else { "list" });
        }
        // With a selector that pins the name, a rule for that one object authorizes the request.
        let pinned = query
            .get("fieldSelector")
            .and_then(|text| Selector::parse(text).ok())
            .and_then(|selector| selector.pinned("metadata.name").map(Str::new));
        if let Some(name) = pinned.filter(|name| is_path_segment(name)) {
            self.name = name;
        }
    }

    /// Returns whether the target is a collection rather than an object, whatever a selector pins.
    pub fn is_collection(&self) -> bool {
        matches!(self.verb.as_str(), "list" | "watch" | "deletecollection")
    }

    /// Returns whether the verb has no time limit. Long-running subresources are data of their kinds.
    pub fn is_long_running(&self) -> bool {
        matches!(self.verb.as_str(), "watch" | "proxy")
    }
}

/// Splits a path at its slashes. Segments are short, so a loop over bytes takes less time than a search.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest?;
        match path.bytes().position(|byte| byte == b'/') {
            Some(end) => {
                rest = path.get(end + 1..);
                path.get(..end)
            }
            None => rest.take(),
        }
    })
}

fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, url: &str, expected: &str) {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query = Query::parse(query).expect("a well-formed query");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let info = RequestInfo::parse(&method, path, &query).expect("a well-formed path");
        let shown = format!(
            "{} {}/{}/{} ns={} name={} sub={}",
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.namespace,
            info.name,
            info.subresource
        );
        assert_eq!(shown.replace("//", "/"), expected, "{method} {url}");
    }

    #[test]
    fn reads_every_shape_of_resource_path() {
        check(
            "GET",
            "/api/v1/namespaces",
            "list /v1/namespaces ns= name= sub=",
        );
        check(
            "GET",
            "/api/v1/namespaces/a",
            "get /v1/namespaces ns=a name=a sub=",
        );
        check(
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "update /v1/namespaces ns=a name=a sub=finalize",
        );
        check(
            "PATCH",
            "/api/v1/namespaces/a/status/",
            "patch /v1/namespaces ns=a name=a sub=status",
        );
        check(
            "GET",
            "/api/v1/namespaces/a/configmaps/b%3Ac",
            "get /v1/configmaps ns=a name=b:c sub=",
        );
        check(
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments?fieldSelector=metadata.name%3Db",
            "deletecollection apps/v1/deployments ns=a name= sub=",
        );
        check(
            "GET",
            "/apis/apps/v1/deployments?watch&fieldSelector=metadata.name%3Db",
            "watch apps/v1/deployments ns= name=b sub=",
        );
        check(
            "GET",
            "/api/v1/watch/namespaces/a/pods",
            "watch /v1/pods ns=a name= sub=",
        );
        check(
            "GET",
            "/api/v1/pods?watch=0",
            "list /v1/pods ns= name= sub=",
        );
        check(
            "GET",
            "/api/v1/pods?watch=False",
            "list /v1/pods ns= name= sub=",
        );
    }

    #[test]
    fn other_paths_are_not_resources() {
        for path in [
            "/",
            "/api",
            "/apis",
            "/api/v1",
            "/apis/apps",
            "/apis/apps/v1",
            "/metrics",
        ] {
            let info = RequestInfo::parse(&Method::GET, path, &Query::default());
            let info = info.expect("a well-formed path");
            assert!(!info.is_resource, "{path}");
            assert_eq!(info.verb, "get");
        }
    }
}
