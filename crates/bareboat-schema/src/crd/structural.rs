//! Checks whether a schema is structural: every value has one declared type, and schemas under
//! `anyOf` and the like only narrow it.
//!
//! Upstream: apiextensions pkg/apiserver/schema, validation.go, complete.go and convert.go.

use super::props::{Props, is_zero};
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, interrupt};

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns the reasons why a schema is not structural, in the order of their texts.
pub(super) fn violations(schema: Props<'_>, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    invariants(schema, Level::Root, path, &mut errors);
    // Like upstream, checks completeness only for compositions at the root.
    completeness(schema, schema, path, path, &mut errors);
    let mut errors = errors.into_list();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// Returns why a schema cannot be converted to a structural one.
pub(super) fn unsupported(schema: Props<'_>) -> Option<String> {
    let mut problem = None;
    schema.any(&mut |props| {
        problem = [
            ("id", "id"),
            ("$schema", "schema"),
            ("$ref", "$ref"),
            ("patternProperties", "patternProperties"),
            ("dependencies", "dependencies"),
            ("definitions", "definitions"),
        ]
        .into_iter()
        .find(|(key, _)| props.get(key).is_some())
        .map(|(_, name)| format!("OpenAPIV3Schema '{name}' is not supported"))
        .or_else(|| {
            props
                .0
                .contains_key("additionalItems")
                .then(|| "OpenAPIV3Schema 'additionalItems' is not supported".to_owned())
        })
        .or_else(|| {
            (!props.list("items").is_empty())
                .then(|| "OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned())
        })
        .or_else(|| {
            (props.0.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false))).then(
                || "'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
            )
        });
        problem.is_some()
    });
    problem
}

