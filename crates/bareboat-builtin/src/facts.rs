//! The table of facts about built-in messages: which fields they have, in JSON and in protobuf.
//!
//! The table is text (`facts/facts.txt`, written by `cargo run -p xtask -- facts`) in the program's read-only data. A
//! message is parsed from its line on first use.
//!
//! After a comment come lines `@group/version package`, then one line for each message:
//! its full name, `*` if it is a kind, `!` if server-side apply takes it as one value, and its fields:
//!
//! ```text
//! name=number:type?+,attribute,…
//! ```
//!
//! - `name` is the JSON name, `~` for a member that Go embeds inline; `number` is protobuf's, 0 for none.
//! - `type` may follow `[]` (a list) or `{}` (a map). Messages are `.Name` in the same package,
//!   `meta.Name` or `core.Name`, or a full name.
//! - `?` marks a pointer, `+` a field that is printed even when it is empty.
//! - attributes: `set`, `map(key;key="default")`, `atomic`, `granular`, `merge`, `merge(key)`,
//!   `replace`, `retainKeys`, `default=json`, `enum(value;value)` with `_` for a space.

mod parse;

use crate::lines::line_of;
use bareboat_api::facts::{LazyMessage, MessageRef};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The whole table: sorted lines.
const TABLE: &str = include_str!("facts/facts.txt");

const META: &str = "k8s.io.apimachinery.pkg.apis.meta.v1";
const CORE: &str = "k8s.io.api.core.v1";

/// Kinds of `meta.k8s.io/v1` that every group and version accepts.
const EVERYWHERE: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// Kinds of `meta.k8s.io/v1` that the core group's `v1` also accepts.
const UNVERSIONED: [&str; 5] = [
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "APIVersions",
    "Status",
];

/// Returns the message of that full name, such as `k8s.io.api.core.v1.ConfigMap`.
pub fn message(name: &str) -> Option<MessageRef> {
    let line = find_message(name)?;
    Some(intern(line))
}

/// Returns the message of a kind, such as `("apps", "v1", "Deployment")`; lists and options included.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<MessageRef> {
    let package = package(group, version);
    if let Some(package) = package
        && let Some(line) = find_message(&format!("{package}.{kind}"))
        && is_kind(line)
    {
        return Some(intern(line));
    }
    let shared = EVERYWHERE.contains(&kind)
        || (group.is_empty() && version == "v1" && UNVERSIONED.contains(&kind));
    // PartialObjectMetadata and Table also exist in the old version of their group.
    let older = group == "meta.k8s.io" && version == "v1beta1";
    if shared || older {
        return message(&format!("{META}.{kind}"));
    }
    None
}

/// Returns the groups and versions in the table, as `("apps", "v1")`, sorted.
pub fn group_versions() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter_map(|line| {
        let (group_version, _) = line.strip_prefix('@')?.split_once(' ')?;
        group_version.split_once('/')
    })
}

/// Returns the names of all kinds of a group and version, lists and options included, sorted.
pub fn kinds(group: &str, version: &str) -> impl Iterator<Item = &'static str> {
    let prefix = package(group, version).map(|package| format!("{package}."));
    TABLE
        .lines()
        .filter(|line| is_kind(line))
        .filter_map(move |line| name_of(line).strip_prefix(prefix.as_deref()?))
        .filter(|kind| !kind.contains('.'))
}

/// Returns the package that declares the kinds of a group and version.
fn package(group: &str, version: &str) -> Option<&'static str> {
    let head = format!("@{group}/{version}");
    let line = line_of(TABLE, &head, |line| line.split(' ').next().unwrap_or(line))?;
    line.split_once(' ').map(|(_, package)| package)
}

/// Returns the message on a line, always the same instance.
fn intern(line: &'static str) -> MessageRef {
    static PLACES: OnceLock<Mutex<HashMap<usize, &'static LazyMessage>>> = OnceLock::new();
    let mut places = PLACES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    // The address of a line in the table is its identity. Messages are never freed, because they refer to each other in
    // cycles.
    let place = places
        .entry(line.as_ptr() as usize)
        .or_insert_with(|| Box::leak(Box::new(LazyMessage::new(line, parse::message))));
    MessageRef::new(place)
}

fn find_message(name: &str) -> Option<&'static str> {
    line_of(TABLE, name, name_of)
}

/// Returns the first word of a message's line without its marks.
fn name_of(line: &str) -> &str {
    head(line).trim_end_matches(['*', '!'])
}

fn head(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}

fn is_kind(line: &str) -> bool {
    !line.starts_with(['@', '#']) && head(line).contains('*')
}

#[cfg(test)]
mod tests;
