//! The projects in `tests/scaffolds` are what `bareboat new` and `bareboat add` make now. They are members of the
//! workspace, so that everything that is written is compiled and tested. `UPDATE_EXPECT=1` writes them.
#![allow(clippy::unwrap_used)]

use bareboat_scaffold::add::{AddError, Addition, add};
use bareboat_scaffold::project::{DESCRIPTION, Library, read_description, read_kubebuilder};
use bareboat_scaffold::{Flavor, Language, Project, create, names};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Tree = BTreeMap<String, String>;

fn library() -> Library {
    Library::Path(PathBuf::from("../../.."))
}

fn project(name: &str, flavor: Flavor, language: Language, kind: &str) -> Project {
    Project {
        name: name.to_owned(),
        flavor,
        language,
        group: "fleet.example.org".to_owned(),
        kinds: vec![names::kind(kind, None, "v1").unwrap()],
        library: library(),
    }
}

fn made(project: &Project) -> Tree {
    let files = create(project).unwrap().into_iter();
    let formatted = files.map(|file| {
        let text = formatted(&file.path, file.text);
        (file.path, text)
    });
    formatted.collect()
}

/// Formats programs in Rust, as the command does.
fn formatted(path: &str, text: String) -> String {
    if !path.ends_with(".rs") {
        return text;
    }
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    rustfmt
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = rustfmt.wait_with_output().unwrap();
    assert!(output.status.success(), "{path} is not Rust");
    String::from_utf8(output.stdout).unwrap()
}

/// Adds something, with the description that is in the tree, as a user does.
fn extended(mut tree: Tree, addition: &Addition) -> Tree {
    let project = described(&tree);
    let changes = add(&project, addition, &|path| tree.get(path).cloned()).unwrap();
    for change in changes {
        assert_eq!(tree.get(&change.path), change.before.as_ref());
        let text = formatted(&change.path, change.after);
        tree.insert(change.path, text);
    }
    tree
}

fn described(tree: &Tree) -> Project {
    match tree.get(DESCRIPTION) {
        Some(text) => read_description(text, library()).unwrap(),
        None => read_kubebuilder(&tree["PROJECT"], library()).unwrap(),
    }
}

fn version(kind: &str) -> Addition {
    Addition::Version {
        kind: kind.to_owned(),
        version: "v2".to_owned(),
    }
}

fn subresource(kind: &str, name: &str) -> Addition {
    let fields = (".spec.times".to_owned(), ".status.times".to_owned());
    Addition::Subresource {
        kind: kind.to_owned(),
        name: name.to_owned(),
        scale: (name == "scale").then_some(fields),
    }
}

fn webhook(kind: &str) -> Addition {
    let kind = kind.to_owned();
    Addition::Webhook { kind }
}

fn another(kind: &str) -> Addition {
    Addition::Kind(names::kind(kind, None, "v1").unwrap())
}