fn invariants(s: Props<'_>, level: Level, path: &FieldPath, errors: &mut FieldErrors) {
    if interrupt::requested() {
        return;
    }
    let items = s.child("items");
    if s.kind() == "array" && items.is_none() {
        errors.push(FieldError::required(
            path.child("items"),
            "must be specified",
        ));
    }
    if let Some(items) = items {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in s.members("properties") {
        let path = path.child("properties").key(name);
        invariants(property, Level::Field, &path, errors);
    }
    if s.has_additional() {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(
                path.clone(),
                "must not be used at the root",
            ));
        }
        if let Some(values) = s.child("additionalProperties") {
            invariants(values, Level::Field, &path, errors);
        }
    }
    let int_or_string = s.truth("x-kubernetes-int-or-string");
    let preserve = s.truth("x-kubernetes-preserve-unknown-fields");
    let embedded = s.truth("x-kubernetes-embedded-resource");
    for (key, set) in [
        ("x-kubernetes-preserve-unknown-fields", preserve),
        ("x-kubernetes-embedded-resource", embedded),
    ] {
        if int_or_string && set {
            errors.push(FieldError::invalid(
                path.child(key),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
    }
    value_validation(
        s,
        is_int_or_string(s),
        starts_with_int_or_string(s),
        path,
        errors,
    );
    types(s, level, path, errors);
    if embedded && s.has_additional() {
        errors.push(FieldError::forbidden(
            path.child("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    metadata(s, level, path, errors);
    if embedded && !preserve && s.members("properties").next().is_none() {
        errors.push(FieldError::required(
            path.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn types(s: Props<'_>, level: Level, path: &FieldPath, errors: &mut FieldErrors) {
    let at = path.child("type");
    let kind = s.kind();
    let free =
        s.truth("x-kubernetes-int-or-string") || s.truth("x-kubernetes-preserve-unknown-fields");
    if s.truth("x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at.clone(), detail)
        } else {
            FieldError::invalid(at.clone(), kind, detail)
        });
    } else if kind.is_empty() && !free {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at.clone(), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, kind, "must be object at the root"));
    }
}

fn metadata(s: Props<'_>, level: Level, path: &FieldPath, errors: &mut FieldErrors) {
    let resource = level == Level::Root || s.truth("x-kubernetes-embedded-resource");
    let at = |name: &str| path.child("properties").key(name);
    for name in ["kind", "apiVersion"] {
        if let Some(property) = s.property(name)
            && resource
            && property.kind() != "string"
        {
            let path = at(name).child("type");
            errors.push(FieldError::invalid(path, property.kind(), "must be string"));
        }
    }
    let Some(meta) = s.property("metadata") else {
        return;
    };
    if resource && meta.kind() != "object" {
        let path = at("metadata").child("type");
        errors.push(FieldError::invalid(path, meta.kind(), "must be object"));
    }
    if level == Level::Root {
        let only_names = meta
            .members("properties")
            .all(|(name, _)| matches!(name, "name" | "generateName"));
        let only_known = meta.0.iter().all(|(key, value)| {
            matches!(key, "type" | "default" | "properties")
                || key != "additionalProperties" && is_zero(value) && value.as_object().is_none()
        });
        if !only_names || !only_known {
            errors.push(FieldError::forbidden(
                at("metadata"),
                "must not specify anything other than name and generateName, \
                 but metadata is implicitly specified",
            ));
        }
    }
}

/// Returns whether this is `anyOf: [{type: integer}, {type: string}]`, the only place for types in
/// a composition.
fn is_int_or_string(s: Props<'_>) -> bool {
    let only_type = |value: &Value, wanted: &str| {
        value.as_object().is_some_and(|map| {
            map.get_str("type") == Some(wanted)
                && map.iter().all(|(key, value)| {
                    // An empty object is a default or a schema, and neither counts as absent.
                    key == "type" || is_zero(value) && value.as_object().is_none()
                })
        })
    };
    match s.list("anyOf") {
        [first, second] => only_type(first, "integer") && only_type(second, "string"),
        _ => false,
    }
}

fn starts_with_int_or_string(s: Props<'_>) -> bool {
    s.list("allOf")
        .first()
        .and_then(Props::of)
        .is_some_and(is_int_or_string)
}

fn value_validation(
    v: Props<'_>,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    if !skip_any_of {
        for (index, branch) in v.children("anyOf") {
            nested(branch, false, &path.child("anyOf").index(index), errors);
        }
    }
    for (index, branch) in v.children("allOf") {
        let skip = skip_first_all_of && index == 0;
        nested(branch, skip, &path.child("allOf").index(index), errors);
    }
    for (index, branch) in v.children("oneOf") {
        nested(branch, false, &path.child("oneOf").index(index), errors);
    }
    if let Some(branch) = v.child("not") {
        nested(branch, false, &path.child("not"), errors);
    }
    let text = v.text("pattern");
    if !text.is_empty()
        && let Err(reason) = bareboat_cel::check_pattern(text)
    {
        let detail = format!("must be a valid regular expression, but isn't: {reason}");
        errors.push(FieldError::invalid(path.child("pattern"), text, detail));
    }
}

fn nested(v: Props<'_>, skip_any_of: bool, path: &FieldPath, errors: &mut FieldErrors) {
    if interrupt::requested() {
        return;
    }
    value_validation(v, skip_any_of, false, path, errors);
    if let Some(items) = v.child("items") {
        nested(items, false, &path.child("items"), errors);
    }
    for (name, property) in v.members("properties") {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    let mut forbid = |key: &str, words: &str| {
        let detail = format!("must be {words} to be structural");
        errors.push(FieldError::forbidden(path.child(key), detail));
    };
    if v.child("additionalProperties").is_some()
        || v.0.get("additionalProperties") == Some(&Value::Bool(true))
    {
        forbid("additionalProperties", "undefined");
    }
    if v.default().is_some() {
        forbid("default", "undefined");
    }
    for (key, words) in [
        ("type", "empty"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-validations", "empty"),
    ] {
        if v.get(key).is_some() {
            forbid(key, words);
        }
    }
    for key in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if v.0.get(key).is_some_and(|value| !value.is_null()) {
            forbid(key, "undefined");
        }
    }
    if v.property("metadata").is_some() {
        errors.push(FieldError::forbidden(
            path.child("properties").key("metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// Checks that every member of a composition is also declared outside of it.
fn completeness(
    v: Props<'_>,
    s: Props<'_>,
    s_path: &FieldPath,
    v_path: &FieldPath,
    errors: &mut FieldErrors,
) {
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, branch) in v.children(key) {
            let v_path = v_path.child(key).index(index);
            nested_completeness(branch, Some(s), s_path, &v_path, errors);
        }
    }
    if let Some(branch) = v.child("not") {
        nested_completeness(branch, Some(s), s_path, &v_path.child("not"), errors);
    }
}

fn nested_completeness(
    v: Props<'_>,
    s: Option<Props<'_>>,
    s_path: &FieldPath,
    v_path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let Some(s) = s else {
        let detail = format!("because it is defined in {v_path}");
        errors.push(FieldError::required(s_path.clone(), detail));
        return;
    };
    completeness(v, s, s_path, v_path, errors);
    if let Some(items) = v.child("items") {
        nested_completeness(
            items,
            s.child("items"),
            &s_path.child("items"),
            &v_path.child("items"),
            errors,
        );
    }
    for (name, property) in v.members("properties") {
        nested_completeness(
            property,
            s.property(name),
            &s_path.child("properties").key(name),
            &v_path.child("properties").key(name),
            errors,
        );
    }
}
