//! Validation of each keyword of a definition's schema, beyond being structural.
//!
//! Upstream: apiextensions pkg/apis/apiextensions/validation, the OpenAPI schema walk.

use super::expressions::{Expressions, Scope};
use super::lists::{list_map, map_and_set_items, non_atomic_set};
use super::props::{Props, is_zero};
use crate::path::field_path;
use crate::schema::{Additional, Node};
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, interrupt};
use std::cell::OnceCell;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Which of the rules that were added over time apply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strictness {
    pub(super) valid_types: bool,
    pub(super) atomic_sets: bool,
    pub(super) map_keys: bool,
}

/// The current position in the schema.
#[derive(Clone)]
struct Here<'a> {
    root: bool,
    /// The reason why defaults are not allowed here.
    no_defaults: Option<String>,
    in_metadata: bool,
    /// The nearest list or map above whose elements cannot be correlated.
    uncorrelatable: Option<FieldPath>,
    /// The compiled schema, where expressions can be checked.
    node: Option<&'a Node>,
    scope: Scope,
}

/// Checks a schema; with `root`, its expressions too.
pub(super) fn check(
    schema: Props<'_>,
    path: &FieldPath,
    strictness: Strictness,
    root: Option<&Node>,
    expressions: &mut Expressions,
) -> Vec<FieldError> {
    let mut walk = Walk {
        strictness,
        expressions,
        schema_errors: FieldErrors::default(),
        rule_errors: FieldErrors::default(),
    };
    let here = Here {
        root: true,
        no_defaults: None,
        in_metadata: false,
        uncorrelatable: None,
        node: root,
        scope: Scope::root(),
    };
    walk.schema(schema, path, here);
    walk.schema_errors.append(&mut walk.rule_errors);
    walk.schema_errors.into_list()
}

struct Walk<'w> {
    strictness: Strictness,
    expressions: &'w mut Expressions,
    schema_errors: FieldErrors,
    rule_errors: FieldErrors,
}

