//! Additions to a project: a kind, a version, a subresource, a webhook. They are computed first, so that all of them are
//! shown and none is made if one cannot be.

use crate::edit::EditError;
use crate::names::KindNames;
use crate::project::{DESCRIPTION, Flavor, Language, Project, description};
use crate::{go, python, rust};
use std::collections::BTreeMap;

/// What to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addition {
    /// Another kind.
    Kind(KindNames),
    /// Another version of a kind.
    Version {
        /// The kind.
        kind: String,
        /// The version.
        version: String,
    },
    /// A subresource of a kind.
    Subresource {
        /// The kind.
        kind: String,
        /// The subresource.
        name: String,
        /// For `scale`: the fields of the wanted and the observed number.
        scale: Option<(String, String)>,
    },
    /// Rules for a kind: webhooks, or admission inside a server.
    Webhook {
        /// The kind.
        kind: String,
    },
}

/// Why something cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The project has no such kind.
    #[error("this project has no kind {0:?}; it has {1}")]
    UnknownKind(String, String),
    /// It is there already.
    #[error("{0} is there already")]
    Exists(String),
    /// A file of the project is missing.
    #[error("{0} is missing, but `bareboat new` made it; is this the folder of the project?")]
    Missing(String),
    /// A file was changed so that the place for the addition is not found.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// This kind of project cannot have it.
    #[error("{0}")]
    Unsupported(String),
}

/// A file before and after an addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path in the project.
    pub path: String,
    /// The text before; `None` for a new file.
    pub before: Option<String>,
    /// The text after.
    pub after: String,
}

/// The files of a project, with changes that are not written yet.
pub(crate) struct Tree<'r> {
    read: &'r dyn Fn(&str) -> Option<String>,
    changed: BTreeMap<String, String>,
}

impl Tree<'_> {
    /// Adds a file that must not exist.
    pub(crate) fn add(&mut self, path: &str, text: String) -> Result<(), AddError> {
        match self.get(path) {
            Some(_) => Err(AddError::Exists(path.to_owned())),
            None => {
                self.changed.insert(path.to_owned(), text);
                Ok(())
            }
        }
    }

    /// Returns the present text of a file.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        self.changed
            .get(path)
            .cloned()
            .or_else(|| (self.read)(path))
    }

    /// Changes a file.
    pub(crate) fn edit(
        &mut self,
        path: &str,
        change: impl FnOnce(&str) -> Result<String, EditError>,
    ) -> Result<(), AddError> {
        let text = self
            .get(path)
            .ok_or_else(|| AddError::Missing(path.to_owned()))?;
        let text = change(&text)?;
        self.changed.insert(path.to_owned(), text);
        Ok(())
    }
}

/// Returns what an addition changes. `read` returns the text of a file of the project.
pub fn add(
    project: &Project,
    addition: &Addition,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Change>, AddError> {
    let mut tree = Tree {
        read,
        changed: BTreeMap::new(),
    };
    let mut project = project.clone();
    apply(&mut project, addition, &mut tree)?;
    if project.language != Language::Go {
        tree.changed
            .insert(DESCRIPTION.to_owned(), description(&project));
    }
    let changes = tree.changed.into_iter().map(|(path, after)| Change {
        before: read(&path),
        path,
        after,
    });
    Ok(changes
        .filter(|change| change.before.as_ref() != Some(&change.after))
        .collect())
}

fn apply(project: &mut Project, addition: &Addition, tree: &mut Tree<'_>) -> Result<(), AddError> {
    let found = |project: &Project, name: &str| -> Result<usize, AddError> {
        let mut kinds = project.kinds.iter();
        let same = |known: &KindNames| {
            known.kind == name || known.plural == name || known.singular() == name
        };
        kinds.position(same).ok_or_else(|| {
            let known: Vec<&str> = project
                .kinds
                .iter()
                .map(|kind| kind.kind.as_str())
                .collect();
            AddError::UnknownKind(name.to_owned(), known.join(", "))
        })
    };
    match addition {
        Addition::Kind(kind) => {
            if found(project, &kind.kind).is_ok() {
                return Err(AddError::Exists(kind.kind.clone()));
            }
            project.kinds.push(kind.clone());
            match project.language {
                Language::Rust => rust::add_kind(project, kind, tree),
                Language::Go => go::add_kind(project, kind, tree),
                Language::Python => python::add_kind(project, kind, tree),
            }
        }
        Addition::Version { kind, version } => {
            let index = found(project, kind)?;
            if project.kinds[index].versions.contains(version) {
                return Err(AddError::Exists(version.clone()));
            }
            if project.flavor == Flavor::Webhook {
                let text = "webhooks see objects of every version: there is nothing to add";
                return Err(AddError::Unsupported(text.to_owned()));
            }
            let kind = project.kinds[index].clone();
            project.kinds[index].versions.push(version.clone());
            match project.language {
                Language::Rust => rust::add_version(project, &kind, version, tree),
                Language::Go => go::add_version(project, &kind, version, tree),
                Language::Python => python::add_version(project, &kind, version, tree),
            }
        }
        Addition::Subresource { kind, name, scale } => {
            let kind = project.kinds[found(project, kind)?].clone();
            subresource(project, &kind, name, scale.as_ref(), tree)
        }
        Addition::Webhook { kind } => {
            let kind = project.kinds[found(project, kind)?].clone();
            match project.language {
                Language::Rust => rust::add_webhook(project, &kind, tree),
                Language::Go => go::add_webhook(project, &kind, tree),
                Language::Python => python::add_webhook(project, &kind, tree),
            }
        }
    }
}

fn subresource(
    project: &Project,
    kind: &KindNames,
    name: &str,
    scale: Option<&(String, String)>,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    match (project.flavor, name, scale) {
        (Flavor::Server, ..) => rust::add_subresource(project, kind, name, tree),
        (Flavor::Webhook, ..) => {
            let text =
                "webhooks have no subresources; add one to the operator or server of the kind";
            Err(AddError::Unsupported(text.to_owned()))
        }
        (Flavor::Operator, "scale", Some((spec, status))) => match project.language {
            Language::Rust => rust::add_scale(project, kind, spec, status, tree),
            Language::Go => go::add_scale(project, kind, spec, status, tree),
            Language::Python => python::add_scale(project, kind, spec, status, tree),
        },
        (Flavor::Operator, "scale", None) => {
            let text = "which fields are scaled? name them: --spec-path .spec.times --status-path .status.times";
            Err(AddError::Unsupported(text.to_owned()))
        }
        (Flavor::Operator, ..) => {
            let text = "a definition has the subresources status and scale. Others need a server (`bareboat new server`), or \
                        the annotation bareboat.dev/subresources of the definition (docs/subresources.md)";
            Err(AddError::Unsupported(text.to_owned()))
        }
    }
}
