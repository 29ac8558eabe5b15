//! `bareboat new` and `bareboat add`: write the files of projects. What is in them is decided by `bareboat-scaffold`.

use anyhow::{Context as _, Result, anyhow, bail};
use bareboat_scaffold::add::{Addition, Change, add as additions};
use bareboat_scaffold::project::{DESCRIPTION, Library, read_description};
use bareboat_scaffold::{Flavor, Language, Project, create, diff, names};
use clap::Subcommand;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const NEW: &str = "\
Makes a folder with a program that builds, tests that pass, manifests, a Makefile, a container file and a CI workflow. No file is \
generated again later: change everything as you like. `bareboat add` extends a project.";

pub(crate) const NEW_AFTER: &str = "\
Examples:
  bareboat new operator boats --kind Boat --group example.com
  bareboat new operator boats --kind Boat --group example.com --lang go      the layout of kubebuilder
  bareboat new operator boats --kind Boat --group example.com --lang python  kopf
  bareboat new server blog --kind Post --group blog.example.com
  bareboat new webhook guard --kind Boat --group example.com

Then:
  cd boats && make test";

pub(crate) const ADD: &str = "\
Adds something to the project in this folder. It prints the diff of every file, then writes all of them. If a file was changed so that \
the place for an addition is not found, nothing is written and the command prints what to write by hand.";

pub(crate) const ADD_AFTER: &str = "\
Examples:
  bareboat add kind Crew
  bareboat add version v2 --kind Boat
  bareboat add subresource scale --kind Boat --spec-path .spec.times --status-path .status.times
  bareboat add subresource preview --kind Post      in a server: a function that answers
  bareboat add webhook --kind Boat
  bareboat add kind Crew --dry-run                  only the diff";

/// The checkout that this program was built from, if it is still there.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Flags of `bareboat new`.
#[derive(clap::Args, Debug)]
pub(crate) struct NewFlags {
    /// What to make: an operator (controllers of your kinds), a server (your own API server) or a webhook (admission rules)
    #[arg(value_name = "operator|server|webhook", value_parser = flavor)]
    flavor: Flavor,

    /// The name of the project
    name: String,

    /// The kind, such as Boat
    #[arg(long)]
    kind: String,

    /// The group of the kind, such as example.com
    #[arg(long)]
    group: String,

    /// The version of the kind
    #[arg(long, value_name = "VERSION", default_value = "v1")]
    api_version: String,

    /// The plural of the kind [default: as in English]
    #[arg(long)]
    plural: Option<String>,

    /// The language: rust, go or python; a server is always written in Rust
    #[arg(long, value_name = "LANGUAGE", default_value = "rust", value_parser = language)]
    lang: Language,

    /// Use the library in this checkout of Bareboat [default: the one this program was built from]
    #[arg(long, value_name = "DIR", conflicts_with = "git")]
    path: Option<PathBuf>,

    /// Use the library in this Git repository
    #[arg(long, value_name = "URL")]
    git: Option<String>,

    /// The folder to make [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Flags of `bareboat add`.
#[derive(clap::Args, Debug)]
pub(crate) struct AddFlags {
    #[command(subcommand)]
    what: Added,

    /// The folder of the project
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    dir: PathBuf,

    /// Print the diff, write nothing
    #[arg(long, global = true)]
    dry_run: bool,
}

/// What to add.
#[derive(Subcommand, Debug)]
enum Added {
    /// Another kind, with its files, its sample and its tests
    Kind {
        /// The kind, such as Crew
        kind: String,
        /// Its version
        #[arg(long, value_name = "VERSION", default_value = "v1")]
        api_version: String,
        /// Its plural [default: as in English]
        #[arg(long)]
        plural: Option<String>,
    },
    /// Another version of a kind, converted from and to the first one
    Version {
        /// The version, such as v2
        #[arg(value_name = "VERSION")]
        name: String,
        /// The kind [default: the only one]
        #[arg(long)]
        kind: Option<String>,
    },
    /// A subresource: scale, or any name in a server
    Subresource {
        /// The subresource
        name: String,
        /// The kind [default: the only one]
        #[arg(long)]
        kind: Option<String>,
        /// For scale: the field of the wanted number
        #[arg(long, value_name = "PATH", requires = "status_path")]
        spec_path: Option<String>,
        /// For scale: the field of the observed number
        #[arg(long, value_name = "PATH", requires = "spec_path")]
        status_path: Option<String>,
    },
    /// Rules for a kind: webhooks, or admission inside a server
    Webhook {
        /// The kind [default: the only one]
        #[arg(long)]
        kind: Option<String>,
    },
}

fn flavor(text: &str) -> Result<Flavor, String> {
    let found = Flavor::ALL.into_iter().find(|flavor| flavor.name() == text);
    found.ok_or_else(|| "it is operator, server or webhook".to_owned())
}

fn language(text: &str) -> Result<Language, String> {
    let found = Language::ALL
        .into_iter()
        .find(|language| language.name() == text);
    found.ok_or_else(|| "it is rust, go or python".to_owned())
}

/// Makes a project.
pub(crate) fn new(flags: &NewFlags) -> Result<()> {
    let project = Project {
        name: names::project(&flags.name)?.to_owned(),
        flavor: flags.flavor,
        language: flags.lang,
        group: names::group(&flags.group)?.to_owned(),
        kinds: vec![names::kind(
            &flags.kind,
            flags.plural.as_deref(),
            &flags.api_version,
        )?],
        library: library(flags)?,
    };
    let dir = flags
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(&flags.name));
    let used = fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        bail!(
            "{} is there already and is not empty; name another folder with --dir",
            dir.display()
        );
    }
    let files = create(&project)?;
    for file in &files {
        write(&dir.join(&file.path), &formatted(&file.path, &file.text))?;
    }
    // The versions that the library was tested with.
    if let (Language::Rust, Library::Path(path)) = (project.language, &project.library) {
        let _ = fs::copy(path.join("Cargo.lock"), dir.join("Cargo.lock"));
    }
    println!("{}: {} files", dir.display(), files.len());
    println!("next: cd {} && make test", dir.display());
    Ok(())
}

