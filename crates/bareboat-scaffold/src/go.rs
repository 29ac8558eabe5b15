//! Projects in Go, in the layout of kubebuilder, on controller-runtime. Tests run against Bareboat.

use crate::add::{AddError, Tree};
use crate::definition;
use crate::edit::{after_last, before};
use crate::names::KindNames;
use crate::project::{File, Flavor, Project};
use crate::template::{Names, Template};

macro_rules! text {
    ($file:literal) => {
        include_str!(concat!("../templates/go/", $file))
    };
}

/// What every project has.
const BASE: &[Template] = &[
    (".gitignore", text!("gitignore.in")),
    ("AGENTS.md", text!("AGENTS.md.in")),
    (".github/workflows/test.yml", text!("test.yml.in")),
    ("Dockerfile", text!("Dockerfile.in")),
    ("Makefile", text!("Makefile.in")),
    ("PROJECT", text!("PROJECT.in")),
    ("README.md", text!("README.md.in")),
    ("cmd/main.go", text!("main.go.in")),
    (
        "config/crd/kustomization.yaml",
        "resources:\n- bases/@{group}_@{plural}.yaml\n# +kubebuilder:scaffold:crdkustomizeresource\n",
    ),
    (
        "config/default/kustomization.yaml",
        text!("default-kustomization.yaml.in"),
    ),
    (
        "config/manager/kustomization.yaml",
        "resources:\n- manager.yaml\n",
    ),
    ("config/manager/manager.yaml", text!("manager.yaml.in")),
    (
        "config/rbac/kustomization.yaml",
        "resources:\n- role.yaml\n- role_binding.yaml\n",
    ),
    (
        "config/samples/kustomization.yaml",
        "resources:\n- @{version}_@{kind}.yaml\n# +kubebuilder:scaffold:manifestskustomizesamples\n",
    ),
    ("config/rbac/role.yaml", text!("role.yaml.in")),
    (
        "config/rbac/role_binding.yaml",
        text!("role_binding.yaml.in"),
    ),
    ("go.mod", text!("go.mod.in")),
    ("go.sum", text!("go.sum.in")),
    ("hack/boilerplate.go.txt", text!("boilerplate.go.txt.in")),
];

/// What the first kind of a version has: the package of the version.
const PACKAGE: &[Template] = &[
    (
        "api/@{package}/groupversion_info.go",
        text!("groupversion_info.go.in"),
    ),
    (
        "api/@{package}/zz_generated.deepcopy.go",
        text!("deepcopy-head.go.in"),
    ),
];

/// What every kind has.
const KIND: &[Template] = &[
    (
        "config/crd/bases/@{group}_@{plural}.yaml",
        text!("crd.yaml.in"),
    ),
    (
        "config/samples/@{version}_@{kind}.yaml",
        text!("sample.yaml.in"),
    ),
];

/// What every kind of an operator has.
const CONTROLLER: &[Template] = &[
    (
        "internal/controller/@{kind}_controller.go",
        text!("controller.go.in"),
    ),
    (
        "internal/controller/@{kind}_controller_test.go",
        text!("controller_test.go.in"),
    ),
];

/// What the controllers share.
const CONTROLLERS: &[Template] = &[
    (
        "internal/controller/suite_test.go",
        text!("suite_test.go.in"),
    ),
    ("internal/controller/text.go", text!("text.go.in")),
];

const WEBHOOK: &[Template] = &[
    (
        "internal/webhook/@{version}/@{kind}_webhook.go",
        text!("webhook.go.in"),
    ),
    (
        "internal/webhook/@{version}/@{kind}_webhook_test.go",
        text!("webhook_test.go.in"),
    ),
];
const WEBHOOK_MANIFESTS: &str = text!("webhook-manifests.yaml.in");
const WEBHOOK_SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: webhook-service\n  namespace: system\nspec:\n  \
                               selector: {control-plane: controller-manager}\n  ports:\n  - {port: 443, targetPort: 9443}\n";

