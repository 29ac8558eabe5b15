//! A project: what it is called, what it is written in, and the files it starts with.

use crate::names::KindNames;
use crate::{go, python, rust};
use bareboat_api::Value;
use std::path::PathBuf;

/// What a project is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Controllers of custom kinds.
    Operator,
    /// An API server of its own.
    Server,
    /// Admission webhooks.
    Webhook,
}

impl Flavor {
    /// All of them.
    pub const ALL: [Flavor; 3] = [Flavor::Operator, Flavor::Server, Flavor::Webhook];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Flavor::Operator => "operator",
            Flavor::Server => "server",
            Flavor::Webhook => "webhook",
        }
    }
}

/// What a project is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the crate `bareboat` and kube-rs.
    Rust,
    /// With controller-runtime, in the layout of kubebuilder.
    Go,
    /// With kopf.
    Python,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 3] = [Language::Rust, Language::Go, Language::Python];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Go => "go",
            Language::Python => "python",
        }
    }
}

/// Where a project in Rust finds the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Library {
    /// In a checkout.
    Path(PathBuf),
    /// In a Git repository.
    Git(String),
}

impl Library {
    /// Returns the keys of a dependency on one of its crates.
    pub(crate) fn manifest(&self, name: &str) -> String {
        match self {
            Library::Path(path) => {
                let path = path.join("crates").join(name);
                format!("path = {}", Value::string(path.to_string_lossy()))
            }
            Library::Git(url) => format!("git = {}", Value::string(url)),
        }
    }

    /// Returns the URL that others can install the program from, if there is one.
    pub(crate) fn git(&self) -> &str {
        match self {
            Library::Path(_) => "",
            Library::Git(url) => url,
        }
    }
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// What it is.
    pub flavor: Flavor,
    /// What it is written in.
    pub language: Language,
    /// The group of its kinds.
    pub group: String,
    /// Its kinds.
    pub kinds: Vec<KindNames>,
    /// Where it finds the library.
    pub library: Library,
}

/// A file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The path in the project.
    pub path: String,
    /// The text.
    pub text: String,
}

/// Why a project cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is no template.
    #[error(
        "a server is written with the library, which is for Rust; leave out --lang, or make an operator or a webhook in {0}"
    )]
    NoTemplate(&'static str),
}

/// Returns the files of a new project.
pub fn create(project: &Project) -> Result<Vec<File>, CreateError> {
    let files = match (project.language, project.flavor) {
        (Language::Rust, _) => rust::create(project),
        (language, Flavor::Server) => return Err(CreateError::NoTemplate(language.name())),
        (Language::Go, _) => go::create(project),
        (Language::Python, _) => python::create(project),
    };
    Ok(files)
}

/// The file in which a project in Rust or Python keeps what `bareboat add` needs.
pub const DESCRIPTION: &str = "bareboat.yaml";

/// Returns the text of that file.
pub(crate) fn description(project: &Project) -> String {
    let mut text = format!(
        "# What `bareboat add` needs to know about this project.\nproject: {}\nflavor: {}\nlanguage: {}\ngroup: {}\nkinds:\n",
        project.name,
        project.flavor.name(),
        project.language.name(),
        project.group
    );
    for kind in &project.kinds {
        let versions = kind.versions.join(", ");
        text.push_str(&format!(
            "- {{kind: {}, plural: {}, versions: [{versions}]}}\n",
            kind.kind, kind.plural
        ));
    }
    text
}

/// Reads that file.
pub fn read_description(text: &str, library: Library) -> Option<Project> {
    let value = bareboat_wire::yaml::parse(text.as_bytes()).ok()?.value;
    let get = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let kinds = value
        .get("kinds")
        .and_then(Value::as_array)?
        .iter()
        .map(|entry| {
            let versions = entry.get("versions").and_then(Value::as_array)?;
            Some(KindNames {
                kind: get(entry, "kind")?,
                plural: get(entry, "plural")?,
                versions: versions
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            })
        });
    let (flavor, language) = (get(&value, "flavor")?, get(&value, "language")?);
    Some(Project {
        name: get(&value, "project")?,
        flavor: Flavor::ALL
            .into_iter()
            .find(|known| known.name() == flavor)?,
        language: Language::ALL
            .into_iter()
            .find(|known| known.name() == language)?,
        group: get(&value, "group")?,
        kinds: kinds.collect::<Option<Vec<_>>>()?,
        library,
    })
}

/// Reads the file PROJECT of kubebuilder. Files of several groups or layouts are not understood.
pub fn read_kubebuilder(text: &str, library: Library) -> Option<Project> {
    let value = bareboat_wire::yaml::parse(text.as_bytes()).ok()?.value;
    let get = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut kinds: Vec<KindNames> = Vec::new();
    let mut groups = Vec::new();
    let mut controllers = false;
    for entry in value.get("resources").and_then(Value::as_array)? {
        let (kind, version) = (get(entry, "kind")?, get(entry, "version")?);
        controllers |= entry.get("controller") == Some(&Value::Bool(true));
        let (group, domain) = (
            get(entry, "group").unwrap_or_default(),
            get(entry, "domain")?,
        );
        groups.push(match group.is_empty() {
            true => domain,
            false => format!("{group}.{domain}"),
        });
        match kinds.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.versions.push(version),
            None => {
                let plural = get(entry, "plural");
                kinds.push(crate::names::kind(&kind, plural.as_deref(), &version).ok()?);
            }
        }
    }
    let group = groups.first()?.clone();
    if groups.iter().any(|other| *other != group) {
        return None;
    }
    Some(Project {
        name: get(&value, "projectName")?,
        flavor: match controllers {
            true => Flavor::Operator,
            false => Flavor::Webhook,
        },
        language: Language::Go,
        group,
        kinds,
        library,
    })
}
