//! The table of a collection.

use crate::render::{Renderer, cluster_column};
use bareboat_api::kind::Now;
use bareboat_api::{Object, Value, value};
use bareboat_server::tables::{self, Include};
use bareboat_shelf::{Directory, Item};

/// How rows are printed.
pub(super) struct Rows {
    pub(super) beta: bool,
    pub(super) include: Include,
    pub(super) now: Now,
}

impl Rows {
    /// Returns the row of an object.
    pub(super) fn row(&self, renderer: &Renderer, item: &Item, directory: &Directory) -> Value {
        let object = Object::try_from(renderer.object(item, directory)).unwrap_or_default();
        let age = self.now.since(object.meta_str("creationTimestamp"));
        let age = age.map_or_else(|| Value::string("<unknown>"), Value::from);
        let (asked, narrow) = (&renderer.asked, &item.narrow);
        let cells = value!([
            (directory.member_name(narrow.member)),
            (asked.group.as_str()),
            (asked.version.as_str()),
            (asked.kind.as_str()),
            (narrow.namespace.as_str()),
            (narrow.name.as_str()),
            (age),
        ]);
        let object = match self.include {
            Include::Nothing => Value::Null,
            Include::Metadata => tables::partial(&object, self.beta),
            Include::Object => object.into(),
        };
        value!({"cells": (cells), "object": (object)})
    }
}

/// Returns the columns of the table.
pub(super) fn columns() -> Value {
    let column = |name: &str, format: &str| value!({"name": name, "type": "string", "format": format, "description": name, "priority": 0});
    let mut columns = vec![cluster_column()];
    for name in ["Group", "Version", "Kind", "Namespace"] {
        columns.push(column(name, ""));
    }
    columns.push(column("Name", "name"));
    columns.push(column("Age", ""));
    Value::Array(columns)
}
