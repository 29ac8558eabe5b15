//! Checks whether values fit their target: by type when the annotation is written, by value when it
//! runs.

use super::conversion_path::Found;
use crate::number::is_integer;
use crate::schema::{Flags, Kind, Node};
use bareboat_api::Value;
use bareboat_cel::{Type, escape};

/// Returns whether the result of an expression can fit a place, judged by its type.
pub(super) fn type_fits(ty: &Type, found: Found<'_>) -> bool {
    let ty = ty.as_optional().unwrap_or(ty);
    match (found, ty) {
        (_, Type::Dyn) | (Found::Anything, _) => true,
        (Found::Text, ty) => matches!(ty, Type::String),
        (Found::Texts, Type::Map(entry)) => {
            is_text(&entry.0) && matches!(entry.1, Type::String | Type::Dyn)
        }
        (Found::Texts, _) => false,
        (Found::Node(node), ty) => fits_node(ty, node),
    }
}

fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::String | Type::Dyn)
}

fn fits_node(ty: &Type, node: &Node) -> bool {
    if let Some(inner) = ty.as_optional() {
        return fits_node(inner, node);
    }
    if matches!(ty, Type::Dyn) {
        return true;
    }
    if matches!(ty, Type::Null) {
        return node.has(Flags::NULLABLE);
    }
    if node.has(Flags::INT_OR_STRING) {
        return matches!(ty, Type::Int | Type::Uint | Type::String);
    }
    let format = node.checks.as_deref().and_then(|it| it.format.as_ref());
    let format = format.map_or("", |(_, name)| name);
    match (node.kind, ty) {
        (Kind::Any, _) => true,
        (Kind::Boolean, Type::Bool) => true,
        (Kind::Integer, Type::Int | Type::Uint) => true,
        (Kind::Number, Type::Double | Type::Int | Type::Uint) => true,
        (Kind::String, Type::String) => true,
        (Kind::String, Type::Timestamp) => format == "date-time",
        (Kind::String, Type::Duration) => format == "duration",
        (Kind::String, Type::Bytes) => format == "byte",
        (Kind::Array, Type::List(items)) => match &node.items {
            Some(node) => fits_node(items, node),
            None => true,
        },
        (Kind::Object, Type::Map(entry)) => is_text(&entry.0) && map_fits(&entry.1, node),
        (Kind::Object, Type::Object(object)) => node.properties.iter().all(|(name, node)| {
            let field = escape(name).and_then(|name| object.field(&name));
            field.is_none_or(|field| fits_node(field.decl().ty(), node))
        }),
        _ => false,
    }
}

/// Returns whether a map with values of a type can be an object; its members are not known yet.
fn map_fits(values: &Type, node: &Node) -> bool {
    match node.additional() {
        Some(node) => fits_node(values, node),
        None => {
            node.properties.is_empty()
                || node
                    .properties
                    .iter()
                    .any(|(_, node)| fits_node(values, node))
        }
    }
}

/// Returns whether values of one place can move to another.
pub(super) fn place_fits(from: Found<'_>, to: Found<'_>) -> bool {
    match (from, to) {
        (Found::Anything, _) | (_, Found::Anything) => true,
        (Found::Node(from), Found::Node(to)) => node_fits(from, to),
        (Found::Text, Found::Text) | (Found::Texts, Found::Texts) => true,
        (Found::Node(node), Found::Text) | (Found::Text, Found::Node(node)) => {
            matches!(node.kind, Kind::String | Kind::Any) || node.has(Flags::INT_OR_STRING)
        }
        (Found::Node(node), Found::Texts) | (Found::Texts, Found::Node(node)) => {
            matches!(node.kind, Kind::Object | Kind::Any)
        }
        (Found::Text, Found::Texts) | (Found::Texts, Found::Text) => false,
    }
}

fn node_fits(from: &Node, to: &Node) -> bool {
    let loose = |node: &Node| node.has(Flags::INT_OR_STRING);
    let scalar = |node: &Node| matches!(node.kind, Kind::Integer | Kind::String);
    if loose(from) || loose(to) {
        return (loose(from) || scalar(from)) && (loose(to) || scalar(to));
    }
    match (from.kind, to.kind) {
        (Kind::Any, _) | (_, Kind::Any) => true,
        (Kind::Integer, Kind::Number) => true,
        (Kind::Array, Kind::Array) => match (&from.items, &to.items) {
            (Some(from), Some(to)) => node_fits(from, to),
            _ => true,
        },
        (Kind::Object, Kind::Object) => {
            let members = from.properties.iter().all(|(name, from)| {
                let to = to.member(name);
                to.is_none_or(|to| node_fits(from, to))
            });
            let additional = match (from.additional(), to.additional()) {
                (Some(from), Some(to)) => node_fits(from, to),
                _ => true,
            };
            members && additional
        }
        (from, to) => from == to,
    }
}

/// Checks that a computed value has the type of its place; the error names the expected type.
pub(super) fn value_fits(value: &mut Value, found: Found<'_>) -> Result<(), String> {
    let text = |value: &Value| matches!(value, Value::String(_));
    let fits = match found {
        Found::Anything => true,
        Found::Text => text(value),
        Found::Texts => value.as_object().is_some_and(|map| map.values().all(text)),
        Found::Node(node) => return settle(value, node),
    };
    match fits {
        true => Ok(()),
        false => Err("expected a string".to_owned()),
    }
}

fn settle(value: &mut Value, node: &Node) -> Result<(), String> {
    let integral = matches!(value, Value::Float(number) if is_integer(*number));
    let wants_integer = node.kind == Kind::Integer || node.has(Flags::INT_OR_STRING);
    if integral
        && wants_integer
        && let Some(number) = value.as_i64()
    {
        *value = Value::Int(number);
    }
    let fits = match (node.kind, &*value) {
        // Nulls that are not allowed are dropped later, together with unknown members.
        (_, Value::Null) => true,
        (_, Value::Int(_) | Value::String(_)) if node.has(Flags::INT_OR_STRING) => true,
        (Kind::Any, _) => !node.has(Flags::INT_OR_STRING),
        (Kind::Boolean, Value::Bool(_)) => true,
        (Kind::Integer, Value::Int(_)) => true,
        (Kind::Number, Value::Int(_) | Value::Float(_)) => true,
        (Kind::String, Value::String(_)) => true,
        (Kind::Array, Value::Array(_)) => true,
        (Kind::Object, Value::Object(_)) => true,
        _ => false,
    };
    if !fits {
        let wanted = node.type_text();
        return Err(format!("expected {wanted}, got {}", value.type_name()));
    }
    match value {
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for item in list {
                    settle(item, items)?;
                }
            }
        }
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                if let Some(node) = node.member(name) {
                    settle(member, node).map_err(|why| format!("{name}: {why}"))?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
