//! The discovery paths of groups and versions, and the server's version.

use super::names::{group_tag, identifier};
use super::routes::{Answer, Operation, Route, discovery};
use bareboat_api::Str;

/// `/api/`.
pub(super) fn core() -> Route {
    let operation = discovery(
        "get available API versions",
        "core".to_owned(),
        "APIVersions",
    );
    route("/api/", "getCoreAPIVersions", operation)
}

/// `/apis/`.
pub(super) fn groups() -> Route {
    let operation = discovery(
        "get available API versions",
        "apis".to_owned(),
        "APIGroupList",
    );
    route("/apis/", "getAPIVersions", operation)
}

/// `/apis/G/`.
pub(super) fn group(name: &str) -> Route {
    let tag = group_tag(name);
    let id = format!("get{}APIGroup", identifier(&tag, true));
    let operation = discovery("get information of a group", tag, "APIGroup");
    route(&format!("/apis/{name}/"), &id, operation)
}

/// `/version/`.
pub(super) fn version() -> Route {
    let operation = Operation {
        produces: &["application/json"],
        answer: Answer::Definition(Str::const_new("io.k8s.apimachinery.pkg.version.Info")),
        ..discovery("get the version of the server", "version".to_owned(), "")
    };
    route("/version/", "getCodeVersion", operation)
}

fn route(path: &str, id: &str, operation: Operation) -> Route {
    Route {
        path: path.to_owned(),
        parameters: Vec::new(),
        operations: vec![(
            "get",
            Operation {
                id: id.to_owned(),
                ..operation
            },
        )],
    }
}
