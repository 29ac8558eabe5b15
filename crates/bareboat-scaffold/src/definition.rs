//! CustomResourceDefinitions in manifests: JSON documents after `---`, because tests compare them with what programs make.

use crate::edit::EditError;
use bareboat_api::Value;

/// Changes the definition with a name in a manifest.
pub(crate) fn change(
    path: &str,
    text: &str,
    name: &str,
    edit: impl Fn(&mut Value) -> Option<()>,
) -> Result<String, EditError> {
    let mut found = false;
    let mut out = String::new();
    for document in text
        .split("---\n")
        .filter(|document| !document.trim().is_empty())
    {
        out.push_str("---\n");
        let parsed = bareboat_wire::yaml::parse(document.as_bytes()).ok();
        let mut value = parsed.map(|parsed| parsed.value).unwrap_or_default();
        let own = value.at(&["metadata", "name"]).and_then(Value::as_str) == Some(name);
        if own && edit(&mut value).is_some() {
            found = true;
            let printed = match document.trim_start().starts_with('{') {
                true => value.to_json_pretty(),
                false => bareboat_wire::yaml::print(&value),
            };
            out.push_str(&String::from_utf8_lossy(&printed));
        } else {
            out.push_str(document);
        }
    }
    match found {
        true => Ok(out),
        false => Err(EditError {
            path: path.to_owned(),
            anchor: format!("name: {name}"),
            text: "the change of the definition".to_owned(),
        }),
    }
}

/// Adds a version that is a copy of the last one and is not stored.
pub(crate) fn add_version(definition: &mut Value, version: &str) -> Option<()> {
    let versions = definition.at_mut(&["spec", "versions"])?.as_array_mut()?;
    let mut copy = versions.last()?.clone();
    let fields = copy.as_object_mut()?;
    fields.insert("name", Value::string(version));
    fields.insert("storage", Value::Bool(false));
    versions.push(copy);
    Some(())
}

/// Adds the subresource `scale` to all versions.
pub(crate) fn add_scale(definition: &mut Value, spec: &str, status: &str) -> Option<()> {
    let versions = definition.at_mut(&["spec", "versions"])?.as_array_mut()?;
    for version in versions {
        let scale =
            bareboat_api::value!({"specReplicasPath": (spec), "statusReplicasPath": (status)});
        version
            .make_object()
            .object_mut("subresources")
            .insert("scale", scale);
    }
    Some(())
}
