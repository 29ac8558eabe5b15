//! Pod actions that are posted as subresources: binding a pod to a node and evicting a pod.
//!
//! Service account tokens are issued by the server crates. Running commands inside containers is not supported.

mod binding;
mod conditions;
mod eviction;

pub(crate) use binding::Binding;
pub(crate) use eviction::Eviction;

use crate::shape::BuiltinShape;
use crate::typed::Empties;
use crate::{defaults, facts};
use bareboat_api::Str;
use bareboat_api::kind::{ObjectRef, PostedType};
use std::sync::Arc;

/// Returns the type of a posted object, from the table of facts.
pub(crate) fn posted_type(group: &str, version: &str, kind: &str) -> PostedType {
    let message = facts::kind(group, version, kind).expect("the table of facts has every kind");
    let api_version = match group {
        "" => Str::new(version),
        _ => Str::new(format!("{group}/{version}")),
    };
    PostedType {
        api_version,
        kind: Str::new(kind),
        shape: Arc::new(BuiltinShape::new(message, defaults::none, Empties::Null)),
    }
}

/// Returns a reference to a pod.
fn pod<'a>(namespace: &'a str, name: &'a str) -> ObjectRef<'a> {
    ObjectRef {
        group: "",
        resource: "pods",
        namespace,
        name,
    }
}
