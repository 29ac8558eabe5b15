//! Handwritten types for the tests of this crate.

use bareboat_api::{
    Str, Value,
    typing::{ListKey, ListType, NodeType, PatchStrategy, Scalar, TypeNode},
};
use std::collections::BTreeMap;

/// A type for tests.
#[derive(Clone)]
pub(crate) struct Node {
    form: NodeType,
    fields: BTreeMap<String, Node>,
    items: Option<Box<Node>>,
    keys: Vec<ListKey>,
    atomic: bool,
    open: bool,
    merge: bool,
    merge_key: Option<String>,
    replaces: bool,
    scalar: Scalar,
}

impl Node {
    fn new(form: NodeType) -> Node {
        Node {
            form,
            fields: BTreeMap::new(),
            items: None,
            keys: Vec::new(),
            atomic: false,
            open: false,
            merge: false,
            merge_key: None,
            replaces: false,
            scalar: Scalar::Open,
        }
    }

    pub(crate) fn atomic(mut self) -> Node {
        self.atomic = true;
        self
    }

    /// Makes strategic merge patches merge the list by this key; by value if it is empty.
    pub(crate) fn merging(mut self, key: &str) -> Node {
        self.merge = true;
        self.merge_key = Some(key.to_owned()).filter(|key| !key.is_empty());
        self
    }

    pub(crate) fn taking(mut self, scalar: Scalar) -> Node {
        self.scalar = scalar;
        self
    }

    pub(crate) fn replacing(mut self) -> Node {
        self.replaces = true;
        self
    }
}

impl TypeNode for Node {
    fn node_type(&self) -> NodeType {
        self.form
    }
    fn scalar(&self) -> Scalar {
        self.scalar
    }
    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        match self.form {
            NodeType::Map => self.items.as_deref().map(|node| node as &dyn TypeNode),
            _ => self.fields.get(name).map(|node| node as &dyn TypeNode),
        }
    }
    fn items(&self) -> Option<&dyn TypeNode> {
        self.items.as_deref().map(|node| node as &dyn TypeNode)
    }
    fn list_keys(&self) -> &[ListKey] {
        &self.keys
    }
    fn is_atomic(&self) -> bool {
        self.atomic
    }
    fn preserves_unknown(&self) -> bool {
        self.open
    }
    fn patch_strategy(&self) -> PatchStrategy<'_> {
        PatchStrategy {
            merge: self.merge,
            retain_keys: false,
            merge_key: self.merge_key.as_deref(),
        }
    }
    fn patch_replaces(&self) -> bool {
        self.replaces
    }
}

pub(crate) fn scalar() -> Node {
    Node::new(NodeType::Scalar)
}

pub(crate) fn structure(fields: &[(&str, Node)]) -> Node {
    let mut node = Node::new(NodeType::Struct);
    for (name, field) in fields {
        node.fields.insert((*name).to_owned(), field.clone());
    }
    node
}

/// Returns a struct that keeps undeclared members.
pub(crate) fn open_struct(fields: &[(&str, Node)]) -> Node {
    let mut node = structure(fields);
    node.open = true;
    node
}

fn container(form: NodeType, items: Node) -> Node {
    let mut node = Node::new(form);
    node.items = Some(Box::new(items));
    node
}

pub(crate) fn map(values: Node) -> Node {
    container(NodeType::Map, values)
}

pub(crate) fn atomic_list(items: Node) -> Node {
    container(NodeType::List(ListType::Atomic), items)
}

pub(crate) fn set_list(items: Node) -> Node {
    container(NodeType::List(ListType::Set), items)
}

pub(crate) fn keyed(keys: &[(&str, Option<Value>)], items: Node) -> Node {
    let mut node = container(NodeType::List(ListType::Map), items);
    for (name, default) in keys {
        node.keys.push(ListKey {
            name: Str::new(name),
            default: default.clone(),
        });
    }
    node
}

/// Returns a struct with the members that every object has and the given ones.
pub(crate) fn object(fields: &[(&str, Node)]) -> Node {
    let mut node = structure(fields);
    let owner = structure(&[
        ("apiVersion", scalar()),
        ("kind", scalar()),
        ("name", scalar()),
        ("uid", scalar()),
    ]);
    let metadata = structure(&[
        ("annotations", map(scalar())),
        ("creationTimestamp", scalar()),
        ("finalizers", set_list(scalar()).merging("")),
        ("generation", scalar()),
        ("labels", map(scalar())),
        ("managedFields", atomic_list(scalar())),
        ("name", scalar()),
        ("namespace", scalar()),
        (
            "ownerReferences",
            keyed(&[("uid", None)], owner.atomic()).merging("uid"),
        ),
        ("resourceVersion", scalar()),
        ("uid", scalar()),
    ]);
    node.fields.insert("apiVersion".into(), scalar());
    node.fields.insert("kind".into(), scalar());
    node.fields.insert("metadata".into(), metadata);
    node
}
