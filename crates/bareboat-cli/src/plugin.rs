//! `bareboat plugin create`: finds the schema of a kind, on a server or in a file, and writes the plug-in.

use crate::client::{Client, block_on, find_kubeconfig};
use crate::discovery;
use crate::output::shown;
use anyhow::{Context as _, Result, anyhow, bail};
use bareboat::api::Value;
use bareboat_scaffold::plugin::{Target, flags, script};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

pub(crate) const ABOUT: &str = "\
Writes an executable kubectl-create-NAME for each kind. If it is in a folder of PATH, kubectl runs it as `kubectl create NAME`: \
each field of the spec is a flag, and kubectl's own flags work too. The plug-in needs kubectl 1.29 or newer and a POSIX shell; \
it does not need bareboat. Write it again when the schema changes.

Fields of nested objects are joined by a dash (--config-msg), lists are given by repeating a flag, maps as KEY=VALUE, anything else \
as JSON. A field with the name of a flag of kubectl has its whole path: --spec-user.";

pub(crate) const AFTER: &str = "\
Examples:
  bareboat plugin create posts --dir ~/bin              from the schema that the server publishes
  bareboat plugin create posts.blog.example.com boats   several kinds, into this folder
  bareboat plugin create -f manifests/definition.yaml   all definitions in a file, without a server
  bareboat plugin create virtualmachines --name vm      kubectl create vm …

Then:
  kubectl create post hello --title Hello
  kubectl create post --help";

/// Flags of `bareboat plugin create`.
#[derive(clap::Args, Debug)]
pub(crate) struct PluginFlags {
    /// The kinds, by any of their names: posts, post, posts.blog.example.com
    #[arg(value_name = "KIND", required_unless_present = "file")]
    kinds: Vec<String>,

    /// Read the CustomResourceDefinitions in this file instead of asking a server
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The folder to write to; it should be one of PATH
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// What follows `kubectl create` [default: the singular name of the kind]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// How to reach the server [default: ./bareboat-data/admin.kubeconfig, else ~/.kube/config]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A kind with its schema, and the schemas that it refers to.
struct Described {
    target: Target,
    schema: Value,
    schemas: Value,
}

/// Writes the plug-ins.
pub(crate) fn create(given: &PluginFlags) -> Result<()> {
    let found = match &given.file {
        Some(file) => in_file(file, &given.kinds)?,
        None => {
            let path = find_kubeconfig(given.kubeconfig.as_deref())?;
            let client = Client::new(&path, given.context.as_deref(), None)?;
            block_on(on_server(&client, &given.kinds))??
        }
    };
    if given.name.is_some() && found.len() != 1 {
        bail!("--name is for one kind, not for {}", found.len());
    }
    for mut described in found {
        if let Some(name) = &given.name {
            described.target.name = name.clone();
        }
        write(&described, &given.dir)?;
    }
    Ok(())
}

fn write(described: &Described, dir: &Path) -> Result<()> {
    let target = &described.target;
    let flags = flags(&described.schema, &described.schemas);
    let text = script(target, &flags)?;
    fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    let path = dir.join(target.file_name());
    let new = path.with_extension("new");
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&new);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written
        .and_then(|()| fs::rename(&new, &path))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    println!(
        "{}: kubectl create {} NAME, {} flags",
        path.display(),
        target.name,
        flags.len()
    );
    if !in_path(dir) {
        eprintln!(
            "note: {} is not in PATH, where kubectl looks for it",
            dir.display()
        );
    }
    Ok(())
}

fn in_path(dir: &Path) -> bool {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|entry| entry.canonicalize().is_ok_and(|entry| entry == dir))
}

