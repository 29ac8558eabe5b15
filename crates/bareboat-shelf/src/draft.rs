//! An object of a member as it is written to the shelf: checked, without noise, with its narrow columns.

use bareboat_api::labels::{Operator, Requirement};
use bareboat_api::time::Timestamp;
use bareboat_api::{Map, Str, Value, names};
use bytes::Bytes;

/// The annotation with the name of the member.
pub const CLUSTER_ANNOTATION: &str = "shadow.clusterpedia.io/cluster-name";
/// The annotation with the member's own resourceVersion.
pub const VERSION_ANNOTATION: &str = "shadow.bareboat.dev/resource-version";
/// The annotation of an object that was too large to be kept whole.
const TRIMMED_ANNOTATION: &str = "shadow.bareboat.dev/trimmed";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Only this program may set annotations of these prefixes.
const SHADOWS: [&str; 2] = ["shadow.clusterpedia.io/", "shadow.bareboat.dev/"];
/// The largest body that is kept whole.
const LARGEST: usize = 3 << 19;

/// Why an object of a member is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DraftError(&'static str);

/// An object, ready to be written.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) owner: String,
    pub(crate) created: i64,
    pub(crate) deleting: Option<i64>,
    pub(crate) member_version: String,
    pub(crate) labels: String,
    pub(crate) object: Value,
    pub(crate) body: Bytes,
    /// Where the resourceVersion is inserted.
    pub(crate) splice: usize,
}

impl Draft {
    /// Reads an object of a member. Managed fields and kubectl's copy of the object are left out.
    pub fn new(member: &str, mut object: Value) -> Result<Draft, DraftError> {
        let api_version = object.get("apiVersion").and_then(Value::as_str);
        let api_version = api_version.ok_or(DraftError("it has no apiVersion"))?;
        let version = api_version.rsplit('/').next().unwrap_or(api_version);
        let version = version.to_owned();
        let metadata = object.get("metadata").and_then(Value::as_object);
        let metadata = metadata.ok_or(DraftError("it has no metadata"))?;
        let text = |key: &str| metadata.get_str(key).unwrap_or("").to_owned();
        let draft = Draft {
            version,
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            owner: controller(metadata),
            created: time(metadata, "creationTimestamp").unwrap_or(0),
            deleting: time(metadata, "deletionTimestamp"),
            member_version: text("resourceVersion"),
            labels: labels(metadata)?,
            object: Value::Null,
            body: Bytes::new(),
            splice: 0,
        };
        let is_name =
            |text: &str| !text.is_empty() && text.len() <= 253 && !text.contains(['/', '%']);
        if !is_name(&draft.name) || draft.name.chars().any(char::is_control) {
            return Err(DraftError("its name is invalid"));
        }
        if !draft.namespace.is_empty() && !names::is_dns1123_label(&draft.namespace) {
            return Err(DraftError("its namespace is invalid"));
        }
        let has_control = |text: &str| text.chars().any(char::is_control);
        let is_wrong = |text: &str| text.len() > 128 || has_control(text);
        if is_wrong(&draft.version) || is_wrong(&draft.owner) {
            return Err(DraftError(
                "its apiVersion or the uid of its owner is invalid",
            ));
        }
        if draft.uid.is_empty() || draft.uid.len() > 128 || has_control(&draft.uid) {
            return Err(DraftError("its uid is invalid"));
        }
        if draft.member_version.is_empty()
            || draft.member_version.len() > 64
            || has_control(&draft.member_version)
        {
            return Err(DraftError("its resourceVersion is invalid"));
        }
        mark(&mut object, member, &draft.member_version);
        Ok(draft.completed(object))
    }

    /// Adds the body.
    fn completed(mut self, object: Value) -> Draft {
        let (body, splice) = printed(&object);
        (self.body, self.splice, self.object) = (body, splice, object);
        if self.body.len() <= LARGEST {
            return self;
        }
        // What is left are the columns, which are small.
        let mut small = Map::new();
        for key in ["apiVersion", "kind"] {
            small.insert(key, self.object.get(key).cloned().unwrap_or(Value::Null));
        }
        let mut metadata = self.object.get("metadata").cloned().unwrap_or(Value::Null);
        let trimmed = metadata.make_object();
        let shown = [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "labels",
            "ownerReferences",
        ];
        trimmed.retain(|key, _| shown.contains(&key));
        let mut annotations = Map::new();
        if let Some(Value::Object(all)) = self.object.at(&["metadata", "annotations"]) {
            for key in [CLUSTER_ANNOTATION, VERSION_ANNOTATION] {
                annotations.insert(key, all.get(key).cloned().unwrap_or(Value::Null));
            }
        }
        annotations.insert(TRIMMED_ANNOTATION, Value::string("too large"));
        trimmed.insert("annotations", Value::Object(annotations));
        small.insert("metadata", metadata);
        let small = Value::Object(small);
        (self.body, self.splice) = printed(&small);
        self.object = small;
        self
    }

    /// Returns the body, without resourceVersion.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns where the resourceVersion belongs in the body.
    pub fn splice(&self) -> usize {
        self.splice
    }

    /// Returns the uid.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the resourceVersion in the member.
    pub fn member_version(&self) -> &str {
        &self.member_version
    }
}

