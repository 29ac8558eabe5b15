//! Warnings for an accepted definition.

use super::props::Props;
use super::validate::versions;
use crate::format::Format;
use crate::schema::Kind;
use bareboat_api::Value;
use bareboat_api::field::go_quote;
use std::collections::HashSet;

/// Returns the warnings: unknown formats that the old definition did not have.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known: HashSet<String> = old.map(unknown_formats).into_iter().flatten().collect();
    unknown_formats(new)
        .into_iter()
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {}", go_quote(&format)))
        .collect()
}

fn unknown_formats(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for version in versions(crd) {
        let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else {
            continue;
        };
        // Versions with the same schema are checked once.
        if !seen.insert(schema.to_json()) {
            continue;
        }
        if let Some(props) = Props::of(schema) {
            props.any(&mut |props| {
                let format = props.text("format");
                if !format.is_empty() && Format::named(format, Kind::named(props.kind())).is_none()
                {
                    found.push(format.to_owned());
                }
                false
            });
        }
    }
    found
}