async fn on_server(client: &Client, kinds: &[String]) -> Result<Vec<Described>> {
    let mut found = Vec::new();
    for name in kinds {
        let served = discovery::find(client, name)
            .await
            .context("the server's resources cannot be read")?
            .ok_or_else(|| {
                anyhow!(
                    "the server has no resource {:?}; `kubectl api-resources` lists them",
                    shown(name)
                )
            })?;
        let place = match served.group.as_str() {
            "" => format!("/openapi/v3/api/{}", served.version),
            group => format!("/openapi/v3/apis/{group}/{}", served.version),
        };
        let document = client
            .get(&place, "application/json")
            .await
            .with_context(|| format!("the schemas in {place} cannot be read"))?;
        let schemas = document
            .at(&["components", "schemas"])
            .cloned()
            .unwrap_or_default();
        let schema = schemas.as_object().and_then(|schemas| {
            let mut all = schemas.values();
            all.find(|schema| describes(schema, &served)).cloned()
        });
        let schema =
            schema.ok_or_else(|| anyhow!("the server publishes no schema of {}", served.plural))?;
        found.push(Described {
            target: Target {
                name: match served.singular.is_empty() {
                    true => served.kind.to_lowercase(),
                    false => served.singular,
                },
                group: served.group,
                version: served.version,
                kind: served.kind,
                plural: served.plural,
                namespaced: served.namespaced,
            },
            schema,
            schemas,
        });
    }
    Ok(found)
}

/// Returns whether a published schema is that of a resource's kind.
fn describes(schema: &Value, served: &discovery::Served) -> bool {
    discovery::items(schema, "x-kubernetes-group-version-kind")
        .iter()
        .any(|named| {
            let is = |key: &str, wanted: &str| {
                named.get(key).and_then(Value::as_str).unwrap_or("") == wanted
            };
            is("group", &served.group) && is("version", &served.version) && is("kind", &served.kind)
        })
}

/// Returns the definitions in a file, or those of them that are named.
fn in_file(file: &Path, kinds: &[String]) -> Result<Vec<Described>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let mut found = Vec::new();
    let mut matched = vec![false; kinds.len()];
    for document in documents(&text) {
        let value = bareboat_wire::yaml::parse(document.as_bytes())
            .with_context(|| format!("{} is not YAML", file.display()))?
            .value;
        let Some(described) = defined(&value) else {
            continue;
        };
        let target = &described.target;
        let full = format!("{}.{}", target.plural, target.group);
        let names = [&target.plural, &target.name, &target.kind, &full];
        let mut wanted = kinds.is_empty();
        for (kind, matched) in kinds.iter().zip(&mut matched) {
            if names.contains(&kind) {
                (wanted, *matched) = (true, true);
            }
        }
        if wanted {
            found.push(described);
        }
    }
    if let Some((missing, _)) = kinds.iter().zip(&matched).find(|(_, matched)| !**matched) {
        bail!("{} defines no {missing:?}", file.display());
    }
    if found.is_empty() {
        bail!("{} has no CustomResourceDefinition", file.display());
    }
    Ok(found)
}

/// Splits a YAML stream into documents.
fn documents(text: &str) -> impl Iterator<Item = String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        match line == "---" || line.starts_with("--- ") {
            true => documents.push(String::new()),
            false => {
                if let Some(last) = documents.last_mut() {
                    last.push_str(line);
                    last.push('\n');
                }
            }
        }
    }
    documents.into_iter().filter(|text| !text.trim().is_empty())
}

/// Reads a definition: the version that is stored.
fn defined(value: &Value) -> Option<Described> {
    let text = |path: &[&str]| {
        value
            .at(path)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    if text(&["kind"]) != "CustomResourceDefinition" {
        return None;
    }
    let versions = discovery::items(value.get("spec")?, "versions");
    let stored = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    let version = versions.iter().find(stored)?;
    let kind = text(&["spec", "names", "kind"]);
    let singular = text(&["spec", "names", "singular"]);
    Some(Described {
        target: Target {
            group: text(&["spec", "group"]),
            version: version.get("name")?.as_str()?.to_owned(),
            name: match singular.is_empty() {
                true => kind.to_lowercase(),
                false => singular,
            },
            kind,
            plural: text(&["spec", "names", "plural"]),
            namespaced: text(&["spec", "scope"]) == "Namespaced",
        },
        schema: version.at(&["schema", "openAPIV3Schema"])?.clone(),
        schemas: Value::object(),
    })
}
