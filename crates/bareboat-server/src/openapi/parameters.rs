//! The parameters of operations: names, types and descriptions.

use bareboat_api::Str;
use bareboat_api::facts::{Field, Type};

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterIn {
    /// In the path.
    Path,
    /// In the query.
    Query,
}

/// One parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// The name.
    pub(super) name: Str,
    /// The location.
    pub(super) location: ParameterIn,
    /// `string`, `integer` or `boolean`.
    pub(super) ty: &'static str,
    /// The description.
    pub(super) description: String,
    /// Whether it is an option of a connection, rather than a parameter of many operations.
    pub(super) is_option: bool,
}

impl Parameter {
    /// The name of an object of the kind.
    pub(super) fn name(kind: &str) -> Parameter {
        Parameter {
            name: Str::const_new("name"),
            location: ParameterIn::Path,
            ty: "string",
            description: format!("name of the {kind}"),
            is_option: false,
        }
    }

    /// The path after a subresource.
    pub(super) fn path() -> Parameter {
        Parameter {
            name: Str::const_new("path"),
            location: ParameterIn::Path,
            ty: "string",
            description: "path to the resource".to_owned(),
            is_option: false,
        }
    }

    /// The namespace of objects.
    pub(super) fn namespace() -> Parameter {
        Parameter {
            name: Str::const_new("namespace"),
            location: ParameterIn::Path,
            ty: "string",
            description: "The namespace the objects live in.".to_owned(),
            is_option: false,
        }
    }

    /// An option of a connection, in the query. Lists are given by repeating it.
    pub(super) fn option(field: &Field, options: &str) -> Parameter {
        let ty = match field.ty {
            Type::Bool => "boolean",
            Type::Int32 | Type::Int64 => "integer",
            _ => "string",
        };
        Parameter {
            name: field.json.clone(),
            location: ParameterIn::Query,
            ty,
            description: format!("{} of {options}", field.json),
            is_option: true,
        }
    }
}

/// Query parameters by name; [`query`] returns their types and descriptions.
pub(super) type Names = &'static [&'static str];

/// The parameter that asks for indented answers.
pub(super) const PRETTY: &str = "pretty";

/// Parameters of reading a collection.
pub(super) const LIST: Names = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// Parameters of deleting a collection.
pub(super) const DELETE_COLLECTION: Names = &[
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
];

/// Parameters of deleting an object.
pub(super) const DELETE: Names = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// Parameters of creating and replacing an object.
pub(super) const WRITE: Names = &["dryRun", "fieldManager", "fieldValidation"];

/// Parameters of patching an object.
pub(super) const PATCH: Names = &["dryRun", "fieldManager", "fieldValidation", "force"];

/// Returns the query parameter of that name.
pub(super) fn query(name: &'static str) -> Parameter {
    let (ty, description) = described(name);
    Parameter {
        name: Str::const_new(name),
        location: ParameterIn::Query,
        ty,
        description: description.to_owned(),
        is_option: false,
    }
}

fn described(name: &str) -> (&'static str, &'static str) {
    match name {
        "allowWatchBookmarks" => (
            "boolean",
            "On a watch: also send BOOKMARK events, which carry nothing but a newer resourceVersion.",
        ),
        "continue" => (
            "string",
            "Goes on where an earlier part of the list ended: the continue value of that part's \
             metadata. A value that is too old is answered with 410.",
        ),
        "dryRun" => (
            "string",
            "With the value All everything is checked as if the request were carried out, but \
             nothing is stored.",
        ),
        "fieldManager" => (
            "string",
            "Who is writing: the name under which fields are kept in managedFields. At most 128 \
             printable characters; server-side apply must name one.",
        ),
        "fieldSelector" => ("string", "Selects objects by the values of their fields."),
        "fieldValidation" => (
            "string",
            "What to do about unknown and duplicate fields: Ignore drops them, Warn drops them and \
             sends a warning for each, Strict refuses the request. Warn if not given.",
        ),
        "force" => (
            "boolean",
            "On server-side apply: take over fields that other managers own instead of failing.",
        ),
        "gracePeriodSeconds" => (
            "integer",
            "How many seconds the object may take to end; 0 means now.",
        ),
        "ignoreStoreReadErrorWithClusterBreakingPotential" => (
            "boolean",
            "Delete the object even though it cannot be read from storage, skipping all checks.",
        ),
        "labelSelector" => ("string", "Selects objects by their labels."),
        "limit" => (
            "integer",
            "The most objects one answer should hold; if there are more, the answer says how to \
             continue.",
        ),
        "orphanDependents" => (
            "boolean",
            "Old form of propagationPolicy: whether dependents stay.",
        ),
        "pretty" => (
            "string",
            "With the value true the answer is indented for people; so it is without asking for \
             browsers and the like.",
        ),
        "propagationPolicy" => (
            "string",
            "What becomes of dependents: Orphan leaves them, Background deletes them afterwards, \
             Foreground before.",
        ),
        "resourceVersion" => (
            "string",
            "How fresh the answer must be, or where a watch starts: nothing means the latest \
             state, 0 any state, else a state seen before.",
        ),
        "resourceVersionMatch" => (
            "string",
            "How resourceVersion is meant on a list: Exact or NotOlderThan.",
        ),
        "sendInitialEvents" => (
            "boolean",
            "On a watch: begin with an ADDED event for every object there is, then a BOOKMARK. \
             Needs resourceVersionMatch=NotOlderThan.",
        ),
        "timeoutSeconds" => (
            "integer",
            "After how many seconds the request ends, whatever happens.",
        ),
        "watch" => ("boolean", "Follow changes instead of listing."),
        _ => ("string", ""),
    }
}
