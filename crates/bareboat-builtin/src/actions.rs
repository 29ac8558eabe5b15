//! What is posted to built-in kinds and acted upon: pods are bound to nodes and evicted from them.
//!
//! Tokens of service accounts are issued by whoever holds a key; running things inside containers is not done here
//! at all.

mod binding;
mod conditions;
mod eviction;

pub(crate) use binding::Binding;
pub(crate) use eviction::Eviction;

use crate::shape::BuiltinShape;
use crate::typed::Empties;
use crate::{defaults, facts};
use bareboat_api::Str;
use bareboat_api::kind::{Form, Place};
use std::sync::Arc;

/// The form of a kind in a group and version of the table of facts.
pub(crate) fn form(group: &str, version: &str, kind: &str) -> Form {
    let message = facts::kind(group, version, kind).expect("the table of facts has every kind");
    let api_version = match group {
        "" => Str::new(version),
        _ => Str::new(format!("{group}/{version}")),
    };
    Form {
        api_version,
        kind: Str::new(kind),
        shape: Arc::new(BuiltinShape::new(message, defaults::none, Empties::Null)),
    }
}

/// Where a pod is.
fn pod<'a>(namespace: &'a str, name: &'a str) -> Place<'a> {
    Place {
        group: "",
        resource: "pods",
        namespace,
        name,
    }
}