const IMPORT_CONTROLLER: &str = "\t\"@{group}/@{project}/internal/controller\"\n";
const IMPORT_WEBHOOK: &str =
    "\twebhook@{version} \"@{group}/@{project}/internal/webhook/@{version}\"\n";
const SETUP_CONTROLLER: &str = "\tif err := (&controller.@{Kind}Reconciler{\n\t\tClient: mgr.GetClient(),\n\t\tScheme: mgr.GetScheme(),\n\t}).SetupWithManager(mgr); err != nil {\n\t\tsetupLog.Error(err, \"unable to create controller\", \"controller\", \"@{Kind}\")\n\t\tos.Exit(1)\n\t}\n";
const SETUP_WEBHOOK: &str = "\tif os.Getenv(\"ENABLE_WEBHOOKS\") != \"false\" {\n\t\tif err := webhook@{version}.Setup@{Kind}WebhookWithManager(mgr); err != nil {\n\t\t\tsetupLog.Error(err, \"unable to create webhook\", \"webhook\", \"@{Kind}\")\n\t\t\tos.Exit(1)\n\t\t}\n\t}\n";
const SETUP_TEST: &str = "\tif err := (&@{Kind}Reconciler{Client: manager.GetClient(), Scheme: scheme.Scheme}).SetupWithManager(manager); err != nil {\n\t\treturn 1, err\n\t}\n";

const IMPORTS: &str = "// +kubebuilder:scaffold:imports";
const SCHEME: &str = "// +kubebuilder:scaffold:scheme";
const BUILDER: &str = "// +kubebuilder:scaffold:builder";
const SAMPLES: &str = "# +kubebuilder:scaffold:manifestskustomizesamples";
const MAIN: &str = "cmd/main.go";

/// Returns the names of templates of a kind.
fn names(project: &Project, kind: &KindNames) -> Names {
    let names = Names::new(project, kind);
    let version = names.fill("@{version}");
    // controller-runtime makes the path of a webhook from group, version and kind.
    let path = format!(
        "{}-{version}-{}",
        project.group.replace('.', "-"),
        kind.singular()
    );
    let storage = names.with("webhook-path", &path).with("package", &version);
    storage.with("storage", "")
}

/// Returns the entry of a kind in PROJECT.
fn resource(project: &Project, kind: &KindNames, version: &str, webhook: bool) -> String {
    let mut entry = String::from("- api:\n    crdVersion: v1\n    namespaced: true\n");
    if project.flavor == Flavor::Operator
        && kind.versions.first().is_some_and(|first| first == version)
    {
        entry.push_str("  controller: true\n");
    }
    let names = names(project, kind).with("version", version);
    entry.push_str(&names.fill("  domain: @{domain}\n"));
    let group = names.fill("@{first-label}");
    if !group.is_empty() {
        entry.push_str(&format!("  group: {group}\n"));
    }
    entry.push_str(&names.fill("  kind: @{Kind}\n  path: @{group}/@{project}/api/@{version}\n"));
    let regular = crate::names::kind(&kind.kind, None, version)
        .is_ok_and(|known| known.plural == kind.plural);
    if !regular {
        entry.push_str(&format!("  plural: {}\n", kind.plural));
    }
    entry.push_str(&format!("  version: {version}\n"));
    if webhook {
        entry.push_str(
            "  webhooks:\n    defaulting: true\n    validation: true\n    webhookVersion: v1\n",
        );
    }
    entry
}

