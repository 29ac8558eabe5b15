//! Paths and operations, independent of the OpenAPI version.

mod builder;

use super::Sources;
use super::names::{META, operation_scope, root, tag};
use super::parameters::{Names, Parameter};
use bareboat_api::kind::Version;
use bareboat_api::{Kind, Str, Value, value};
use builder::Builder;

/// A path and its operations.
#[derive(Debug)]
pub(super) struct Route {
    /// The path, with parameter names in braces.
    pub(super) path: String,
    /// Parameters of every operation.
    pub(super) parameters: Vec<Parameter>,
    /// The operations by method, in lower case.
    pub(super) operations: Vec<(&'static str, Operation)>,
}

/// An operation of a path: one HTTP method.
#[derive(Debug)]
pub(super) struct Operation {
    /// The name, unique in a document.
    pub(super) id: String,
    /// The description of the operation.
    pub(super) description: String,
    /// The tag, which groups the operations of one group and version.
    pub(super) tag: String,
    /// The action and its group, version and kind; `None` for discovery.
    pub(super) action: Option<(&'static str, Value)>,
    /// The names of the query parameters it supports.
    pub(super) query: Names,
    /// The request body, if the operation has one.
    pub(super) body: Option<Body>,
    /// The media types of answers.
    pub(super) produces: &'static [&'static str],
    /// The type of answers.
    pub(super) answer: Answer,
    /// The codes of successful answers.
    pub(super) codes: &'static [u16],
}

/// A request body.
#[derive(Debug)]
pub(super) struct Body {
    /// The definition of its type.
    pub(super) definition: Str,
    /// The media types it may be written in.
    pub(super) media: &'static [&'static str],
    /// Whether a request without a body is invalid.
    pub(super) required: bool,
}

/// The type of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// An object of the definition with this name.
    Definition(Str),
    /// Plain text.
    Text,
}

/// The media types objects are written in.
const OBJECT: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// Returns the paths of a kind in one version.
pub(super) fn of(kind: &Kind, version: &Version, sources: &Sources) -> Vec<Route> {
    Builder::new(kind, version, sources).routes()
}

/// Returns the path that lists the resources of a version.
pub(super) fn resources(group: &str, version: &str) -> Route {
    let operation = Operation {
        id: format!("get{}APIResources", operation_scope(group, version)),
        ..discovery(
            "get available resources",
            tag(group, version),
            "APIResourceList",
        )
    };
    Route {
        path: format!("/{}/", root(group, version)),
        parameters: Vec::new(),
        operations: vec![("get", operation)],
    }
}

/// Returns a discovery operation; the caller sets its name.
pub(super) fn discovery(description: &str, tag: String, answer: &str) -> Operation {
    Operation {
        id: String::new(),
        description: description.to_owned(),
        tag,
        action: None,
        query: &[],
        body: None,
        produces: OBJECT,
        answer: Answer::Definition(Str::new(format!("{META}{answer}"))),
        codes: &[200],
    }
}

/// Returns the extension with group, version and kind of an operation or a schema.
pub(super) fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    value!({"group": group, "version": version, "kind": kind})
}
