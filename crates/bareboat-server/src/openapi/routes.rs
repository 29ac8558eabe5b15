//! Paths and operations, before they are written in one version of OpenAPI or the other.

mod builder;

use super::Sources;
use super::names::{META, operation_scope, root, tag};
use super::parameters::{Names, Parameter};
use bareboat_api::kind::Version;
use bareboat_api::{Kind, Str, Value, value};
use builder::Builder;

/// A path and what can be done there.
#[derive(Debug)]
pub(super) struct Route {
    /// The path, with names in braces.
    pub(super) path: String,
    /// Parameters of every operation.
    pub(super) parameters: Vec<Parameter>,
    /// The operations by method, in lower case.
    pub(super) operations: Vec<(&'static str, Operation)>,
}

/// One operation.
#[derive(Debug)]
pub(super) struct Operation {
    /// The name, unique in a document.
    pub(super) id: String,
    /// What it does.
    pub(super) description: String,
    /// The tag.
    pub(super) tag: String,
    /// The action and what it acts on; nothing for discovery.
    pub(super) action: Option<(&'static str, Value)>,
    /// Names of query parameters.
    pub(super) query: Names,
    /// The request body.
    pub(super) body: Option<Body>,
    /// The media types of answers.
    pub(super) produces: &'static [&'static str],
    /// The type of answers.
    pub(super) answer: Answer,
    /// The codes of good answers.
    pub(super) codes: &'static [u16],
}

/// A request body.
#[derive(Debug)]
pub(super) struct Body {
    /// The definition of its type.
    pub(super) definition: Str,
    /// The media types it may be written in.
    pub(super) media: &'static [&'static str],
    /// Whether it must be there.
    pub(super) required: bool,
}

/// The type of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// What a definition says.
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

/// The paths of a kind in one version.
pub(super) fn of(kind: &Kind, version: &Version, sources: &Sources) -> Vec<Route> {
    Builder::new(kind, version, sources).routes()
}

/// The path that lists the resources of a version.
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

/// An operation of discovery; its name is for the caller to fill in.
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

/// The extension that says what an operation or a schema is about.
pub(super) fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    value!({"group": group, "version": version, "kind": kind})
}