/// Returns the files of a new project.
pub(crate) fn create(project: &Project) -> Vec<File> {
    let Some(kind) = project.kinds.first() else {
        return Vec::new();
    };
    let operator = project.flavor == Flavor::Operator;
    let names = names(project, kind);
    let (imports, setup, what) = match operator {
        true => (IMPORT_CONTROLLER, SETUP_CONTROLLER, "An operator"),
        false => (IMPORT_WEBHOOK, SETUP_WEBHOOK, "Admission webhooks"),
    };
    let version = names.fill("@{version}");
    let names = names
        .clone()
        .with("what", what)
        .with("main-imports", &names.fill(imports))
        .with("main-setup", &names.fill(setup))
        .with("resources", &resource(project, kind, &version, !operator));
    let templates = match operator {
        true => [BASE, PACKAGE, KIND, CONTROLLER, CONTROLLERS].concat(),
        false => [BASE, PACKAGE, KIND, WEBHOOK].concat(),
    };
    let mut files: Vec<File> = templates
        .into_iter()
        .map(|(path, text)| File {
            path: names.fill(path),
            text: names.fill(text),
        })
        .collect();
    files.push(File {
        path: names.fill("api/@{package}/@{kind}_types.go"),
        text: names.fill(text!("types.go.in")),
    });
    if let Some(copies) = files
        .iter_mut()
        .find(|file| file.path.ends_with("zz_generated.deepcopy.go"))
    {
        copies.text.push_str(&names.fill(text!("deepcopy.go.in")));
    }
    if !operator {
        files.push(File {
            path: "config/webhook/manifests.yaml".to_owned(),
            text: names.fill(WEBHOOK_MANIFESTS),
        });
        files.push(File {
            path: "config/webhook/service.yaml".to_owned(),
            text: WEBHOOK_SERVICE.to_owned(),
        });
    }
    files
}

/// Adds the Go types of a version: to its package, or with a new package.
fn add_types(names: &Names, version: &str, tree: &mut Tree<'_>) -> Result<bool, AddError> {
    let copies = format!("api/{version}/zz_generated.deepcopy.go");
    let new = tree.get(&copies).is_none();
    if new {
        for (path, text) in PACKAGE {
            tree.add(&names.fill(path), names.fill(text))?;
        }
    }
    tree.add(
        &names.fill("api/@{package}/@{kind}_types.go"),
        names.fill(text!("types.go.in")),
    )?;
    let more = names.fill(text!("deepcopy.go.in"));
    tree.edit(&copies, |text| Ok([text, &more].concat()))?;
    Ok(new)
}

/// Adds an entry to PROJECT.
fn describe(entry: &str, tree: &mut Tree<'_>) -> Result<(), AddError> {
    tree.edit("PROJECT", |text| {
        before("PROJECT", text, "version: \"3\"", entry)
    })
}

/// Imports the package of a new version in the program and in the tests.
fn import_version(names: &Names, tree: &mut Tree<'_>) -> Result<(), AddError> {
    let import = names.fill("\tapi@{package} \"@{group}/@{project}/api/@{package}\"\n");
    tree.edit(MAIN, |text| after_last(MAIN, text, "apiv", &import))?;
    let line = names.fill("\tutilruntime.Must(api@{package}.AddToScheme(scheme))\n");
    tree.edit(MAIN, |text| before(MAIN, text, SCHEME, &line))
}

/// Adds a kind.
pub(crate) fn add_kind(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let names = names(project, kind);
    let version = names.fill("@{version}");
    if add_types(&names, &version, tree)? {
        import_version(&names, tree)?;
        let suite = "internal/controller/suite_test.go";
        if tree.get(suite).is_some() {
            let import = names.fill("\tapi@{package} \"@{group}/@{project}/api/@{package}\"\n");
            tree.edit(suite, |text| after_last(suite, text, "apiv", &import))?;
            let line = names.fill("\tif err := api@{package}.AddToScheme(scheme.Scheme); err != nil {\n\t\treturn 1, err\n\t}\n");
            tree.edit(suite, |text| before(suite, text, SCHEME, &line))?;
        }
    }
    for (path, text) in KIND {
        tree.add(&names.fill(path), names.fill(text))?;
    }
    let list = "config/crd/kustomization.yaml";
    let line = names.fill("- bases/@{group}_@{plural}.yaml\n");
    tree.edit(list, |text| after_last(list, text, "- bases/", &line))?;
    let list = "config/samples/kustomization.yaml";
    let line = names.fill("- @{version}_@{kind}.yaml\n");
    if tree.get(list).is_some() {
        tree.edit(list, |text| before(list, text, SAMPLES, &line))?;
    }
    match project.flavor {
        Flavor::Operator => {
            describe(&resource(project, kind, &version, false), tree)?;
            for (path, text) in CONTROLLER {
                tree.add(&names.fill(path), names.fill(text))?;
            }
            let setup = names.fill(SETUP_CONTROLLER);
            tree.edit(MAIN, |text| before(MAIN, text, BUILDER, &setup))?;
            let suite = "internal/controller/suite_test.go";
            let setup = names.fill(SETUP_TEST);
            tree.edit(suite, |text| {
                before(suite, text, "go func() { _ = manager.Start", &setup)
            })
        }
        _ => {
            describe(&resource(project, kind, &version, true), tree)?;
            rules(project, kind, tree)
        }
    }
}