/// Compares a tree with a folder of `tests/scaffolds`, or writes it there. What a build leaves there does not count.
fn expect(tree: &Tree, folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/scaffolds")
        .join(folder);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let _ = std::fs::remove_dir_all(&root);
        for (path, text) in tree {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    for (path, text) in tree {
        let found = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(
            found == *text,
            "tests/scaffolds/{folder}/{path} is not what is made now; UPDATE_EXPECT=1 writes it"
        );
    }
}

#[test]
fn an_operator_in_rust() {
    let project = project("yachts", Flavor::Operator, Language::Rust, "Yacht");
    let mut tree = made(&project);
    for addition in [
        another("Crew"),
        version("Yacht"),
        subresource("yachts", "scale"),
        webhook("Yacht"),
        webhook("crew"),
    ] {
        tree = extended(tree, &addition);
    }
    expect(&tree, "operator");
}

#[test]
fn a_server_in_rust() {
    let project = project("journal", Flavor::Server, Language::Rust, "Note");
    let mut tree = made(&project);
    for addition in [
        another("Chart"),
        version("Note"),
        subresource("Note", "preview"),
        webhook("Note"),
    ] {
        tree = extended(tree, &addition);
    }
    expect(&tree, "server");
}

#[test]
fn webhooks_in_rust() {
    let project = project("guard", Flavor::Webhook, Language::Rust, "Yacht");
    expect(&extended(made(&project), &another("Crew")), "webhook");
}

#[test]
fn an_operator_in_go() {
    let project = project("yachts", Flavor::Operator, Language::Go, "Yacht");
    let mut tree = made(&project);
    for addition in [
        another("Crew"),
        version("Yacht"),
        subresource("Yacht", "scale"),
        webhook("Yacht"),
    ] {
        tree = extended(tree, &addition);
    }
    expect(&tree, "go-operator");
}

#[test]
fn webhooks_in_go() {
    let project = project("guard", Flavor::Webhook, Language::Go, "Yacht");
    expect(&extended(made(&project), &another("Crew")), "go-webhook");
}

#[test]
fn webhooks_in_python() {
    let project = project("guard", Flavor::Webhook, Language::Python, "Yacht");
    let tree = extended(made(&project), &another("Crew"));
    expect(&tree, "python-webhook");
}

#[test]
fn the_workflow_installs_the_program_from_where_the_project_was_made_with() {
    for language in [Language::Go, Language::Python] {
        let mut project = project("yachts", Flavor::Operator, language, "Yacht");
        let workflow = |project: &Project| made(project)[".github/workflows/test.yml"].clone();
        // A checkout on another machine is no place to install from.
        assert!(workflow(&project).contains("${{ vars.BAREBOAT_GIT || '' }}"));
        project.library = Library::Git("https://example.com/bareboat.git".to_owned());
        let text = workflow(&project);
        assert!(text.contains("|| 'https://example.com/bareboat.git' }}"));
        assert!(text.contains("cargo install --locked --git"), "{text}");
    }
}

#[test]
fn an_operator_in_python() {
    let project = project("yachts", Flavor::Operator, Language::Python, "Yacht");
    let mut tree = made(&project);
    for addition in [
        another("Crew"),
        version("Yacht"),
        subresource("Yacht", "scale"),
        webhook("Yacht"),
    ] {
        tree = extended(tree, &addition);
    }
    expect(&tree, "python-operator");
}

#[test]
fn no_template_has_names_left() {
    for language in Language::ALL {
        for flavor in Flavor::ALL {
            let mut project = project("my-boats", flavor, language, "LogBook");
            project.group = "example.com".to_owned();
            let Ok(files) = create(&project) else {
                assert_eq!(
                    (flavor, language == Language::Rust),
                    (Flavor::Server, false)
                );
                continue;
            };
            for file in files {
                assert!(!file.text.contains("@{"), "{}: {}", file.path, file.text);
                assert!(!file.path.contains("@{"), "{}", file.path);
            }
        }
    }
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let project = project("yachts", Flavor::Operator, Language::Rust, "Yacht");
    let mut tree = made(&project);
    let try_to = |tree: &Tree, addition: &Addition| {
        add(&project, addition, &|path| tree.get(path).cloned()).unwrap_err()
    };
    assert!(matches!(
        try_to(&tree, &another("Yacht")),
        AddError::Exists(_)
    ));
    assert!(matches!(
        try_to(&tree, &version("Boat")),
        AddError::UnknownKind(..)
    ));
    let text = try_to(&tree, &subresource("Yacht", "preview")).to_string();
    assert!(text.contains("bareboat new server"), "{text}");
    // The user wrote another program.
    tree.insert("src/lib.rs".to_owned(), "//! Mine.\n".to_owned());
    let text = try_to(&tree, &another("Crew")).to_string();
    assert!(
        text.contains("by hand") && text.contains("pub mod crew;"),
        "{text}"
    );
}
