//! Applies a configuration that an expression built, as server-side apply does.

use bareboat_api::Value;
use bareboat_api::typing::{ListType, NodeType, TypeNode};
use bareboat_cel::{MapVal, Object, Val};
use bareboat_merge::typed;

/// Merges the configuration into the object. The error is the message for the client.
pub(crate) fn apply(
    object: &Value,
    mut config: Value,
    node: &dyn TypeNode,
) -> Result<Value, String> {
    let members = config.make_object();
    for member in ["apiVersion", "kind"] {
        if let Some(value) = object.get(member) {
            members.insert(member, value.clone());
        }
    }
    typed::validate(&config, node)
        .map_err(|error| format!("failed to convert patch object to typed object: {error}"))?;
    let mut atomics = Vec::new();
    find_atomics(&config, node, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    let mut patched = object.clone();
    typed::merge(&mut patched, &config, node);
    Ok(patched)
}

/// Finds lists, maps and structs that are replaced as a whole: what the configuration leaves out of them would be lost.
fn find_atomics(value: &Value, node: &dyn TypeNode, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match (value, node.node_type()) {
        (Value::Object(members), NodeType::Struct | NodeType::Map | NodeType::Untyped) => {
            if node.is_atomic() {
                found.push(path.clone());
            }
            if node.node_type() != NodeType::Struct {
                return;
            }
            for (name, member) in members.iter() {
                if let Some(node) = node.field(name) {
                    path.push('.');
                    path.push_str(name);
                    find_atomics(member, node, path, found);
                    path.truncate(length);
                }
            }
        }
        (Value::Array(_), NodeType::Untyped) => found.push(path.clone()),
        (Value::Array(items), NodeType::List(ty)) => {
            if ty == ListType::Atomic {
                found.push(path.clone());
            }
            let Some(node) = node.items() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_atomics(item, node, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Checks that the types of built objects are named by their place: `Object.spec{}` belongs into `Object{spec: …}`.
pub(crate) fn check_names(value: &Val<'_>) -> Result<(), String> {
    let mut errors = Vec::new();
    if let Val::Object(Object::Built(built)) = value {
        check_below(value, &mut built.type_name().to_owned(), &mut errors);
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(format!("type mismatch: {}", errors.join("\n"))),
    }
}

fn check_below(value: &Val<'_>, place: &mut String, errors: &mut Vec<String>) {
    match value {
        Val::Object(Object::Built(built)) => {
            let name = built.type_name();
            if name != place {
                errors.push(format!(
                    "unexpected type name {name:?}, expected {place:?}, which matches field name path from root Object type"
                ));
            }
            let length = place.len();
            for (field, value) in built.fields() {
                place.push('.');
                place.push_str(field);
                check_below(value, place, errors);
                place.truncate(length);
            }
        }
        Val::List(list) => {
            for item in list.iter().flatten() {
                check_below(&item, place, errors);
            }
        }
        Val::Map(MapVal::Values(entries)) => {
            for (_, value) in entries.iter() {
                check_below(value, place, errors);
            }
        }
        _ => {}
    }
}