impl Walk<'_> {
    fn schema(&mut self, s: Props<'_>, path: &FieldPath, here: Here<'_>) {
        if interrupt::requested() {
            return;
        }
        let start = self.schema_errors.len();
        self.plain_keywords(s, path, &here);
        self.members(s, path, &here);
        self.compositions(s, path, &here);
        self.items(s, path, &here);
        self.extensions(s, path);
        list_map(s, path, &mut self.schema_errors);
        if self.strictness.map_keys {
            self.schema_errors.extend(map_and_set_items(s, path));
        }
        let rules = s.list("x-kubernetes-validations");
        if rules.is_empty() {
            return;
        }
        let path = path.child("x-kubernetes-validations");
        // Where there is no compiled schema, this one is compiled once for all of its rules.
        let compiled = OnceCell::new();
        let schema = || {
            let parse = || crate::Schema::parse(&Value::Object(s.0.clone())).ok();
            let schema: &Option<crate::Schema> = compiled.get_or_init(parse);
            schema.as_ref().map(|schema| &*schema.root)
        };
        for (index, rule) in rules.iter().enumerate() {
            let leads_nowhere = |target: &str| {
                let node = here.node.or_else(schema);
                node.is_some_and(|node| field_path(target, node, true).is_err())
            };
            self.rule(rule, &path.index(index), leads_nowhere);
        }
        // Expressions over a schema with errors here or below would only add more errors.
        if self.schema_errors.len() == start
            && let Some(node) = here.node
        {
            let found =
                self.expressions
                    .check(node, here.scope, &path, here.uncorrelatable.as_ref());
            self.rule_errors.extend(found);
        }
    }

    fn plain_keywords(&mut self, s: Props<'_>, path: &FieldPath, here: &Here<'_>) {
        let kind = s.kind();
        let errors = &mut self.schema_errors;
        if self.strictness.valid_types && !kind.is_empty() && !TYPES.contains(&kind) {
            errors.push(FieldError::not_supported(path.child("type"), kind, TYPES));
        }
        if s.default().is_some()
            && let Some(reason) = &here.no_defaults
        {
            let detail = format!("must not be set {reason}");
            errors.push(FieldError::forbidden(path.child("default"), detail));
        }
        for key in ["id", "patternProperties", "definitions", "$ref"] {
            if s.get(key).is_some() {
                let detail = format!("{key} is not supported");
                errors.push(FieldError::forbidden(path.child(key), detail));
            }
        }
        for key in ["additionalItems", "dependencies"] {
            if s.0.get(key).is_some_and(|value| !value.is_null()) {
                let detail = format!("{key} is not supported");
                errors.push(FieldError::forbidden(path.child(key), detail));
            }
        }
        if kind == "null" {
            errors.push(FieldError::forbidden(
                path.child("type"),
                "type cannot be set to null, use nullable as an alternative",
            ));
        }
        if !s.list("items").is_empty() {
            errors.push(FieldError::forbidden(
                path.child("items"),
                "items must be a schema object and not an array",
            ));
        }
        if here.in_metadata && s.truth("x-kubernetes-embedded-resource") {
            errors.push(FieldError::forbidden(
                path.child("x-kubernetes-embedded-resource"),
                "must not be used inside of resource meta",
            ));
        }
        if s.truth("uniqueItems") {
            errors.push(FieldError::forbidden(
                path.child("uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ));
        }
    }

    fn members(&mut self, s: Props<'_>, path: &FieldPath, here: &Here<'_>) {
        if s.has_additional() {
            let at = path.child("additionalProperties");
            let allows_all = s.0.get("additionalProperties") == Some(&Value::Bool(true));
            if s.members("properties").next().is_some() && !allows_all {
                self.schema_errors.push(FieldError::forbidden(
                    at.clone(),
                    "additionalProperties and properties are mutual exclusive",
                ));
            }
            if let Some(values) = s.child("additionalProperties") {
                let mut below = here.clone();
                below.root = false;
                if here.in_metadata {
                    below.no_defaults =
                        Some("inside additionalProperties applying to object metadata".to_owned());
                }
                below.node = here.node.and_then(|node| match &node.additional {
                    Additional::Node(node) => Some(&**node),
                    _ => None,
                });
                below.scope = here.scope.below(here.node, below.node);
                self.schema(values, &at, below);
            }
        }
        let map_type = s.text("x-kubernetes-map-type");
        for (name, property) in s.members("properties") {
            let mut below = here.clone();
            below.root = false;
            if !matches!(map_type, "" | "granular" | "atomic") {
                below.uncorrelatable.get_or_insert_with(|| path.clone());
            }
            if (here.root || s.truth("x-kubernetes-embedded-resource"))
                && crate::prune::is_meta(name)
            {
                below.in_metadata = true;
                if here.root {
                    below.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            below.node = here.node.and_then(|node| node.property(name));
            below.scope = here.scope.below(here.node, below.node);
            self.schema(property, &path.child("properties").key(name), below);
        }
    }

    /// Checks compositions. Structural schemas have no expressions there.
    fn compositions(&mut self, s: Props<'_>, path: &FieldPath, here: &Here<'_>) {
        let below = || Here {
            root: false,
            node: None,
            scope: Scope::default(),
            ..here.clone()
        };
        if let Some(branch) = s.child("not") {
            self.schema(branch, &path.child("not"), below());
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            for (index, branch) in s.children(key) {
                self.schema(branch, &path.child(key).index(index), below());
            }
        }
        for key in ["definitions", "dependencies"] {
            for (name, branch) in s.members(key) {
                self.schema(branch, &path.child(key).key(name), below());
            }
        }
    }

    fn items(&mut self, s: Props<'_>, path: &FieldPath, here: &Here<'_>) {
        let mut below = here.clone();
        below.root = false;
        if s.text("x-kubernetes-list-type") != "map" {
            below.uncorrelatable.get_or_insert_with(|| path.clone());
        }
        below.node = here.node.and_then(|node| node.items.as_deref());
        below.scope = here.scope.below(here.node, below.node);
        let at = path.child("items");
        if let Some(items) = s.child("items") {
            self.schema(items, &at, below);
        } else {
            for (index, items) in s.children("items") {
                let below = Here {
                    node: None,
                    ..below.clone()
                };
                self.schema(items, &at.index(index), below);
            }
        }
    }

    fn extensions(&mut self, s: Props<'_>, path: &FieldPath) {
        let errors = &mut self.schema_errors;
        if s.0.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            errors.push(FieldError::invalid(
                path.child("x-kubernetes-preserve-unknown-fields"),
                false,
                "must be true or undefined",
            ));
        }
        let list_type = s.0.get_str("x-kubernetes-list-type");
        let map_type = s.0.get_str("x-kubernetes-map-type");
        for (given, key, wanted) in [
            (map_type.is_some(), "x-kubernetes-map-type", "object"),
            (list_type.is_some(), "x-kubernetes-list-type", "array"),
        ] {
            if given && s.kind() != wanted {
                let detail = format!("must be {wanted} if {key} is specified");
                let at = path.child("type");
                errors.push(match s.kind() {
                    "" => FieldError::required(at, detail),
                    kind => FieldError::invalid(at, kind, detail),
                });
            }
        }
        for (given, key, choices) in [
            (
                map_type,
                "x-kubernetes-map-type",
                &["atomic", "granular"][..],
            ),
            (
                list_type,
                "x-kubernetes-list-type",
                &["atomic", "set", "map"][..],
            ),
        ] {
            if let Some(value) = given
                && !choices.contains(&value)
            {
                errors.push(FieldError::not_supported(path.child(key), value, choices));
            }
        }
        if self.strictness.atomic_sets && s.kind() == "array" {
            errors.extend(non_atomic_set(s, path));
        }
    }

    fn rule(&mut self, rule: &Value, path: &FieldPath, leads_nowhere: impl Fn(&str) -> bool) {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or("");
        let has_break = |text: &str| text.contains(['\n', '\r']);
        let errors = &mut self.schema_errors;
        let message = text("message");
        let trimmed = message.trim();
        if text("rule").trim().is_empty() {
            errors.push(FieldError::required(
                path.child("rule"),
                "rule is not specified",
            ));
        } else if !message.is_empty() && trimmed.is_empty() {
            errors.push(FieldError::invalid(
                path.child("message"),
                message,
                "must be non-empty if specified",
            ));
        } else if has_break(trimmed) {
            errors.push(FieldError::invalid(
                path.child("message"),
                message,
                "must not contain line breaks",
            ));
        } else if has_break(text("rule").trim()) && trimmed.is_empty() {
            errors.push(FieldError::required(
                path.child("message"),
                "message must be specified if rule contains line breaks",
            ));
        }
        let expression = text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            errors.push(FieldError::required(
                path.child("messageExpression"),
                "messageExpression must be non-empty if specified",
            ));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(
                path.child("reason"),
                reason,
                REASONS,
            ));
        }
        let target = text("fieldPath");
        if target.is_empty() {
            return;
        }
        let at = path.child("fieldPath");
        let mut complain = |detail: &str| {
            errors.push(FieldError::invalid(at.clone(), target, detail));
        };
        if target.trim().is_empty() {
            complain("must be non-empty if specified");
        }
        if has_break(target) {
            complain("must not contain line breaks");
        }
        if leads_nowhere(target) {
            complain("must be a valid path");
        }
    }
}

/// Returns whether a schema has an unknown type.
pub(super) fn has_invalid_type(schema: Props<'_>) -> bool {
    schema.any(&mut |props| !props.kind().is_empty() && !TYPES.contains(&props.kind()))
}

/// Checks the root of a schema with a status subresource: it may only have keywords that still
/// apply when the schema of `status` is used alone.
pub(super) fn root_with_status(schema: Props<'_>, path: &FieldPath) -> Option<FieldError> {
    const ALLOWED: [(&str, &str); 22] = [
        ("Description", "description"),
        ("Type", "type"),
        ("Format", "format"),
        ("Title", "title"),
        ("Maximum", "maximum"),
        ("ExclusiveMaximum", "exclusiveMaximum"),
        ("Minimum", "minimum"),
        ("ExclusiveMinimum", "exclusiveMinimum"),
        ("MaxLength", "maxLength"),
        ("MinLength", "minLength"),
        ("Pattern", "pattern"),
        ("MaxItems", "maxItems"),
        ("MinItems", "minItems"),
        ("UniqueItems", "uniqueItems"),
        ("MultipleOf", "multipleOf"),
        ("Required", "required"),
        ("Items", "items"),
        ("Properties", "properties"),
        ("ExternalDocs", "externalDocs"),
        ("Example", "example"),
        (
            "XPreserveUnknownFields",
            "x-kubernetes-preserve-unknown-fields",
        ),
        ("XValidations", "x-kubernetes-validations"),
    ];
    if !matches!(schema.kind(), "" | "object") {
        return Some(FieldError::invalid(
            path.child("type"),
            schema.kind(),
            "only \"object\" is allowed as the type at the root of the schema \
             if the status subresource is enabled",
        ));
    }
    let stranger = schema.0.iter().any(|(key, value)| {
        let says_something = if key == "default" {
            !value.is_null()
        } else {
            !is_zero(value)
        };
        says_something && ALLOWED.iter().all(|(_, name)| *name != key)
    });
    stranger.then(|| {
        let names: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema \
             if the status subresource is enabled",
            names.join(" ")
        );
        FieldError::invalid_whole(path.clone(), detail)
    })
}