/// Where the new project finds the library.
fn library(flags: &NewFlags) -> Result<Library> {
    if let Some(url) = &flags.git {
        return Ok(Library::Git(url.clone()));
    }
    let path = flags
        .path
        .clone()
        .unwrap_or_else(|| PathBuf::from(CHECKOUT));
    match path.canonicalize() {
        Ok(path) if path.join("crates/bareboat/Cargo.toml").is_file() => Ok(Library::Path(path)),
        _ if flags.path.is_some() => bail!("{} is not a checkout of Bareboat", path.display()),
        _ if flags.lang != Language::Rust => Ok(Library::Path(path)),
        _ => bail!("name a checkout of Bareboat with --path, or its repository with --git"),
    }
}

/// Adds something to a project.
pub(crate) fn add(flags: &AddFlags) -> Result<()> {
    let read = |path: &str| fs::read_to_string(flags.dir.join(path)).ok();
    let project = find(&read).with_context(|| {
        let dir = flags.dir.display();
        format!("{dir} is not a project: it has no {DESCRIPTION} and no PROJECT; `bareboat new` makes one")
    })?;
    let addition = addition(&project, &flags.what)?;
    let mut changes = additions(&project, &addition, &read)?;
    for change in &mut changes {
        change.after = formatted(&change.path, &change.after);
    }
    let mut text = String::new();
    for Change {
        path,
        before,
        after,
    } in &changes
    {
        text.push_str(&diff::unified(path, before.as_deref(), after));
    }
    crate::print(text.as_bytes())?;
    if flags.dry_run {
        return Ok(());
    }
    for change in &changes {
        write(&flags.dir.join(&change.path), &change.after)?;
    }
    eprintln!("{} files written; next: make test", changes.len());
    Ok(())
}

/// Finds out what is in a folder.
fn find(read: &dyn Fn(&str) -> Option<String>) -> Result<Project> {
    let library = Library::Path(PathBuf::from(CHECKOUT));
    let project = match (read(DESCRIPTION), read("PROJECT")) {
        (Some(text), _) => read_description(&text, library),
        (None, Some(text)) => bareboat_scaffold::project::read_kubebuilder(&text, library),
        (None, None) => None,
    };
    project.ok_or_else(|| anyhow!("its description cannot be read"))
}

fn addition(project: &Project, what: &Added) -> Result<Addition> {
    let only = |kind: &Option<String>| match (kind, &project.kinds[..]) {
        (Some(kind), _) => Ok(kind.clone()),
        (None, [only]) => Ok(only.kind.clone()),
        (None, kinds) => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
            Err(anyhow!(
                "which kind? name one of {} with --kind",
                kinds.join(", ")
            ))
        }
    };
    Ok(match what {
        Added::Kind {
            kind,
            api_version,
            plural,
        } => Addition::Kind(names::kind(kind, plural.as_deref(), api_version)?),
        Added::Version { name, kind } => Addition::Version {
            kind: only(kind)?,
            version: names::version(name)?.to_owned(),
        },
        Added::Subresource {
            name,
            kind,
            spec_path,
            status_path,
        } => Addition::Subresource {
            kind: only(kind)?,
            name: names::subresource(name)?.to_owned(),
            scale: spec_path.clone().zip(status_path.clone()),
        },
        Added::Webhook { kind } => Addition::Webhook { kind: only(kind)? },
    })
}

/// Formats a program in Rust, if rustfmt is installed: how lines break depends on the length of names.
fn formatted(path: &str, text: &str) -> String {
    let format = || -> Option<String> {
        let mut rustfmt = Command::new("rustfmt")
            .args(["--edition", "2024"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // It reads all of its input before it writes.
        rustfmt.stdin.take()?.write_all(text.as_bytes()).ok()?;
        let output = rustfmt.wait_with_output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    match path.ends_with(".rs") {
        true => format().unwrap_or_else(|| text.to_owned()),
        false => text.to_owned(),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
