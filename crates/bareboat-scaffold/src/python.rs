//! Projects in Python: operators with kopf, webhooks with the standard library. Tests run against Bareboat.

use crate::add::{AddError, Tree};
use crate::definition;
use crate::names::KindNames;
use crate::project::{DESCRIPTION, File, Flavor, Project, description};
use crate::template::{Names, Template};
use bareboat_api::Value;

macro_rules! text {
    ($file:literal) => {
        include_str!(concat!("../templates/python/", $file))
    };
}

/// What every project has.
const BASE: &[Template] = &[
    (".gitignore", text!("gitignore.in")),
    ("AGENTS.md", text!("AGENTS.md.in")),
    (".github/workflows/test.yml", text!("test.yml.in")),
    ("Dockerfile", text!("Dockerfile.in")),
    ("Makefile", text!("Makefile.in")),
    ("README.md", text!("README.md.in")),
    ("manifests/deployment.yaml", text!("deployment.yaml.in")),
    ("pyproject.toml", text!("pyproject.toml.in")),
    ("requirements.txt", text!("requirements.txt.in")),
];

const OPERATOR: &[Template] = &[
    ("manifests/definition.yaml", DEFINITION),
    ("manifests/sample.yaml", SAMPLE),
    ("tests/conftest.py", text!("conftest.py.in")),
];

/// What every kind of an operator has.
const HANDLERS: &[Template] = &[
    ("src/@{kind}_operator.py", text!("operator.py.in")),
    ("tests/test_@{kind}.py", text!("test_operator.py.in")),
];

/// What every kind with webhooks has.
const RULES: &[Template] = &[
    ("src/@{kind}_webhook.py", text!("webhook.py.in")),
    ("tests/test_@{kind}_webhook.py", text!("test_webhook.py.in")),
];

const DEFINITION: &str = text!("definition.yaml.in");
const SAMPLE: &str = include_str!("../templates/rust/operator/sample.yaml.in");
const SERVE: &str = text!("serve.py.in");
const WEBHOOK_MANIFEST: &str = include_str!("../templates/rust/webhook/webhook.yaml.in");

/// Returns the files of a new project.
pub(crate) fn create(project: &Project) -> Vec<File> {
    let Some(kind) = project.kinds.first() else {
        return Vec::new();
    };
    let names = Names::new(project, kind);
    let (names, templates) = match project.flavor {
        Flavor::Operator => {
            let names = names
                .with("what", "An operator")
                .with("with", ", with kopf")
                .with(
                    "run",
                    "$(PYTHON) -m kopf run --all-namespaces src/*_operator.py",
                )
                .with(
                    "install",
                    "$(addprefix -f ,$(wildcard manifests/definition*.yaml))",
                )
                .with(
                    "entry",
                    "\"sh\", \"-c\", \"exec kopf run --all-namespaces src/*_operator.py\"",
                );
            (names, [BASE, OPERATOR, HANDLERS].concat())
        }
        _ => {
            let names = names
                .with("what", "Admission webhooks")
                .with("with", ", with the standard library")
                .with(
                    "run",
                    "$(PYTHON) src/serve.py --cert certs/tls.crt --key certs/tls.key",
                )
                .with("install", "-f manifests/webhook.yaml")
                .with(
                    "entry",
                    "\"python\", \"src/serve.py\", \"--bind\", \"0.0.0.0\"",
                );
            let own: &[Template] = &[
                ("manifests/webhook.yaml", WEBHOOK_MANIFEST),
                ("src/serve.py", SERVE),
            ];
            (names, [BASE, own, RULES].concat())
        }
    };
    let files = templates.into_iter().map(|(path, text)| File {
        path: names.fill(path),
        text: names.fill(text),
    });
    let mut files: Vec<File> = files.collect();
    files.push(File {
        path: DESCRIPTION.to_owned(),
        text: description(project),
    });
    files
}

fn add_all(names: &Names, templates: &[Template], tree: &mut Tree<'_>) -> Result<(), AddError> {
    for (path, text) in templates {
        tree.add(&names.fill(path), names.fill(text))?;
    }
    Ok(())
}

/// Adds a kind.
pub(crate) fn add_kind(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let names = Names::new(project, kind);
    match project.flavor {
        Flavor::Operator => {
            add_all(&names, HANDLERS, tree)?;
            let manifests: &[Template] = &[
                ("manifests/definition-@{kind}.yaml", DEFINITION),
                ("manifests/sample-@{kind}.yaml", SAMPLE),
            ];
            add_all(&names, manifests, tree)
        }
        _ => rules(&names, tree),
    }
}

/// Adds the rules of a kind, and the server of webhooks if there is none.
fn rules(names: &Names, tree: &mut Tree<'_>) -> Result<(), AddError> {
    add_all(names, RULES, tree)?;
    let path = "manifests/webhook.yaml";
    if tree.get("src/serve.py").is_none() {
        tree.add("src/serve.py", SERVE.to_owned())?;
        return tree.add(path, names.fill(WEBHOOK_MANIFEST));
    }
    let own = names.fill("@{project}-@{kind}");
    let text = WEBHOOK_MANIFEST.replace(
        "\"metadata\": {\"name\": \"@{project}\"",
        &format!("\"metadata\": {{\"name\": \"{own}\""),
    );
    let text = names.fill(text.split_once("---\n").map_or("", |(_, rest)| rest));
    tree.edit(path, |before| Ok(format!("{before}---\n{text}")))
}

/// Changes the definition of a kind, in the manifest that has it.
fn change(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
    edit: impl Fn(&mut Value) -> Option<()>,
) -> Result<(), AddError> {
    let own = format!("manifests/definition-{}.yaml", kind.singular());
    let path = match tree.get(&own) {
        Some(_) => own,
        None => "manifests/definition.yaml".to_owned(),
    };
    let name = format!("{}.{}", kind.plural, project.group);
    tree.edit(&path, |text| definition::change(&path, text, &name, edit))
}

/// Adds a version to the definition.
pub(crate) fn add_version(
    project: &Project,
    kind: &KindNames,
    version: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    change(project, kind, tree, |value| {
        definition::add_version(value, version)
    })
}

/// Adds the subresource `scale` to the definition.
pub(crate) fn add_scale(
    project: &Project,
    kind: &KindNames,
    spec: &str,
    status: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    change(project, kind, tree, |value| {
        definition::add_scale(value, spec, status)
    })
}

/// Adds webhooks to an operator.
pub(crate) fn add_webhook(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    rules(&Names::new(project, kind), tree)
}
