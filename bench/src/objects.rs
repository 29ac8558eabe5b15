//! Request bodies: CRDs, objects of a kilobyte, and a Deployment in protobuf.

use serde_json::{Map, Value, json};

/// The group of all custom kinds of the benchmark.
pub(crate) const GROUP: &str = "bench.bareboat.example";

/// The placeholder of the name in a template.
pub(crate) const NAME: &str = "@NAME@";
/// The placeholder of a digit whose label selects a tenth of the objects.
pub(crate) const SLICE: &str = "@SLICE@";

/// A text with placeholders for a name and a digit.
#[derive(Debug)]
pub(crate) struct Template(String);

impl Template {
    /// Returns the text for object number `at`.
    pub(crate) fn render(&self, name: &str, at: usize) -> Vec<u8> {
        self.0
            .replace(NAME, name)
            .replace(SLICE, &(at % 10).to_string())
            .into_bytes()
    }
}

/// Returns a CRD with one version and this schema of `spec`.
pub(crate) fn definition(plural: &str, kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": spec,
                        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    },
                } },
            }],
        },
    })
}

/// Returns a field's schema by its number: strings, integers, flags, lists and maps in turn.
fn field(at: usize) -> Value {
    match at % 8 {
        0..=2 => {
            json!({ "type": "string", "maxLength": 200, "description": format!("Text number {at}") })
        }
        3 => json!({ "type": "integer", "minimum": 0, "maximum": 1_000_000 }),
        4 => json!({ "type": "boolean", "default": false }),
        5 => {
            json!({ "type": "array", "maxItems": 20, "items": { "type": "string", "maxLength": 64 } })
        }
        6 => {
            json!({ "type": "object", "maxProperties": 20, "additionalProperties": { "type": "integer" } })
        }
        _ => json!({ "type": "string", "enum": ["small", "medium", "large"] }),
    }
}

fn value(at: usize, text: usize) -> Value {
    match at % 8 {
        0..=2 => json!(
            "abcdefghijklmnopqrstuvwxyz"
                .chars()
                .cycle()
                .take(text)
                .collect::<String>()
        ),
        3 => json!(at * 17),
        4 => json!(at % 16 == 4),
        5 => json!(["alpha", "beta"]),
        6 => json!({ "one": 1, "two": 2 }),
        _ => json!("medium"),
    }
}

fn fields<T>(count: usize, make: impl Fn(usize) -> T) -> Map<String, Value>
where
    Value: From<T>,
{
    (0..count)
        .map(|at| (format!("field{at:02}"), make(at).into()))
        .collect()
}

/// Returns the CRD of the standard kind, with 40 fields.
pub(crate) fn item_definition() -> Value {
    definition(
        "items",
        "Item",
        json!({ "type": "object", "properties": fields(40, field) }),
    )
}

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": { "name": NAME, "labels": { "slice": SLICE, "app": "bench" } },
        "spec": spec,
    })
}

/// Returns an object of the standard kind with 1 KiB of JSON. Two of five fields are set, because real objects also
/// leave most fields unset.
pub(crate) fn item() -> Template {
    let sized = |text| {
        let mut spec = fields(40, |at| value(at, text));
        let mut at = 0;
        spec.retain(|_, _| {
            at += 1;
            at % 5 < 2
        });
        object("Item", &Value::Object(spec)).to_string()
    };
    let text = (1..200).map(sized).find(|text| text.len() >= 1024);
    Template(text.expect("two hundred letters in each text exceed a kilobyte"))
}

/// Returns a CRD with 100 fields and ten CEL rules.
pub(crate) fn ruled_definition() -> Value {
    let mut properties = fields(92, field);
    for (name, schema) in [
        ("name", json!({ "type": "string", "maxLength": 63 })),
        ("zone", json!({ "type": "string", "maxLength": 10 })),
        ("minimum", json!({ "type": "integer" })),
        ("maximum", json!({ "type": "integer" })),
        ("replicas", json!({ "type": "integer" })),
        (
            "tags",
            json!({ "type": "array", "maxItems": 10, "items": { "type": "string", "maxLength": 30 } }),
        ),
        (
            "ports",
            json!({ "type": "array", "maxItems": 10, "items": { "type": "integer" } }),
        ),
        (
            "limits",
            json!({ "type": "object", "maxProperties": 10, "additionalProperties": { "type": "integer" } }),
        ),
    ] {
        properties.insert(name.to_owned(), schema);
    }
    let rules = [
        "self.minimum <= self.maximum",
        "self.name.startsWith('b')",
        "self.tags.all(tag, tag.size() > 0)",
        "self.ports.exists(port, port > 1024)",
        "!has(self.field00) || self.field00.size() < 150",
        "self.replicas >= self.minimum && self.replicas <= self.maximum",
        "self.tags.size() <= 10 && self.ports.all(port, port < 65536)",
        "self.name.matches('^[a-z0-9-]+$')",
        "self.limits.all(key, self.limits[key] > 0)",
        "self.zone in ['a', 'b', 'c']",
    ];
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| json!({ "rule": rule, "message": "the rule does not hold" }))
        .collect();
    let required = [
        "name", "zone", "minimum", "maximum", "replicas", "tags", "ports", "limits",
    ];
    let spec = json!({
        "type": "object", "properties": properties, "required": required, "x-kubernetes-validations": rules,
    });
    definition("ruleds", "Ruled", spec)
}

