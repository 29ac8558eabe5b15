//! Objects in YAML that a program applies to another server.

use super::remote::{RemoteApi, RemoteApiError};
use bareboat_api::Value;
use std::time::Duration;

/// How long reading discovery may take.
const PATIENCE: Duration = Duration::from_secs(10);

impl RemoteApi {
    /// Applies the objects of a manifest in YAML, one after the other, by server-side apply. The kinds must exist already, and
    /// objects in namespaces must name theirs.
    pub async fn apply_manifest(
        &self,
        manifest: &str,
        manager: &str,
    ) -> Result<(), RemoteApiError> {
        for document in manifest.split("\n---") {
            let parsed = bareboat_wire::yaml::parse(document.as_bytes());
            let parsed = parsed.map_err(|error| {
                RemoteApiError::new(format!("the manifest is not YAML: {error}"))
            })?;
            if parsed.value.is_null() {
                continue;
            }
            let path = self.path_of(&parsed.value).await?;
            self.apply(&path, &parsed.value, manager).await?;
        }
        Ok(())
    }

    /// Returns the path of an object, with the plural that discovery names.
    async fn path_of(&self, object: &Value) -> Result<String, RemoteApiError> {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or("");
        let (version, kind) = (text(&["apiVersion"]), text(&["kind"]));
        let name = text(&["metadata", "name"]);
        let root = match version.contains('/') {
            true => format!("/apis/{version}"),
            false => format!("/api/{version}"),
        };
        let list = self.get(&root, PATIENCE).await?;
        let resources = list.get("resources").and_then(Value::as_array);
        let member = |resource: &Value, key: &str| {
            resource.get(key).and_then(Value::as_str).map(str::to_owned)
        };
        let served = resources.unwrap_or_default().iter().find(|resource| {
            let plural = member(resource, "name").unwrap_or_default();
            member(resource, "kind").as_deref() == Some(kind) && !plural.contains('/')
        });
        let missing = || RemoteApiError::new(format!("{root} has no kind {kind:?}"));
        let served = served.ok_or_else(missing)?;
        let plural = member(served, "name").ok_or_else(missing)?;
        let namespaced = served.get("namespaced").and_then(Value::as_bool) == Some(true);
        Ok(match namespaced {
            true => {
                let namespace = text(&["metadata", "namespace"]);
                format!("{root}/namespaces/{namespace}/{plural}/{name}")
            }
            false => format!("{root}/{plural}/{name}"),
        })
    }
}
