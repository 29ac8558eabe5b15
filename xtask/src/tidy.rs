//! `cargo run -p xtask -- tidy`: checks rules of CONTRIBUTING.md that the compiler does not check.
//!
//! Files start with a description and stay short, banned words are not used, and every dependency is used. rustfmt,
//! clippy and cargo-deny check formatting, lints and licences.

mod dependencies;
mod examples;
mod files;
mod words;

use anyhow::{Context as _, Result, bail};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders without files of this project.
const SKIPPED: &[&str] = &[
    "target",
    "node_modules",
    "bareboat-data",
    "corpus",
    "artifacts",
];

/// A file of the repository, with its path from the root.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn has_extension(&self, extension: &str) -> bool {
        self.path
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// A violation and its location.
#[derive(Debug, PartialEq)]
struct Finding {
    path: PathBuf,
    /// The line, counted from 1; 0 means the whole file.
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.what),
        }
    }
}

/// Checks the whole repository and prints violations.
pub(crate) fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask is in a folder of the workspace")?;
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    let mut findings = files::check(&sources);
    findings.extend(words::check(&sources));
    findings.extend(examples::check(&sources));
    findings.extend(dependencies::check(&sources));
    examples::print(&sources);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files, nothing to say", sources.len());
            Ok(())
        }
        count => bail!("{count} findings"),
    }
}

/// Returns all hand-written files: Rust, manifests, pages, scripts.
fn collect(root: &Path, folder: &Path, found: &mut Vec<File>) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.contains(&&*name) && (!name.starts_with('.') || name == ".ci") {
                collect(root, &path, found)?;
            }
        } else if kind.is_file() && is_written(&path) {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let path = path.strip_prefix(root)?.to_owned();
            found.push(File { path, text });
        }
    }
    Ok(())
}

fn is_written(path: &Path) -> bool {
    let written = ["rs", "md", "toml", "sh", "py", "go", "java", "mjs", "js"];
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => written.contains(&extension),
        None => path
            .file_name()
            .is_some_and(|name| name == "Makefile" || name == "run"),
    }
}

#[cfg(test)]
mod tests;
