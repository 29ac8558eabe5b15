//! Where metrics come from: a JSON file. Add your own with [`Source`], such as a query to a database of time series.

use anyhow::Context as _;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Reads metrics.
pub(crate) trait Source: Send + Sync {
    /// Metrics about objects.
    fn custom(&self) -> anyhow::Result<Vec<Custom>>;
    /// Metrics about anything else.
    fn external(&self) -> anyhow::Result<Vec<External>>;
}

/// A metric about an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Custom {
    /// The resource with its group, such as `services` or `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Empty for objects outside of namespaces.
    #[serde(default)]
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The labels of the object.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) metric: String,
    #[serde(default)]
    pub(crate) metric_labels: BTreeMap<String, String>,
    pub(crate) value: String,
}

/// A metric that is about no object.
#[derive(Deserialize)]
pub(crate) struct External {
    pub(crate) metric: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: String,
}

/// A file, read at each request.
pub(crate) struct File(pub(crate) PathBuf);

#[derive(Deserialize)]
struct Content {
    custom: Vec<Custom>,
    external: Vec<External>,
}

impl File {
    fn read(&self) -> anyhow::Result<Content> {
        let text = std::fs::read(&self.0).with_context(|| format!("{}", self.0.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{}", self.0.display()))
    }
}

impl Source for File {
    fn custom(&self) -> anyhow::Result<Vec<Custom>> {
        Ok(self.read()?.custom)
    }

    fn external(&self) -> anyhow::Result<Vec<External>> {
        Ok(self.read()?.external)
    }
}
