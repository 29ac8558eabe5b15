//! Projects in Rust: an operator with kube-rs, an API server with the library, webhooks.

use crate::add::{AddError, Tree};
use crate::definition;
use crate::edit::{after_last, before, into_list};
use crate::names::KindNames;
use crate::project::{DESCRIPTION, File, Flavor, Project, description};
use crate::template::{Names, Template};

macro_rules! template {
    ($path:literal, $file:literal) => {
        ($path, include_str!(concat!("../templates/rust/", $file)))
    };
}

/// What every project has.
const COMMON: &[Template] = &[
    template!(".gitignore", "common/gitignore.in"),
    template!(".github/workflows/test.yml", "common/test.yml.in"),
    template!("Dockerfile", "common/Dockerfile.in"),
    template!("manifests/deployment.yaml", "common/deployment.yaml.in"),
];

const OPERATOR: &[Template] = &[
    template!("AGENTS.md", "operator/AGENTS.md.in"),
    template!("Cargo.toml", "operator/Cargo.toml.in"),
    template!("Makefile", "operator/Makefile.in"),
    template!("README.md", "operator/README.md.in"),
    template!("manifests/definition.yaml", "operator/definition.json.in"),
    template!("manifests/rbac.yaml", "operator/rbac.yaml.in"),
    template!("manifests/sample.yaml", "operator/sample.yaml.in"),
    template!("src/lib.rs", "operator/lib.rs.in"),
    template!("src/main.rs", "operator/main.rs.in"),
    template!("src/@{kind}.rs", "operator/kind.rs.in"),
    template!("src/@{kind}/reconcile.rs", "operator/reconcile.rs.in"),
    template!("tests/it.rs", "operator/it.rs.in"),
];

const SERVER: &[Template] = &[
    template!("AGENTS.md", "server/AGENTS.md.in"),
    template!("Cargo.toml", "server/Cargo.toml.in"),
    template!("Makefile", "server/Makefile.in"),
    template!("README.md", "server/README.md.in"),
    template!("manifests/apiservice.yaml", "server/apiservice.yaml.in"),
    template!("manifests/rbac.yaml", "server/rbac.yaml.in"),
    template!("manifests/sample.yaml", "server/sample.yaml.in"),
    template!("src/lib.rs", "server/lib.rs.in"),
    template!("src/main.rs", "server/main.rs.in"),
    template!("src/@{kind}.rs", "server/kind.rs.in"),
    template!("tests/it.rs", "server/it.rs.in"),
];

const WEBHOOK: &[Template] = &[
    template!("AGENTS.md", "webhook/AGENTS.md.in"),
    template!("Cargo.toml", "webhook/Cargo.toml.in"),
    template!("Makefile", "webhook/Makefile.in"),
    template!("README.md", "webhook/README.md.in"),
    template!("manifests/webhook.yaml", "webhook/webhook.yaml.in"),
    template!("src/lib.rs", "webhook/lib.rs.in"),
    template!("src/main.rs", "webhook/main.rs.in"),
    template!("src/serve.rs", "webhook/serve.rs.in"),
    template!("src/@{kind}.rs", "webhook/kind.rs.in"),
    template!("tests/it.rs", "webhook/it.rs.in"),
];

