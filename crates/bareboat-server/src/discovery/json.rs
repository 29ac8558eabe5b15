//! Prints discovery documents as JSON with members in upstream's order, which some clients compare.
//!
//! Everywhere else members are sorted by name.

use bareboat_api::value::write_string;
use bareboat_api::{Map, Value};

/// The members that come first at the top level.
const FIRST: [&str; 2] = ["kind", "apiVersion"];
/// The order of members. One list serves all objects in these documents: where two members appear together, they always
/// have this order.
const ORDER: [&str; 42] = [
    "metadata",
    "items",
    "name",
    "singularName",
    "namespaced",
    "groupVersion",
    "group",
    "version",
    "kind",
    "resource",
    "subresource",
    "resources",
    "groups",
    "versions",
    "preferredVersion",
    "serverAddressByClientCIDRs",
    "clientCIDR",
    "serverAddress",
    "responseKind",
    "scope",
    "singularResource",
    "acceptedTypes",
    "verbs",
    "shortNames",
    "categories",
    "storageVersionHash",
    "subresources",
    "freshness",
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
    "paths",
];

/// Prints a document as JSON, indented or not.
pub fn print(document: &Value, pretty: bool) -> Vec<u8> {
    let mut out = Vec::new();
    write(document, pretty.then_some(0), true, &mut out);
    out
}

/// Writes a value; `level` is its indentation.
fn write(value: &Value, level: Option<usize>, top: bool, out: &mut Vec<u8>) {
    let deeper = level.map(|level| level + 1);
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                begin(index > 0, deeper, out);
                write(item, deeper, false, out);
            }
            begin(false, level, out);
            out.push(b']');
        }
        Value::Object(map) if !map.is_empty() => {
            out.push(b'{');
            for (index, (key, item)) in ordered(map, top).into_iter().enumerate() {
                begin(index > 0, deeper, out);
                write_string(key, out);
                out.extend_from_slice(if level.is_some() { b": " } else { b":" });
                write(item, deeper, false, out);
            }
            begin(false, level, out);
            out.push(b'}');
        }
        other => out.extend_from_slice(&other.to_json()),
    }
}

/// Starts the next item or member, or the closing bracket.
fn begin(comma: bool, level: Option<usize>, out: &mut Vec<u8>) {
    if comma {
        out.push(b',');
    }
    if let Some(level) = level {
        out.push(b'\n');
        out.resize(out.len() + 2 * level, b' ');
    }
}

fn ordered(map: &Map, top: bool) -> Vec<(&str, &Value)> {
    let mut members: Vec<(&str, &Value)> = map.iter().collect();
    // The sort is stable: members that are not listed stay sorted by name, after the listed ones.
    let place = |key: &str| {
        let first = FIRST.iter().position(|known| top && *known == key);
        first.unwrap_or_else(|| {
            let place = ORDER.iter().position(|known| *known == key);
            FIRST.len() + place.unwrap_or(ORDER.len())
        })
    };
    bareboat_api::sort_by(&mut members, |(a, _), (b, _)| place(a).cmp(&place(b)));
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn members_have_upstreams_order() {
        let list = value!({
            "resources": [{
                "storageVersionHash": "h", "verbs": ["get"], "kind": "Scale", "version": "v1", "group": "autoscaling",
                "namespaced": true, "name": "things/scale", "singularName": "", "shortNames": ["t"], "categories": [],
            }],
            "groupVersion": "g/v1",
            "kind": "APIResourceList",
            "apiVersion": "v1",
        });
        let compact = String::from_utf8(print(&list, false)).expect("JSON is UTF-8");
        assert_eq!(
            compact,
            "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"g/v1\",\"resources\":[\
             {\"name\":\"things/scale\",\"singularName\":\"\",\"namespaced\":true,\"group\":\"autoscaling\",\
             \"version\":\"v1\",\"kind\":\"Scale\",\"verbs\":[\"get\"],\"shortNames\":[\"t\"],\"categories\":[],\
             \"storageVersionHash\":\"h\"}]}"
        );
        let group = value!({"versions": [{"version": "v1", "groupVersion": "g/v1"}], "name": "g", "zebra": 1,
            "kind": "APIGroup", "apiVersion": "v1"});
        let pretty = String::from_utf8(print(&group, true)).expect("JSON is UTF-8");
        assert_eq!(
            pretty,
            "{\n  \"kind\": \"APIGroup\",\n  \"apiVersion\": \"v1\",\n  \"name\": \"g\",\n  \"versions\": [\n    {\n      \
             \"groupVersion\": \"g/v1\",\n      \"version\": \"v1\"\n    }\n  ],\n  \"zebra\": 1\n}"
        );
    }
}
