//! The schema as a type for merging.

use super::{Flags, Kind, Node, Schema};
use crate::metadata::object_meta;
use bareboat_api::typing::{ListKey, ListType, NodeType, Scalar, TypeNode};

impl TypeNode for Schema {
    fn node_type(&self) -> NodeType {
        match self.root.node_type() {
            // The root always has its type meta and metadata.
            NodeType::Untyped => NodeType::Struct,
            form => form,
        }
    }

    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        match resource_field(name) {
            Some(node) => Some(node),
            None => self.root.field(name),
        }
    }

    fn items(&self) -> Option<&dyn TypeNode> {
        None
    }

    fn is_atomic(&self) -> bool {
        self.root.is_atomic()
    }

    fn preserves_unknown(&self) -> bool {
        self.root.preserves_unknown()
    }
}

impl TypeNode for Node {
    fn node_type(&self) -> NodeType {
        if self.has(Flags::INT_OR_STRING) {
            return NodeType::Scalar;
        }
        match self.kind {
            Kind::Any => NodeType::Untyped,
            Kind::Object if self.has(Flags::EMBEDDED) => NodeType::Struct,
            Kind::Object if !self.properties.is_empty() => NodeType::Struct,
            Kind::Object if self.additional().is_some() => NodeType::Map,
            Kind::Object => NodeType::Untyped,
            Kind::Array => NodeType::List(self.list.unwrap_or(ListType::Atomic)),
            _ => NodeType::Scalar,
        }
    }

    fn scalar(&self) -> Scalar {
        match self.kind {
            _ if self.has(Flags::INT_OR_STRING) => Scalar::Open,
            Kind::Integer | Kind::Number => Scalar::Number,
            Kind::Boolean => Scalar::Boolean,
            // A string with a format may be written as any scalar.
            Kind::String => match self
                .checks
                .as_ref()
                .and_then(|checks| checks.format.as_ref())
            {
                Some((_, name)) if **name != *"byte" => Scalar::Any,
                _ => Scalar::String,
            },
            _ => Scalar::Open,
        }
    }

    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        if self.has(Flags::EMBEDDED)
            && let Some(node) = resource_field(name)
        {
            return Some(node);
        }
        self.member(name).map(|node| node as &dyn TypeNode)
    }

    fn items(&self) -> Option<&dyn TypeNode> {
        self.items.as_deref().map(|node| node as &dyn TypeNode)
    }

    fn list_keys(&self) -> &[ListKey] {
        &self.keys
    }

    fn is_atomic(&self) -> bool {
        self.has(Flags::ATOMIC_MAP)
    }

    fn preserves_unknown(&self) -> bool {
        self.has(Flags::PRESERVE)
    }
}

/// Returns the type of the members that every resource has.
fn resource_field(name: &str) -> Option<&'static dyn TypeNode> {
    match name {
        "metadata" => Some(&*object_meta().root),
        "apiVersion" | "kind" => object_meta().root.field("name"),
        _ => None,
    }
}
