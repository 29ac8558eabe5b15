//! Validation of the defaults in a schema: pruned, normalised and satisfying rules.
//!
//! Upstream: apiextensions pkg/apiserver/schema/defaulting, validation.go.

use super::props::Props;
use crate::metadata::coerce_embedded;
use crate::prune::{is_meta, prune};
use crate::schema::{Flags, Node};
use crate::validate::{check_value, embedded_resources, resource};
use bareboat_api::{FieldError, FieldErrors, FieldPath, Map, Value, interrupt};

/// Checks every default of a schema.
pub(super) fn check(
    schema: Props<'_>,
    root: &Node,
    path: &FieldPath,
    require_pruned: bool,
) -> Vec<FieldError> {
    let mut walk = Walk {
        require_pruned,
        budget: crate::rules::OBJECT_BUDGET,
        errors: FieldErrors::default(),
    };
    let here = Here {
        resource: root,
        trail: None,
        in_metadata: false,
        is_resource: true,
    };
    walk.schema(schema, root, path, &here);
    walk.errors.into_list()
}

/// Returns whether a schema has defaults that pruning would change.
pub(super) fn has_unpruned(schema: Props<'_>, root: &Node) -> bool {
    let mut walk = Walk {
        require_pruned: true,
        budget: 0,
        errors: FieldErrors::default(),
    };
    walk.only_pruning(schema, root);
    !walk.errors.is_empty()
}

#[derive(Clone, Copy)]
struct Here<'n, 't> {
    /// The nearest resource above, and the path from it.
    resource: &'n Node,
    trail: Option<&'t Trail<'t>>,
    in_metadata: bool,
    is_resource: bool,
}

/// A path, linked from its last step to the first.
struct Trail<'t> {
    step: Step<'t>,
    above: Option<&'t Trail<'t>>,
}

#[derive(Clone, Copy)]
enum Step<'t> {
    Member(&'t str),
    Element,
}

struct Walk {
    require_pruned: bool,
    budget: u64,
    errors: FieldErrors,
}

impl Walk {
    fn schema<'n>(&mut self, s: Props<'_>, node: &'n Node, path: &FieldPath, here: &Here<'n, '_>) {
        if interrupt::requested() {
            return;
        }
        let mut here = *here;
        if node.has(Flags::EMBEDDED) || here.is_resource {
            here.resource = node;
            here.trail = None;
            here.in_metadata = false;
            here.is_resource = true;
        }
        if let Some(default) = s.default() {
            self.default(default, node, &path.child("default"), &here);
        }
        if !node.has(Flags::DEFAULTS_BELOW) {
            return;
        }
        if let (Some(items), Some(node)) = (s.child("items"), node.items.as_deref()) {
            let trail = Trail {
                step: Step::Element,
                above: here.trail,
            };
            let below = Here {
                is_resource: false,
                trail: Some(&trail),
                ..here
            };
            self.schema(items, node, &path.child("items"), &below);
        }
        for (name, property) in s.members("properties") {
            let Some(node) = node.property(name) else {
                continue;
            };
            let trail = Trail {
                step: Step::Member(name),
                above: here.trail,
            };
            let below = Here {
                in_metadata: here.in_metadata || (here.is_resource && is_meta(name)),
                is_resource: false,
                trail: Some(&trail),
                ..here
            };
            self.schema(property, node, &path.child("properties").key(name), &below);
        }
    }

    fn default(&mut self, default: &Value, node: &Node, path: &FieldPath, here: &Here<'_, '_>) {
        if here.in_metadata {
            let mut object = surround(default.clone(), here.trail);
            let mut complain = |problem: String| {
                let detail = format!("must result in valid metadata: {problem}");
                self.errors
                    .push(FieldError::invalid(path.clone(), default.clone(), detail));
            };
            if let Err(problem) = coerce_embedded(&mut object, here.resource, true) {
                return complain(problem.to_string());
            }
            let mut found = FieldErrors::default();
            if let Value::Object(map) = &object {
                resource(map, &FieldPath::root(), &mut found);
            }
            if let Some(problem) = found.kept().first() {
                return complain(problem.to_string());
            }
        } else {
            if self.require_pruned && !is_pruned(default, node) {
                self.errors.push(FieldError::invalid(
                    path.clone(),
                    default.clone(),
                    "must not have unknown fields",
                ));
            }
            let mut shaped = default.clone();
            let whole = here.is_resource || node.has(Flags::EMBEDDED);
            if let Err(problem) = coerce_embedded(&mut shaped, node, whole) {
                self.errors.push(FieldError::invalid(
                    path.clone(),
                    default.clone(),
                    problem.to_string(),
                ));
                return;
            }
            let start = self.errors.len();
            embedded_resources(node, default, path, &mut self.errors);
            // The root is always a resource.
            if whole
                && !node.has(Flags::EMBEDDED)
                && let Value::Object(map) = default
            {
                resource(map, path, &mut self.errors);
            }
            if self.errors.len() > start {
                return;
            }
        }
        let start = self.errors.len();
        check_value(node, default, None, path, false, &mut self.errors);
        if self.errors.len() == start {
            let resource = std::ptr::eq(node, here.resource);
            self.budget = crate::rules::check_default(
                node,
                default,
                resource,
                path,
                self.budget,
                &mut self.errors,
            );
        }
    }

    fn only_pruning(&mut self, s: Props<'_>, node: &Node) {
        if let Some(default) = s.default()
            && !is_pruned(default, node)
        {
            self.errors
                .push(FieldError::forbidden(FieldPath::root(), "not pruned"));
        }
        if let (Some(items), Some(node)) = (s.child("items"), node.items.as_deref()) {
            self.only_pruning(items, node);
        }
        if let (Some(values), Some(node)) = (s.child("additionalProperties"), node.additional()) {
            self.only_pruning(values, node);
        }
        for (name, property) in s.members("properties") {
            if let Some(node) = node.property(name) {
                self.only_pruning(property, node);
            }
        }
    }
}

fn is_pruned(default: &Value, node: &Node) -> bool {
    let mut pruned = default.clone();
    prune(&mut pruned, node, node.has(Flags::EMBEDDED));
    pruned == *default
}

/// Returns the smallest resource that has a value at the end of a trail.
fn surround(mut value: Value, mut trail: Option<&Trail<'_>>) -> Value {
    while let Some(Trail { step, above }) = trail {
        trail = *above;
        value = match step {
            Step::Element => Value::Array(vec![value]),
            Step::Member(name) => {
                let mut map = Map::new();
                map.insert(*name, value);
                Value::Object(map)
            }
        };
    }
    let map = value.make_object();
    map.entry_or_insert_with("apiVersion", || Value::string("validation/v1"));
    map.entry_or_insert_with("kind", || Value::string("Validation"));
    value
}
