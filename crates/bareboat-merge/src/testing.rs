//! Types written by hand for the tests of this crate.

use bareboat_api::{
    Str, Value,
    typing::{Form, ListKey, ListType, PatchStrategy, Scalar, TypeNode},
};
use std::collections::BTreeMap;

/// A type put together in a test.
#[derive(Clone)]
pub(crate) struct Node {
    form: Form,
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
    fn new(form: Form) -> Node {
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

    /// Strategic merge patches merge the list by this key; by value if it is empty.
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
    fn form(&self) -> Form {
        self.form
    }
    fn scalar(&self) -> Scalar {
        self.scalar
    }
    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        match self.form {
            Form::Map => self.items.as_deref().map(|node| node as &dyn TypeNode),
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
    Node::new(Form::Scalar)
}

pub(crate) fn structure(fields: &[(&str, Node)]) -> Node {
    let mut node = Node::new(Form::Struct);
    for (name, field) in fields {
        node.fields.insert((*name).to_owned(), field.clone());
    }
    node
}

/// A struct that keeps members it does not declare.
pub(crate) fn open_struct(fields: &[(&str, Node)]) -> Node {
    let mut node = structure(fields);
    node.open = true;
    node
}

fn container(form: Form, items: Node) -> Node {
    let mut node = Node::new(form);
    node.items = Some(Box::new(items));
    node
}

pub(crate) fn map(values: Node) -> Node {
    container(Form::Map, values)
}

pub(crate) fn atomic_list(items: Node) -> Node {
    container(Form::List(ListType::Atomic), items)
}

pub(crate) fn set_list(items: Node) -> Node {
    container(Form::List(ListType::Set), items)
}

pub(crate) fn keyed(keys: &[(&str, Option<Value>)], items: Node) -> Node {
    let mut node = container(Form::List(ListType::Map), items);
    for (name, default) in keys {
        node.keys.push(ListKey {
            name: Str::new(name),
            default: default.clone(),
        });
    }
    node
}

/// The members every object has, with its own.
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