/// Adds the webhooks of a kind.
fn rules(project: &Project, kind: &KindNames, tree: &mut Tree<'_>) -> Result<(), AddError> {
    let names = names(project, kind);
    for (path, text) in WEBHOOK {
        tree.add(&names.fill(path), names.fill(text))?;
    }
    let import = names.fill(IMPORT_WEBHOOK);
    tree.edit(MAIN, |text| before(MAIN, text, IMPORTS, &import))?;
    let setup = names.fill(SETUP_WEBHOOK);
    tree.edit(MAIN, |text| before(MAIN, text, BUILDER, &setup))?;
    let (path, manifests) = (
        "config/webhook/manifests.yaml",
        names.fill(WEBHOOK_MANIFESTS),
    );
    match tree.get(path) {
        Some(_) => tree.edit(path, |text| Ok([text, &manifests].concat())),
        None => {
            tree.add("config/webhook/service.yaml", WEBHOOK_SERVICE.to_owned())?;
            tree.add(path, manifests)
        }
    }
}

/// Adds a version: a package, and a version of the definition that is not stored.
pub(crate) fn add_version(
    project: &Project,
    kind: &KindNames,
    version: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    let names = names(project, kind).with("package", version);
    if add_types(&names, version, tree)? {
        import_version(&names, tree)?;
    }
    let first = format!(
        "api/{}/{}_types.go",
        names.fill("@{version}"),
        kind.singular()
    );
    // controller-gen needs to know which version is stored.
    tree.edit(&first, |text| {
        let status = "// +kubebuilder:subresource:status";
        after_last(&first, text, status, "// +kubebuilder:storageversion\n")
    })?;
    describe(&resource(project, kind, version, false), tree)?;
    let (path, name) = (
        names.fill("config/crd/bases/@{group}_@{plural}.yaml"),
        format!("{}.{}", kind.plural, project.group),
    );
    tree.edit(&path, |text| {
        definition::change(&path, text, &name, |value| {
            definition::add_version(value, version)
        })
    })
}

/// Adds the subresource `scale`.
pub(crate) fn add_scale(
    project: &Project,
    kind: &KindNames,
    spec: &str,
    status: &str,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    for version in &kind.versions {
        let file = format!("api/{version}/{}_types.go", kind.singular());
        let line =
            format!("// +kubebuilder:subresource:scale:specpath={spec},statuspath={status}\n");
        tree.edit(&file, |text| {
            after_last(&file, text, "// +kubebuilder:subresource:status", &line)
        })?;
    }
    let names = names(project, kind);
    let (path, name) = (
        names.fill("config/crd/bases/@{group}_@{plural}.yaml"),
        format!("{}.{}", kind.plural, project.group),
    );
    tree.edit(&path, |text| {
        definition::change(&path, text, &name, |value| {
            definition::add_scale(value, spec, status)
        })
    })
}

/// Adds webhooks to an operator.
pub(crate) fn add_webhook(
    project: &Project,
    kind: &KindNames,
    tree: &mut Tree<'_>,
) -> Result<(), AddError> {
    rules(project, kind, tree)?;
    let names = names(project, kind);
    let entry = resource(project, kind, &names.fill("@{version}"), false);
    let with = resource(project, kind, &names.fill("@{version}"), true);
    tree.edit("PROJECT", |text| Ok(text.replacen(&entry, &with, 1)))
}
