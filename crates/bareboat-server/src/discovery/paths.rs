//! `/`: the list of all paths.

use super::Discovery;
use bareboat_api::{Value, value};
use std::collections::BTreeSet;

impl Discovery {
    /// Returns the paths of all groups and versions together with `others` (health, metrics, OpenAPI), without
    /// duplicates and sorted.
    pub fn paths<'a>(&self, others: impl IntoIterator<Item = &'a str>) -> Value {
        let mut paths: BTreeSet<String> = others.into_iter().map(str::to_owned).collect();
        paths.extend(["/api", "/apis", "/apis/"].map(str::to_owned));
        for group in &self.groups {
            let root = if group.name.is_empty() {
                "/api".to_owned()
            } else {
                format!("/apis/{}", group.name)
            };
            for version in &group.versions {
                paths.insert(format!("{root}/{}", version.name));
            }
            paths.insert(root);
        }
        let paths: Value = paths.into_iter().collect();
        value!({"paths": paths})
    }
}
