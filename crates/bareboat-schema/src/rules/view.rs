//! The view of a schema for CEL.

use crate::schema::{Additional, Flags, Node};
use bareboat_api::Value;
use bareboat_api::typing::ListType;
use bareboat_cel::SchemaView;

impl SchemaView for Node {
    fn schema_type(&self) -> &str {
        self.kind.name()
    }

    fn format(&self) -> &str {
        let checks = self.checks.as_deref();
        let format = checks.and_then(|checks| checks.format.as_ref());
        format.map_or("", |(_, name)| name)
    }

    fn nullable(&self) -> bool {
        self.has(Flags::NULLABLE)
    }

    fn items(&self) -> Option<&dyn SchemaView> {
        self.items.as_deref().map(|node| node as &dyn SchemaView)
    }

    fn additional_properties(&self) -> Option<&dyn SchemaView> {
        self.additional().map(|node| node as &dyn SchemaView)
    }

    fn each_property<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a dyn SchemaView)) {
        for (name, node) in &self.properties {
            visit(name, &**node);
        }
    }

    fn requires(&self, property: &str) -> bool {
        let checks = self.checks.as_deref();
        checks.is_some_and(|checks| checks.requires(property))
    }

    fn has_default(&self) -> bool {
        self.default.is_some()
    }

    fn enum_values(&self) -> &[Value] {
        self.checks.as_deref().map_or(&[], |checks| &checks.choices)
    }

    fn max_length(&self) -> Option<i64> {
        self.checks.as_deref()?.max_length
    }

    fn max_items(&self) -> Option<i64> {
        self.checks.as_deref()?.max_items
    }

    fn max_properties(&self) -> Option<i64> {
        self.checks.as_deref()?.max_properties
    }

    fn int_or_string(&self) -> bool {
        self.has(Flags::INT_OR_STRING)
    }

    fn embedded_resource(&self) -> bool {
        self.has(Flags::EMBEDDED)
    }

    fn list_type(&self) -> &str {
        match self.list {
            None => "",
            Some(ListType::Atomic) => "atomic",
            Some(ListType::Set) => "set",
            Some(ListType::Map) => "map",
        }
    }

    fn list_map_keys(&self) -> Vec<&str> {
        self.keys.iter().map(|key| key.name.as_str()).collect()
    }

    fn preserves_unknown(&self) -> bool {
        self.has(Flags::PRESERVE) || matches!(self.additional, Additional::Allowed(true))
    }
}
