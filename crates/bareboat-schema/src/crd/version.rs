//! One version of a definition, and the order of versions.

use bareboat_api::kind::ScalePaths;
use bareboat_api::{Str, Value};
use std::cmp::Ordering;

/// One version of a definition, without its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The name, such as `v1beta1`.
    pub name: Str,
    /// Whether the API serves this version.
    pub served: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether requests to this version get a deprecation warning.
    pub deprecated: bool,
    /// The deprecation warning, in place of the usual text.
    pub deprecation_warning: Option<Str>,
    /// Whether the version declares a schema.
    pub has_schema: bool,
    /// The table columns after the name; if empty, the age is shown.
    pub columns: Vec<PrinterColumn>,
    /// Whether the version declares the subresource `status`.
    pub status: bool,
    /// The paths of the scale subresource.
    pub scale: Option<ScalePaths>,
    /// Fields that selectors may name, with their leading dots.
    pub selectable: Vec<Str>,
}

/// A table column of the definition.
#[derive(Clone, Debug, PartialEq)]
pub struct PrinterColumn {
    /// The heading of the column.
    pub name: Str,
    /// The type: `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: Str,
    /// The format; may be empty.
    pub format: Str,
    /// The description; derived from the path when the definition has none.
    pub description: Str,
    /// The priority: 0 is always shown, higher only in wide output.
    pub priority: i32,
    /// The path of the value.
    pub json_path: Str,
}

impl Version {
    /// Parses a version; malformed parts count as absent.
    pub fn parse(value: &Value) -> Version {
        let truth = |key: &str| value.get(key) == Some(&Value::Bool(true));
        let list = |key: &str| value.get(key).and_then(Value::as_array).unwrap_or(&[]);
        let path = |scale: &Value, key: &str| scale.get(key).and_then(Value::as_str).map(Str::new);
        let scale = value.at(&["subresources", "scale"]);
        Version {
            name: text(value, "name"),
            served: truth("served"),
            storage: truth("storage"),
            deprecated: truth("deprecated"),
            deprecation_warning: path(value, "deprecationWarning"),
            has_schema: value.at(&["schema", "openAPIV3Schema"]).is_some(),
            columns: list("additionalPrinterColumns")
                .iter()
                .map(PrinterColumn::parse)
                .collect(),
            status: value
                .at(&["subresources", "status"])
                .is_some_and(|status| !status.is_null()),
            scale: scale
                .filter(|scale| !scale.is_null())
                .map(|scale| ScalePaths {
                    spec_replicas: path(scale, "specReplicasPath").unwrap_or_default(),
                    status_replicas: path(scale, "statusReplicasPath").unwrap_or_default(),
                    label_selector: path(scale, "labelSelectorPath")
                        .filter(|path| !path.is_empty()),
                }),
            selectable: list("selectableFields")
                .iter()
                .map(|field| text(field, "jsonPath"))
                .collect(),
        }
    }
}

impl PrinterColumn {
    fn parse(value: &Value) -> PrinterColumn {
        let json_path = text(value, "jsonPath");
        let described = text(value, "description");
        PrinterColumn {
            name: text(value, "name"),
            ty: text(value, "type"),
            format: text(value, "format"),
            description: if described.is_empty() {
                Str::new(format!(
                    "Custom resource definition column (in JSONPath format): {json_path}"
                ))
            } else {
                described
            },
            priority: value
                .get("priority")
                .and_then(Value::as_i64)
                .and_then(|priority| i32::try_from(priority).ok())
                .unwrap_or(0),
            json_path,
        }
    }
}

fn text(value: &Value, key: &str) -> Str {
    let found = value.get(key).and_then(Value::as_str);
    found.map(Str::new).unwrap_or_default()
}

/// Orders versions like Kubernetes: `v2` before `v1` before `v1beta2` before `v1alpha1` before
/// other names, and those in reverse alphabetical order.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

/// Returns the rank: stability first, then major, then minor.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    let major: u64 = number(&rest[..end])?;
    let tail = &rest[end..];
    if tail.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match tail.strip_prefix("beta") {
        Some(minor) => (1, minor),
        None => (0, tail.strip_prefix("alpha")?),
    };
    Some((stability, major, number(minor)?))
}

fn number(digits: &str) -> Option<u64> {
    let shaped = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    shaped.then(|| digits.parse().ok())?
}
