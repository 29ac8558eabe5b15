//! Prints field sets: as paths for people, and as JSON in Kubernetes' order.

use super::{Element, FieldSet, ITSELF, operations::children, owns};
use bareboat_api::{Map, value::write_string};

impl FieldSet {
    /// Returns the path of every field, such as `.spec.containers[name="app"].image`; at each level
    /// fields come before the fields below them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        collect(&self.0, &mut String::new(), &mut paths);
        paths
    }

    /// Returns the JSON text of the set with elements in the order of structured-merge-diff.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write(&self.0, false, &mut out);
        out
    }
}

/// Returns the children in Kubernetes' order.
fn ordered(set: &Map) -> Vec<(Element, &str, &Map)> {
    let parsed = |(key, node)| Some((Element::parse(key).ok()??, key, node));
    let mut ordered: Vec<_> = children(set).filter_map(parsed).collect();
    bareboat_api::sort_by(&mut ordered, |(a, ..), (b, ..)| a.order(b));
    ordered
}

fn collect(set: &Map, prefix: &mut String, paths: &mut Vec<String>) {
    let ordered = ordered(set);
    for (element, _, _) in ordered.iter().filter(|(.., node)| owns(node)) {
        paths.push(format!("{prefix}{element}"));
    }
    for (element, _, node) in ordered {
        let length = prefix.len();
        prefix.push_str(&element.to_string());
        collect(node, prefix, paths);
        prefix.truncate(length);
    }
}

fn write(set: &Map, own: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    let mut key = |text: &str, out: &mut Vec<u8>| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_string(text, out);
        out.push(b':');
    };
    if own && !set.is_empty() {
        key(ITSELF, out);
        out.extend_from_slice(b"{}");
    }
    for (_, text, node) in ordered(set) {
        key(text, out);
        write(node, owns(node), out);
    }
    out.push(b'}');
}
