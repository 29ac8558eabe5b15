//! Checks that every dependency of a manifest is named in its code, and every workspace dependency in a manifest.
//!
//! It searches for names in text. A dependency that only enables a feature is listed under `[package.metadata.tidy]
//! unnamed`. `deny.toml` decides which dependencies are allowed.

use super::words::has_word;
use super::{File, Finding};
use std::path::Path;

/// A line `name = …` of a table of dependencies.
#[derive(Debug, PartialEq)]
pub(super) struct Dependency<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) table: Table,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Table {
    Normal,
    Dev,
    Build,
    Workspace,
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let manifests = files.iter().filter(|file| {
        file.path
            .file_name()
            .is_some_and(|name| name == "Cargo.toml")
    });
    let mut findings = Vec::new();
    let mut used = Vec::new();
    let mut offered = Vec::new();
    for manifest in manifests {
        let folder = manifest.path.parent().unwrap_or(Path::new(""));
        let unnamed = unnamed(&manifest.text);
        for dependency in dependencies(&manifest.text) {
            if dependency.table == Table::Workspace {
                offered.push((manifest, dependency));
                continue;
            }
            used.push(dependency.name);
            if !unnamed.contains(&dependency.name) && !is_named(&dependency, folder, files) {
                findings.push(Finding {
                    path: manifest.path.clone(),
                    line: dependency.line,
                    what: format!("no code for this table names `{}`", dependency.name),
                });
            }
        }
    }
    for (manifest, dependency) in offered {
        if !used.contains(&dependency.name) {
            findings.push(Finding {
                path: manifest.path.clone(),
                line: dependency.line,
                what: format!("no manifest names `{}`", dependency.name),
            });
        }
    }
    findings
}

/// Returns the dependencies of a manifest, in order.
pub(super) fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut table = None;
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            table = header.strip_suffix(']').and_then(table_of);
            continue;
        }
        let Some(table) = table else { continue };
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        if !name.is_empty() && !name.starts_with('#') && line.contains('=') {
            let line = index + 1;
            found.push(Dependency { line, name, table });
        }
    }
    found
}

fn table_of(header: &str) -> Option<Table> {
    match header.rsplit('.').next()? {
        "dependencies" if header.starts_with("workspace") => Some(Table::Workspace),
        "dependencies" => Some(Table::Normal),
        "dev-dependencies" => Some(Table::Dev),
        "build-dependencies" => Some(Table::Build),
        _ => None,
    }
}

/// Returns the dependencies that a manifest declares as used without a name in code.
fn unnamed(manifest: &str) -> Vec<&str> {
    let list = manifest
        .lines()
        .skip_while(|line| line.trim() != "[package.metadata.tidy]")
        .find_map(|line| line.trim().strip_prefix("unnamed = ["));
    let names = list.unwrap_or_default().split('"').skip(1).step_by(2);
    names.collect()
}

/// Returns whether code names a dependency. Test files do not count for normal dependencies, unless they are beside the
/// code.
fn is_named(dependency: &Dependency<'_>, folder: &Path, files: &[File]) -> bool {
    let name = dependency.name.replace('-', "_");
    let mut sources = files.iter().filter(|file| {
        file.has_extension("rs")
            && file.path.strip_prefix(folder).is_ok_and(|inside| {
                let script = inside == Path::new("build.rs");
                match dependency.table {
                    Table::Normal => inside.starts_with("src") || inside.starts_with("targets"),
                    Table::Build => script,
                    Table::Dev | Table::Workspace => !script,
                }
            })
    });
    sources.any(|file| {
        file.text.lines().any(|line| {
            let comment = line.trim_start().starts_with("//");
            (dependency.table == Table::Dev || !comment) && has_word(line, &name)
        })
    })
}
