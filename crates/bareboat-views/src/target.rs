//! What a path below the prefix is about: a member or all of them, and a path of the Kubernetes API.

use bareboat_server::request::info::RequestInfo;
use bareboat_server::request::query::Query;
use http::Method;

/// The API group of the views.
pub const GROUP: &str = "clusterpedia.io";
/// Its version.
pub const VERSION: &str = "v1beta1";
/// The resource whose paths are the views.
pub const RESOURCES: &str = "resources";
/// The resource with several types at once.
pub const COLLECTIONS: &str = "collectionresources";

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A collection of types by name; empty for the list of collections.
    Collection(String),
    /// A path in a view.
    View {
        /// The member; `None` for all.
        member: Option<String>,
        /// What is asked for there.
        what: What,
    },
}

/// What is asked for in a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The paths of the view.
    Root,
    /// `version`
    Version,
    /// `api`, `apis` and what is below them, without resources.
    Discovery(Vec<String>),
    /// `openapi` and what is below it.
    OpenApi,
    /// A resource.
    Resource(Box<RequestInfo>),
    /// Nothing that is served.
    Nothing,
}

impl Target {
    /// Reads the target of a request; `None` if it is not for the views.
    pub(crate) fn parse(method: &Method, outer: &RequestInfo, query: &Query) -> Option<Target> {
        if !outer.is_resource
            || outer.group != GROUP
            || outer.version != VERSION
            || !outer.namespace.is_empty()
        {
            return None;
        }
        let segments = segments(outer);
        match outer.resource.as_str() {
            COLLECTIONS if *method == Method::GET && segments.len() <= 1 => (outer.verb != "watch")
                .then(|| {
                    Target::Collection(segments.into_iter().next().unwrap_or_default().to_owned())
                }),
            RESOURCES => Some(match segments.as_slice() {
                ["clusters", member, rest @ ..] => Target::View {
                    member: Some((*member).to_owned()),
                    what: What::parse(method, rest, query),
                },
                rest => Target::View {
                    member: None,
                    what: What::parse(method, rest, query),
                },
            }),
            _ => None,
        }
    }
}

impl What {
    fn parse(method: &Method, segments: &[&str], query: &Query) -> What {
        if segments.iter().any(|segment| segment.is_empty()) {
            return What::Nothing;
        }
        match segments {
            [] => return What::Root,
            ["version"] => return What::Version,
            ["openapi", ..] => return What::OpenApi,
            ["api" | "apis", ..] => {}
            _ => return What::Nothing,
        }
        match RequestInfo::parse(method, &inner_path(segments), query) {
            Ok(info) if info.is_resource => What::Resource(Box::new(info)),
            Ok(_) => What::Discovery(segments.iter().map(|text| (*text).to_owned()).collect()),
            Err(_) => What::Nothing,
        }
    }
}

/// Returns the segments after the resource.
fn segments(outer: &RequestInfo) -> Vec<&str> {
    // A field selector may pin the name of a collection, which is not in the path then.
    if outer.is_collection() {
        return Vec::new();
    }
    let first = [outer.name.as_str(), outer.subresource.as_str()];
    let first = first.into_iter().filter(|segment| !segment.is_empty());
    first
        .chain(outer.rest.iter().map(|segment| segment.as_str()))
        .collect()
}

/// Returns the path that these segments make.
pub(crate) fn inner_path(segments: &[&str]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        for byte in segment.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&byte) {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    path
}

/// Returns the path of a request in its member.
pub(crate) fn member_path(outer: &RequestInfo) -> String {
    match segments(outer).as_slice() {
        ["clusters", _, rest @ ..] => inner_path(rest),
        rest => inner_path(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, What, member_path};
    use bareboat_server::request::info::RequestInfo;
    use bareboat_server::request::query::Query;
    use http::Method;

    const PREFIX: &str = "/apis/clusterpedia.io/v1beta1/";

    fn outer(path: &str) -> RequestInfo {
        let path = format!("{PREFIX}{path}");
        RequestInfo::parse(&Method::GET, &path, &Query::default()).expect("the path is fine")
    }

    fn target(path: &str) -> Target {
        let target = Target::parse(&Method::GET, &outer(path), &Query::default());
        target.expect("the path is for the views")
    }

    #[test]
    fn paths_are_read() {
        let Target::View {
            member,
            what: What::Resource(info),
        } = target("resources/clusters/c1/apis/apps/v1/namespaces/a/deployments/x/scale")
        else {
            panic!("it is a resource");
        };
        assert_eq!(member.as_deref(), Some("c1"));
        assert_eq!((&*info.group, &*info.resource), ("apps", "deployments"));
        assert_eq!((&*info.namespace, &*info.name), ("a", "x"));
        assert_eq!(info.subresource, "scale");
        let what = |path: &str| match target(path) {
            Target::View { what, .. } => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what("resources/version"), What::Version);
        assert_eq!(what("resources/clusters/c1"), What::Root);
        assert!(matches!(what("resources/apis/apps/v1"), What::Discovery(path) if path.len() == 3));
        assert_eq!(what("resources/metrics"), What::Nothing);
        assert_eq!(
            target("collectionresources/any"),
            Target::Collection("any".to_owned())
        );
    }

    #[test]
    fn the_path_in_the_member_is_kept() {
        let info = outer("resources/clusters/c1/api/v1/namespaces/a/pods/x%3Ay/log");
        assert_eq!(member_path(&info), "/api/v1/namespaces/a/pods/x:y/log");
    }
}