/// Templates of single files that additions use.
const DEFINITION: &str = include_str!("../templates/rust/operator/definition.json.in");
const WEBHOOK_MANIFEST: &str = include_str!("../templates/rust/webhook/webhook.yaml.in");
const ROUTES: &str =
    "        .route(\"/mutate-@{kind}\", post(|body| answer(body, @{rules}::mutate)))
        .route(\"/validate-@{kind}\", post(|body| decide(body, @{rules}::validate)))
";

/// Returns the files of a new project.
pub(crate) fn create(project: &Project) -> Vec<File> {
    let templates = match project.flavor {
        Flavor::Operator => OPERATOR,
        Flavor::Server => SERVER,
        Flavor::Webhook => WEBHOOK,
    };
    let mut files = Vec::new();
    if let Some(kind) = project.kinds.first() {
        let names = names(project, kind);
        for (path, text) in COMMON.iter().chain(templates) {
            let (path, text) = (names.fill(path), names.fill(text));
            files.push(File { path, text });
        }
    }
    files.push(File {
        path: DESCRIPTION.to_owned(),
        text: description(project),
    });
    files
}

/// The names of templates; the rules and the program of webhooks are in other places in an operator.
fn names(project: &Project, kind: &KindNames) -> Names {
    let singular = kind.singular();
    let (rules, program) = match project.flavor {
        Flavor::Operator => (format!("crate::{singular}::webhook"), "webhook"),
        _ => (format!("crate::{singular}"), project.name.as_str()),
    };
    let names = Names::new(project, kind).with("rules", &rules);
    names.with("program", program)
}

/// Fills in one template.
fn filled(project: &Project, kind: &KindNames, template: &str) -> String {
    names(project, kind).fill(template)
}

/// Adds a kind with its files and a test.
pub(crate) fn add_kind(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let singular = kind.singular();
    let lib = "src/lib.rs";
    tree.edit(lib, |text| {
        after_last(lib, text, "pub mod ", &format!("pub mod {singular};\n"))
    })?;
    let fill = |template: &str| filled(project, kind, template);
    match project.flavor {
        Flavor::Operator => {
            tree.add(
                &format!("src/{singular}.rs"),
                fill(include_str!("../templates/rust/operator/kind.rs.in")),
            )?;
            let path = format!("src/{singular}/reconcile.rs");
            tree.add(
                &path,
                fill(include_str!("../templates/rust/operator/reconcile.rs.in")),
            )?;
            tree.edit(lib, |text| {
                into_list(lib, text, "vec![", &format!("{singular}::definition()"))
            })?;
            let line =
                format!("    controllers.spawn({singular}::reconcile::run(client.clone()));\n");
            tree.edit(lib, |text| {
                before(lib, text, "controllers.join_all()", &line)
            })?;
            let definition = fill(DEFINITION);
            tree.edit("manifests/definition.yaml", |text| {
                Ok([text, &definition].concat())
            })?;
            sample(
                project,
                kind,
                include_str!("../templates/rust/operator/sample.yaml.in"),
                tree,
            )?;
            let test = fill(include_str!("../templates/rust/operator/it.rs.in"));
            // The manifest has a test already.
            let import = "use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;\n";
            let test = test.replace(import, "");
            let test = test
                .split("\n#[test]\nfn the_manifest")
                .next()
                .unwrap_or_default()
                .to_owned();
            tree.add(&format!("tests/{singular}.rs"), test)
        }
        Flavor::Server => {
            tree.add(
                &format!("src/{singular}.rs"),
                fill(include_str!("../templates/rust/server/kind.rs.in")),
            )?;
            let line = format!("    builder = {singular}::serve(builder)?;\n");
            tree.edit(lib, |text| before(lib, text, "Ok(builder)", &line))?;
            sample(
                project,
                kind,
                include_str!("../templates/rust/server/sample.yaml.in"),
                tree,
            )?;
            let test = fill(include_str!("../templates/rust/server/it.rs.in"));
            // The program has a test already.
            let imports =
                "use std::io::{BufRead as _, BufReader};\nuse std::process::{Command, Stdio};\n";
            let test = test.replace(imports, "");
            let test = test.split("\n/// Container runtimes").next();
            let test = test.unwrap_or_default().to_owned();
            tree.add(&format!("tests/{singular}.rs"), test)
        }
        Flavor::Webhook => {
            tree.add(
                &format!("src/{singular}.rs"),
                fill(include_str!("../templates/rust/webhook/kind.rs.in")),
            )?;
            route(project, kind, tree)
        }
    }
}

fn sample(
    project: &Project,
    kind: &KindNames,
    template: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let path = format!("manifests/sample-{}.yaml", kind.singular());
    tree.add(&path, filled(project, kind, template))
}

/// Adds routes and configurations for the webhooks of one more kind.
fn route(project: &Project, kind: &KindNames, tree: &mut Tree<'_>) -> Result<(), AddError> {
    let serve = "src/serve.rs";
    let routes = filled(project, kind, ROUTES);
    tree.edit(serve, |text| before(serve, text, ".route(", &routes))?;
    let own = format!("{}-{}", project.name, kind.singular());
    let named = format!("\"metadata\": {{\"name\": \"{own}\"");
    let manifest = WEBHOOK_MANIFEST.replace("\"metadata\": {\"name\": \"@{project}\"", &named);
    let manifest = filled(project, kind, &manifest);
    // The remark at the top is there already.
    let documents = manifest
        .split_once("---\n")
        .map(|(_, rest)| format!("---\n{rest}"));
    tree.edit("manifests/webhook.yaml", |text| {
        Ok([text, &documents.unwrap_or_default()].concat())
    })
}

/// Adds a version to a kind.
pub(crate) fn add_version(
    project: &Project,
    kind: &KindNames,
    version: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let singular = kind.singular();
    let file = format!("src/{singular}.rs");
    let names = Names::new(project, kind).with("new", version);
    match project.flavor {
        Flavor::Operator => {
            let text = names.fill(include_str!("../templates/rust/add/operator-version.rs.in"));
            tree.add(&format!("src/{singular}/{version}.rs"), text)?;
            tree.edit(&file, |text| {
                after_last(&file, text, "pub mod ", &format!("pub mod {version};\n"))
            })?;
            let item = format!("{version}::{}::crd()", kind.kind);
            tree.edit(&file, |text| into_list(&file, text, "vec![", &item))?;
            let (path, name) = (
                "manifests/definition.yaml",
                format!("{}.{}", kind.plural, project.group),
            );
            tree.edit(path, |text| {
                definition::change(path, text, &name, |value| {
                    definition::add_version(value, version)
                })
            })
        }
        _ => {
            let text = names.fill(include_str!("../templates/rust/add/server-version.rs.in"));
            tree.add(&format!("src/{singular}/{version}.rs"), text)?;
            module(&file, version, tree)?;
            let lines = names.fill(
                "        .version::<@{new}::@{Kind}>(\"@{new}\")\n        .column(\"Title\", \".spec.title\")\n        \
                 .column(\"Priority\", \".spec.priority\")\n        .column(\"Phase\", \".status.phase\")\n        .convert::<@{Kind}, @{new}::@{Kind}>(\"@{version}\", \"@{new}\")\n",
            );
            tree.edit(&file, |text| before(&file, text, ".build()", &lines))
        }
    }
}

/// Declares a module of a kind.
fn module(file: &str, name: &str, tree: &mut Tree<'_>) -> Result<(), AddError> {
    let line = format!("pub mod {name};\n");
    let text = tree.get(file).unwrap_or_default();
    match text.contains("\npub mod ") {
        true => tree.edit(file, |text| after_last(file, text, "pub mod ", &line)),
        false => tree.edit(file, |text| {
            before(file, text, "use ", &format!("{line}\n"))
        }),
    }
}

/// Adds a subresource that a function answers.
pub(crate) fn add_subresource(
    project: &Project,
    kind: &KindNames,
    name: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let (file, snake) = (
        format!("src/{}.rs", kind.singular()),
        name.replace('-', "_"),
    );
    let names = Names::new(project, kind)
        .with("part", name)
        .with("part_module", &snake);
    let path = format!("src/{}/{snake}.rs", kind.singular());
    tree.add(
        &path,
        names.fill(include_str!("../templates/rust/add/subresource.rs.in")),
    )?;
    let test = format!("tests/{}_{snake}.rs", kind.singular());
    tree.add(
        &test,
        names.fill(include_str!("../templates/rust/add/subresource-test.rs.in")),
    )?;
    module(&file, &snake, tree)?;
    let line = format!("    builder = {snake}::serve(builder);\n");
    tree.edit(&file, |text| before(&file, text, "Ok(builder)", &line))
}

/// Adds the subresource `scale` to a kind of an operator.
pub(crate) fn add_scale(
    project: &Project,
    kind: &KindNames,
    spec: &str,
    status: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let line = format!(
        "    scale(spec_replicas_path = \"{spec}\", status_replicas_path = \"{status}\"),\n"
    );
    let singular = kind.singular();
    let mut files = vec![format!("src/{singular}.rs")];
    files.extend(
        kind.versions
            .iter()
            .skip(1)
            .map(|version| format!("src/{singular}/{version}.rs")),
    );
    for file in files {
        tree.edit(&file, |text| after_last(&file, text, "status = \"", &line))?;
    }
    let (path, name) = (
        "manifests/definition.yaml",
        format!("{}.{}", kind.plural, project.group),
    );
    tree.edit(path, |text| {
        definition::change(path, text, &name, |value| {
            definition::add_scale(value, spec, status)
        })
    })
}

/// Adds rules for a kind: webhooks to an operator, admission inside a server.
pub(crate) fn add_webhook(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let singular = kind.singular();
    let file = format!("src/{singular}.rs");
    let fill = |template: &str| filled(project, kind, template);
    match project.flavor {
        Flavor::Server => {
            tree.add(
                &format!("src/{singular}/admission.rs"),
                fill(include_str!("../templates/rust/add/admission.rs.in")),
            )?;
            tree.add(
                &format!("tests/{singular}_admission.rs"),
                fill(include_str!("../templates/rust/add/admission-test.rs.in")),
            )?;
            module(&file, "admission", tree)?;
            let line = "    builder = admission::serve(builder);\n";
            tree.edit(&file, |text| before(&file, text, "Ok(builder)", line))
        }
        Flavor::Webhook => Err(AddError::Exists(format!("a webhook for {}", kind.kind))),
        Flavor::Operator => {
            let rules = format!("src/{singular}/webhook.rs");
            tree.add(
                &rules,
                fill(include_str!("../templates/rust/webhook/kind.rs.in")),
            )?;
            module(&file, "webhook", tree)?;
            if tree.get("src/serve.rs").is_some() {
                return route(project, kind, tree);
            }
            tree.add(
                "src/serve.rs",
                fill(include_str!("../templates/rust/webhook/serve.rs.in")),
            )?;
            tree.add(
                "src/bin/webhook.rs",
                fill(include_str!("../templates/rust/webhook/main.rs.in")),
            )?;
            tree.add(
                "tests/webhook.rs",
                fill(include_str!("../templates/rust/webhook/it.rs.in")),
            )?;
            tree.add("manifests/webhook.yaml", fill(WEBHOOK_MANIFEST))?;
            let lib = "src/lib.rs";
            tree.edit(lib, |text| {
                after_last(lib, text, "pub mod ", "pub mod serve;\n")
            })?;
            dependencies(tree)
        }
    }
}

/// Adds what the HTTPS server of webhooks needs.
fn dependencies(tree: &mut Tree<'_>) -> Result<(), AddError> {
    let path = "Cargo.toml";
    let normal = "axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"tokio\"] }\nbase64 = \"0.22\"\n\
                  rustls-pki-types = \"1\"\n\
                  tokio-rustls = { version = \"0.26\", default-features = false, features = [\"ring\", \"tls12\"] }\n";
    let dev = "rcgen = { version = \"0.14\", default-features = false, features = [\"ring\", \"pem\"] }\n";
    tree.edit(path, |text| {
        after_last(path, text, "[dependencies]", normal)
    })?;
    tree.edit(path, |text| {
        after_last(path, text, "[dev-dependencies]", dev)
    })?;
    tree.edit(path, |text| {
        Ok(text.replace(
            "\"signal\", \"time\"]",
            "\"net\", \"signal\", \"sync\", \"time\"]",
        ))
    })
}