/// Removes what views do not show, and adds the annotations of the shelf.
fn mark(object: &mut Value, member: &str, version: &str) {
    let Some(metadata) = object.at_mut(&["metadata"]).and_then(Value::as_object_mut) else {
        return;
    };
    metadata.remove("managedFields");
    metadata.remove("resourceVersion");
    metadata.remove("selfLink");
    let annotations = metadata.object_mut("annotations");
    annotations.remove(LAST_APPLIED);
    annotations.retain(|key, _| !SHADOWS.iter().any(|shadow| key.starts_with(shadow)));
    annotations.insert(CLUSTER_ANNOTATION, Value::string(member));
    annotations.insert(VERSION_ANNOTATION, Value::string(version));
}

/// Prints an object, and returns where its resourceVersion belongs: at the start of its metadata.
fn printed(object: &Value) -> (Bytes, usize) {
    let mut out = Vec::with_capacity(1024);
    let mut splice = 0;
    out.push(b'{');
    // The type comes first, then the metadata, as clients expect of lists of one kind.
    let first = ["apiVersion", "kind", "metadata"];
    let members = object.as_object();
    let rest = members.into_iter().flat_map(Map::iter);
    let rest = rest.filter(|(key, _)| !first.contains(key));
    let first = first
        .iter()
        .filter_map(|key| Some((*key, object.get(key)?)));
    for (key, value) in first.chain(rest) {
        if out.len() > 1 {
            out.push(b',');
        }
        bareboat_api::value::write_string(key, &mut out);
        out.push(b':');
        if key == "metadata" {
            splice = out.len() + 1;
        }
        value.write_json(&mut out);
    }
    out.push(b'}');
    (out.into(), splice)
}

fn time(metadata: &Map, key: &str) -> Option<i64> {
    let text = metadata.get_str(key)?;
    Timestamp::parse(text).ok().map(|time| time.seconds)
}

fn controller(metadata: &Map) -> String {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let owners = owners.unwrap_or_default().iter();
    let mut controllers =
        owners.filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let uid = controllers
        .next()
        .and_then(|owner| owner.get("uid")?.as_str());
    uid.unwrap_or("").to_owned()
}

/// Returns the labels as a JSON object. Keys and values are checked: conditions in SQL depend on their characters.
fn labels(metadata: &Map) -> Result<String, DraftError> {
    let Some(Value::Object(labels)) = metadata.get("labels") else {
        return Ok("{}".to_owned());
    };
    for (key, value) in labels.iter() {
        let value = value.as_str().ok_or(DraftError("a label is not a text"))?;
        let valid = Requirement::new(key, Operator::Equals, vec![Str::new(value)]);
        valid.map_err(|_| DraftError("a label is invalid"))?;
    }
    let mut out = Vec::new();
    Value::Object(labels.clone()).write_json(&mut out);
    Ok(String::from_utf8(out).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::Draft;
    use bareboat_api::value;

    #[test]
    fn bodies_are_stored_without_noise() {
        let object = value!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7",
                "managedFields": [{"manager": "x"}],
                "annotations": {"shadow.clusterpedia.io/cluster-name": "evil", "a": "b"},
                "creationTimestamp": "1970-01-01T00:01:00Z",
            },
            "spec": {"replicas": 3},
        });
        let draft = Draft::new("c1", object).expect("it is well formed");
        let body = std::str::from_utf8(&draft.body).expect("JSON is UTF-8");
        let expected = "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\
            \"annotations\":{\"a\":\"b\",\"shadow.bareboat.dev/resource-version\":\"7\",\
            \"shadow.clusterpedia.io/cluster-name\":\"c1\"},\"creationTimestamp\":\"1970-01-01T00:01:00Z\",\
            \"name\":\"web\",\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":{\"replicas\":3}}";
        assert_eq!(body, expected);
        assert!(body[draft.splice..].starts_with("\"annotations\""));
        assert_eq!((draft.created, draft.version.as_str()), (60, "v1"));
    }

    #[test]
    fn large_objects_keep_their_metadata() {
        let object = value!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "big", "namespace": "default", "uid": "u", "resourceVersion": "7"},
            "data": {"x": ("x".repeat(2 << 20))},
        });
        let draft = Draft::new("c1", object).expect("it is well formed");
        assert!(draft.body.len() < 1000);
        assert!(draft.object.get("data").is_none());
    }

    #[test]
    fn bad_objects_are_refused() {
        let good = value!({"name": "a", "uid": "u", "resourceVersion": "1"});
        let bad = [
            value!({}),
            value!({"name": "a/b", "uid": "u", "resourceVersion": "1"}),
            value!({"name": "a", "resourceVersion": "1"}),
            value!({"name": "a", "uid": "u"}),
            value!({"name": "a", "uid": "u", "resourceVersion": "1", "namespace": "A B"}),
            value!({"name": "a", "uid": "u\u{0}", "resourceVersion": "1"}),
            value!({"name": "a", "uid": "u", "resourceVersion": "1\u{0}"}),
            value!({"name": "a", "uid": "u", "resourceVersion": "1", "labels": {"a\"b": "c"}}),
        ];
        let draft = |metadata| {
            Draft::new(
                "c1",
                value!({"apiVersion": "v1", "kind": "X", "metadata": (metadata)}),
            )
        };
        assert!(draft(good).is_ok());
        for metadata in bad {
            assert!(draft(metadata).is_err());
        }
    }
}