/// Returns a valid object of that kind.
pub(crate) fn ruled() -> Template {
    let mut spec = fields(92, |at| value(at, 12));
    for (name, value) in [
        ("name", json!("boat-seven")),
        ("zone", json!("b")),
        ("minimum", json!(1)),
        ("maximum", json!(9)),
        ("replicas", json!(3)),
        ("tags", json!(["red", "green", "blue"])),
        ("ports", json!([80, 443, 8080])),
        ("limits", json!({ "cpu": 4, "memory": 16 })),
    ] {
        spec.insert(name.to_owned(), value);
    }
    Template(object("Ruled", &Value::Object(spec)).to_string())
}

/// Returns a CRD of about 31 KiB. All schemas differ, as real ones do.
pub(crate) fn large_definition(number: usize) -> Vec<u8> {
    let mut properties = Map::new();
    let mut size = 0;
    let mut at = 0;
    while size < 30 * 1024 {
        let mut schema = json!({
            "type": "object",
            "description": format!("Section {at} of kind {number} says how this part of the machinery is to behave, \
                and what happens to it when its neighbours change or disappear."),
            "properties": fields(4, |field_at| field(at * 4 + field_at)),
        });
        if at % 3 == 0 {
            schema = json!({ "type": "array", "items": schema, "maxItems": 16 });
        }
        size += schema.to_string().len() + 20;
        properties.insert(format!("kind{number}Section{at}"), schema);
        at += 1;
    }
    let spec = json!({ "type": "object", "properties": properties });
    definition(&format!("larges{number}"), &format!("Large{number}"), spec)
        .to_string()
        .into_bytes()
}

/// Encodes a Deployment in Kubernetes' protobuf: magic number, envelope, object.
pub(crate) fn deployment_protobuf(name: &str, namespace: &str) -> Vec<u8> {
    let labels = |field: u8| bytes(field, &[bytes(1, b"app"), bytes(2, b"bench")].concat());
    let container = [
        bytes(1, b"main"),
        bytes(2, b"registry.example/bench:1"),
        bytes(7, &[bytes(1, b"MODE"), bytes(2, b"test")].concat()),
        bytes(6, &[bytes(1, b"web"), integer(3, 8080)].concat()),
    ];
    let template = [
        bytes(1, &labels(11)),
        bytes(2, &bytes(2, &container.concat())),
    ];
    let spec = [
        integer(1, 3),
        bytes(2, &labels(1)),
        bytes(3, &template.concat()),
    ];
    let meta = [
        bytes(1, name.as_bytes()),
        bytes(3, namespace.as_bytes()),
        labels(11),
    ];
    let object = [bytes(1, &meta.concat()), bytes(2, &spec.concat())];
    let kind = [bytes(1, b"apps/v1"), bytes(2, b"Deployment")];
    let envelope = [bytes(1, &kind.concat()), bytes(2, &object.concat())];
    [b"k8s\0".to_vec(), envelope.concat()].concat()
}

fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    varint(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}

fn integer(field: u8, value: u64) -> Vec<u8> {
    let mut out = vec![field << 3];
    varint(&mut out, value);
    out
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_one_kilobyte_and_a_large_definition_thirty_one() {
        let item = item().render("item-00001", 1);
        assert!((1000..1200).contains(&item.len()), "{}", item.len());
        let large = large_definition(7);
        assert!(
            (30 * 1024..33 * 1024).contains(&large.len()),
            "{}",
            large.len()
        );
    }

    #[test]
    fn a_ruled_kind_has_a_hundred_fields_and_ten_rules() {
        let definition = ruled_definition();
        let spec =
            &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["properties"].as_object().map(Map::len), Some(100));
        assert_eq!(
            spec["x-kubernetes-validations"].as_array().map(Vec::len),
            Some(10)
        );
    }
}
