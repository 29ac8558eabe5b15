//! Mutations: what they change, and what they must not.

use super::object;
use crate::{Inputs, Policy};
use bareboat_api::typing::{ListKey, ListType, NodeType, TypeNode};
use bareboat_api::{Str, Value, value};
use std::collections::HashMap;

/// A type for tests.
#[derive(Default)]
struct Node {
    ty: Option<NodeType>,
    fields: HashMap<&'static str, Node>,
    items: Option<Box<Node>>,
    keys: Vec<ListKey>,
    atomic: bool,
}

impl TypeNode for Node {
    fn node_type(&self) -> NodeType {
        self.ty.unwrap_or(NodeType::Scalar)
    }
    fn field(&self, name: &str) -> Option<&dyn TypeNode> {
        match self.ty {
            Some(NodeType::Map) => self.items.as_deref().map(|node| node as &dyn TypeNode),
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
}

fn fields<const N: usize>(fields: [(&'static str, Node); N]) -> Node {
    Node {
        ty: Some(NodeType::Struct),
        fields: fields.into(),
        ..Node::default()
    }
}

/// The type of a kind with a map, an atomic list, an atomic struct and a list of containers.
fn kind() -> Node {
    let containers = Node {
        ty: Some(NodeType::List(ListType::Map)),
        items: Some(Box::new(fields([
            ("name", Node::default()),
            ("image", Node::default()),
        ]))),
        keys: vec![ListKey {
            name: Str::new("name"),
            default: None,
        }],
        ..Node::default()
    };
    let args = Node {
        ty: Some(NodeType::List(ListType::Atomic)),
        items: Some(Box::default()),
        ..Node::default()
    };
    let mut selector = fields([("a", Node::default())]);
    selector.atomic = true;
    let labels = Node {
        ty: Some(NodeType::Map),
        items: Some(Box::default()),
        ..Node::default()
    };
    fields([
        ("apiVersion", Node::default()),
        ("kind", Node::default()),
        (
            "metadata",
            fields([("name", Node::default()), ("labels", labels)]),
        ),
        (
            "spec",
            fields([
                ("replicas", Node::default()),
                ("containers", containers),
                ("args", args),
                ("selector", selector),
            ]),
        ),
    ])
}

fn before() -> Value {
    value!({
        "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"a": "b"}},
        "spec": {"replicas": 1, "containers": [{"name": "x", "image": "i"}, {"name": "y"}]},
    })
}

fn mutated(mutation: Value) -> Result<Option<Value>, String> {
    let policy = Policy::mutating(&object(value!({
        "metadata": {"name": "p"},
        "spec": {
            "variables": [{"name": "three", "expression": "3"}],
            "mutations": [(mutation)],
        },
    })));
    let (thing, request) = (before(), value!({}));
    let inputs = Inputs::new(Some(&thing), None, &request);
    let result = policy.mutate(0, &inputs, &kind());
    result.map_err(|error| error.to_string())
}

fn applied(expression: &str) -> Result<Option<Value>, String> {
    mutated(
        value!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": (expression)}}),
    )
}

fn patched(expression: &str) -> Result<Option<Value>, String> {
    mutated(value!({"patchType": "JSONPatch", "jsonPatch": {"expression": (expression)}}))
}

#[test]
fn a_configuration_is_merged_by_type() {
    let changed = applied(
        "Object{metadata: Object.metadata{labels: {'c': 'd'}}, spec: Object.spec{replicas: variables.three, containers: [Object.spec.containers{name: 'y', image: 'j'}]}}",
    );
    let wanted = value!({
        "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"a": "b", "c": "d"}},
        "spec": {"replicas": 3, "containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "j"}]},
    });
    assert_eq!(changed, Ok(Some(wanted)));
    assert_eq!(applied("Object{}"), Ok(Some(before())));
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    for (expression, wanted) in [
        (
            "Object{spec: Object.spec{nothing: 1}}",
            "error applying patch: failed to convert patch object to typed object: .spec.nothing: field not declared in schema",
        ),
        (
            "Object{spec: Object.spec{args: ['a'], selector: Object.spec.selector{a: 'b'}}}",
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.args, .spec.selector",
        ),
        (
            "Object{spec: Object.wrong{replicas: 1}}",
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field name path from root Object type",
        ),
        (
            "Object{spec: Object.spec{replicas: object.nothing}}",
            "expression 'Object{spec: Object.spec{replicas: object.nothing}}' resulted in error: no such key: nothing",
        ),
        ("'tea'", "must evaluate to Object but got string"),
    ] {
        assert_eq!(applied(expression), Err(wanted.to_owned()), "{expression}");
    }
}

#[test]
fn a_patch_changes_fields() {
    let changed = patched(
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y'), value: 'z'}, JSONPatch{op: 'replace', path: '/spec/containers/1', value: Object.spec.containers{name: 'n'}}, JSONPatch{op: 'remove', path: '/spec/replicas'}, JSONPatch{op: 'copy', from: '/metadata/name', path: '/metadata/labels/name'}]",
    );
    let wanted = value!({
        "apiVersion": "v1", "kind": "Thing",
        "metadata": {"name": "t", "labels": {"a": "b", "x/y": "z", "name": "t"}},
        "spec": {"containers": [{"name": "x", "image": "i"}, {"name": "n"}]},
    });
    assert_eq!(changed, Ok(Some(wanted)));
}

#[test]
fn a_failed_test_changes_nothing_and_other_errors_refuse() {
    let test = "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 9}, JSONPatch{op: 'test', path: '/spec/replicas', value: 1}]";
    assert_eq!(patched(test), Ok(None));
    for (operation, wanted) in [
        (
            "op: 'add', path: '/spec/nothing/here', value: 9",
            r#"add operation does not apply: doc is missing path: "/spec/nothing/here": missing value"#,
        ),
        (
            "op: 'replace', path: '/nothing/here', value: 9",
            "replace operation does not apply: doc is missing path: /nothing/here: missing value",
        ),
        (
            "op: 'remove', path: '/spec/nothing'",
            "error in remove for path: '/spec/nothing': Unable to remove nonexistent key: nothing: missing value",
        ),
        ("op: 'frob', path: '/spec/nothing'", "Unexpected kind: frob"),
    ] {
        let error = patched(&format!("[JSONPatch{{{operation}}}]"));
        assert_eq!(error, Err(format!("JSON Patch: {wanted}")));
    }
    let wrong = "[JSONPatch{op: 'add', path: '/spec', value: Object.spec{a: Object.b{}}}]";
    let error = patched(wrong).expect_err("the name is wrong");
    assert!(
        error.starts_with("type mismatch: unexpected type name"),
        "{error}"
    );
}
