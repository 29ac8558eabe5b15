//! Fetches Go modules and finds packages in them.

use anyhow::{Context, Result, anyhow, ensure};
use std::path::PathBuf;
use std::process::Command;

/// The modules that the facts come from.
const MODULES: [&str; 5] = [
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/client-go",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
];

/// The source folder of each module.
pub(crate) struct Modules(Vec<(&'static str, PathBuf)>);

/// Downloads every module with `go`.
pub(crate) fn download(version: &str) -> Result<Modules> {
    let mut found = Vec::new();
    for module in MODULES {
        let output = Command::new("go")
            .args(["mod", "download", "-json", &format!("{module}@{version}")])
            .current_dir(std::env::temp_dir())
            .output()
            .context("running go mod download")?;
        ensure!(
            output.status.success(),
            "go mod download {module}@{version}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let dir = answer["Dir"]
            .as_str()
            .ok_or_else(|| anyhow!("go named no directory for {module}"))?;
        found.push((module, PathBuf::from(dir)));
    }
    Ok(Modules(found))
}

impl Modules {
    /// Returns the directory of a package, if it belongs to one of the modules.
    pub(crate) fn package(&self, import: &str) -> Option<PathBuf> {
        self.0.iter().find_map(|(module, dir)| {
            let rest = import.strip_prefix(module)?;
            (rest.is_empty() || rest.starts_with('/'))
                .then(|| dir.join(rest.trim_start_matches('/')))
        })
    }

    /// Reads a file of a module.
    pub(crate) fn file(&self, module: &str, path: &str) -> Result<String> {
        let dir = self
            .package(module)
            .ok_or_else(|| anyhow!("{module} was not fetched"))?;
        let path = dir.join(path);
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// Returns every package with protobuf definitions and API kinds.
    pub(crate) fn api_packages(&self) -> Result<Vec<String>> {
        let mut packages = vec![
            "k8s.io/apimachinery/pkg/apis/meta/v1".to_owned(),
            "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1".to_owned(),
            "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1".to_owned(),
        ];
        let api = self
            .package("k8s.io/api")
            .ok_or_else(|| anyhow!("k8s.io/api was not fetched"))?;
        for group in std::fs::read_dir(&api)? {
            let group = group?;
            if !group.file_type()?.is_dir() {
                continue;
            }
            for version in std::fs::read_dir(group.path())? {
                let version = version?;
                if version.path().join("generated.proto").exists() {
                    packages.push(format!(
                        "k8s.io/api/{}/{}",
                        group.file_name().to_string_lossy(),
                        version.file_name().to_string_lossy()
                    ));
                }
            }
        }
        packages.sort();
        Ok(packages)
    }
}
