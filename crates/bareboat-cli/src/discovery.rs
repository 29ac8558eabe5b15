//! Finds a resource in the discovery documents of a server, by any of its names.

use crate::client::Client;
use bareboat::api::{Status, Value};

/// The media type of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A resource that a server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
}

/// Looks for a resource by its plural, singular or short name or its kind, with or without its group:
/// `posts`, `post.blog.example.com`, `posts.v1.blog.example.com`. Without a version it is the preferred one.
pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<Served>, Status> {
    for path in ["/api", "/apis"] {
        let document = client.get(path, AGGREGATED).await?;
        if let Some(found) = lookup(&document, name) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Looks for a resource in one document.
pub(crate) fn lookup(document: &Value, name: &str) -> Option<Served> {
    let (short, rest) = match name.split_once('.') {
        Some((short, rest)) => (short, Some(rest)),
        None => (name, None),
    };
    let short = short.to_lowercase();
    for item in items(document, "items") {
        let group = text(item, &["metadata", "name"]);
        for version in items(item, "versions") {
            let own = text(version, &["version"]);
            // `core` is written `posts.v1.`; a trailing dot does not matter.
            let wanted = |rest: &str| {
                rest == group
                    || rest.trim_end_matches('.') == format!("{own}.{group}").trim_end_matches('.')
            };
            if rest.is_some_and(|rest| !wanted(rest)) {
                continue;
            }
            for resource in items(version, "resources") {
                let served = Served {
                    group: group.to_owned(),
                    version: own.to_owned(),
                    kind: text(resource, &["responseKind", "kind"]).to_owned(),
                    plural: text(resource, &["resource"]).to_owned(),
                    singular: text(resource, &["singularResource"]).to_owned(),
                    namespaced: text(resource, &["scope"]) == "Namespaced",
                };
                let by_short = items(resource, "shortNames")
                    .iter()
                    .any(|name| name.as_str() == Some(&short));
                let by_name = [&served.plural, &served.singular].contains(&&short);
                if by_name || by_short || served.kind.to_lowercase() == short {
                    return Some(served);
                }
            }
        }
    }
    None
}

/// The elements of a member that is a list.
pub(crate) fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    value.at(path).and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat::api::value;

    #[test]
    fn a_resource_is_found_by_any_of_its_names() {
        let document = value!({"items": [{
            "metadata": {"name": "blog.example.com"},
            "versions": [
                {"version": "v2", "resources": [{"resource": "posts", "singularResource": "post", "scope": "Namespaced",
                    "responseKind": {"kind": "Post"}, "shortNames": ["po"]}]},
                {"version": "v1", "resources": [{"resource": "posts", "singularResource": "post", "scope": "Namespaced",
                    "responseKind": {"kind": "Post"}}]}
            ]
        }]});
        for name in [
            "posts",
            "post",
            "po",
            "Post",
            "posts.blog.example.com",
            "posts.v2.blog.example.com",
        ] {
            let found = lookup(&document, name);
            assert_eq!(
                found.map(|found| found.version).as_deref(),
                Some("v2"),
                "{name}"
            );
        }
        let older = lookup(&document, "posts.v1.blog.example.com");
        assert_eq!(older.map(|found| found.version).as_deref(), Some("v1"));
        for name in ["boats", "posts.example.com", "posts.v3.blog.example.com"] {
            assert_eq!(lookup(&document, name), None, "{name}");
        }
    }
}
