//! A kind in two versions that its definition converts itself, and the removal of the old one: the examples of the
//! documentation, with kubectl, kube-rs and `bareboat migrate`.

use crate::kubectl::Kubectl;
use crate::process::{Output, run};
use crate::server::{Home, bareboat};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{CustomResource, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Returns the YAML blocks of the documentation: the definition, an object in v1, and the same object in v2.
fn examples() -> Vec<String> {
    let text = include_str!("../../../../docs/conversion.md");
    text.split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

fn define(kubectl: &Kubectl, definition: &str) {
    kubectl.says_for("apply -f -", definition, &["foos.example.com"]);
    kubectl.says(
        "wait --for=condition=Established crd/foos.example.com --timeout=240s",
        &["condition met"],
    );
}

#[test]
fn kubectl_works_in_either_version_of_a_kind_that_converts_itself() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let examples = examples();
    define(&kubectl, &examples[0]);
    kubectl.says_for("apply -f -", &examples[1], &["foo.example.com/web created"]);
    let v1 =
        |path: &str| kubectl.gives(&format!("get foos.v1.example.com web -o 'jsonpath={path}'"));
    let v2 =
        |path: &str| kubectl.gives(&format!("get foos.v2.example.com web -o 'jsonpath={path}'"));
    assert_eq!(
        v2("{.apiVersion} {.spec.workload.name}"),
        "example.com/v2 web"
    );
    assert_eq!(v2("{.spec.host} {.spec.port}"), "localhost 8080");
    // Applying it again in either version changes nothing.
    kubectl.says_for("apply -f -", &examples[1], &["unchanged"]);
    kubectl.says_for(
        "apply --server-side --field-manager=kubectl-client-side-apply -f - --force-conflicts",
        &examples[2],
        &["serverside-applied"],
    );
    assert_eq!(v1("{.spec.endpoint} {.spec.replicas}"), "localhost:8080 3");

    let edited = run(
        kubectl
            .command("edit foos.v2.example.com web")
            .env("KUBE_EDITOR", "sed -i s/localhost/elsewhere/"),
        "",
    );
    assert!(edited.status.success(), "{}", edited.all());
    assert_eq!(v1("{.spec.endpoint}"), "elsewhere:8080");
    kubectl.says("scale foos.v1.example.com/web --replicas=5", &["scaled"]);
    assert_eq!(v2("{.spec.workload.replicas}"), "5");
    kubectl.says("scale foos.v2.example.com/web --replicas=6", &["scaled"]);
    assert_eq!(v1("{.spec.replicas}"), "6");
    kubectl.says(
        r#"patch foos.v1.example.com web --type=merge -p '{"spec":{"endpoint":"other"}}'"#,
        &["patched"],
    );
    assert_eq!(v2("{.spec.host} {.spec.port}"), "other 80");
    kubectl.refuses(
        r#"patch foos.v1.example.com web --type=merge -p '{"spec":{"endpoint":"a:b:c"}}'"#,
        &["spec.endpoint in body should match"],
    );
    assert_eq!(
        kubectl.gives("get foos.v2.example.com --field-selector spec.host=other -o name"),
        "foo.example.com/web\n"
    );
    kubectl.says(
        "explain foos --api-version=example.com/v1",
        &["VERSION: v1"],
    );

    // An error in an expression is reported with its position, and changes nothing.
    let wrong = examples[0].replace("self.spec.?tier", "self.spec.?tear");
    assert_ne!(wrong, examples[0]);
    kubectl.refuses_for(
        "apply -f -",
        &wrong,
        &[
            "metadata.annotations[bareboat.dev/conversion][0].set[spec.tier]",
            "undefined field 'tear'",
            "self is the object in v1",
        ],
    );
    kubectl.says("delete foos.v1.example.com web", &["deleted"]);
    kubectl.refuses("get foos.v2.example.com web", &["not found"]);
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Foo",
    root = "OldFoo",
    namespaced,
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
struct OldFooSpec {
    deployment_name: String,
    replicas: i64,
    endpoint: Option<String>,
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v2",
    kind = "Foo",
    root = "NewFoo",
    namespaced,
    schema = "disabled"
)]
struct NewFooSpec {
    workload: Workload,
    host: Option<String>,
    port: Option<u16>,
}

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
struct Workload {
    name: String,
    replicas: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_clients_of_either_version_understand_each_other() {
    let home = Home::new();
    let _server = home.serve();
    let client = home.client().await;
    define_with_kube(&client).await;
    let old: Api<OldFoo> = Api::default_namespaced(client.clone());
    let new: Api<NewFoo> = Api::default_namespaced(client);
    let spec = OldFooSpec {
        deployment_name: "web".to_owned(),
        replicas: 3,
        endpoint: Some("localhost:8080".to_owned()),
    };
    old.create(&PostParams::default(), &OldFoo::new("web", spec))
        .await
        .unwrap();
    let mut seen = new.get("web").await.unwrap();
    assert_eq!(
        (seen.spec.workload.name.as_str(), seen.spec.port),
        ("web", Some(8080))
    );
    seen.spec.port = Some(9090);
    seen.spec.workload.replicas = 4;
    new.replace("web", &PostParams::default(), &seen)
        .await
        .unwrap();
    let back = old.get("web").await.unwrap();
    assert_eq!(back.spec.endpoint.as_deref(), Some("localhost:9090"));
    assert_eq!(back.spec.replicas, 4);
    let apply = Patch::Apply(json!({
        "apiVersion": "example.com/v2", "kind": "Foo", "metadata": {"name": "web"},
        "spec": {"host": "there"},
    }));
    let params = PatchParams::apply("tester").force();
    new.patch("web", &params, &apply).await.unwrap();
    let listed = old.list(&ListParams::default()).await.unwrap();
    let endpoints: Vec<_> = listed.iter().map(|foo| foo.spec.endpoint.clone()).collect();
    assert_eq!(endpoints, [Some("there:9090".to_owned())]);
    let managers = listed.items[0].managed_fields();
    assert!(managers.iter().any(|entry| {
        entry.manager.as_deref() == Some("tester")
            && entry.api_version.as_deref() == Some("example.com/v2")
    }));
}

async fn define_with_kube(client: &kube::Client) {
    use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let parsed = bareboat_wire::yaml::parse(examples()[0].as_bytes()).unwrap();
    let definition = serde_json::from_slice(&parsed.value.to_json()).unwrap();
    api.create(&PostParams::default(), &definition)
        .await
        .unwrap();
}

/// Runs `bareboat migrate` against a server.
fn migrate(home: &Home, arguments: &[&str]) -> Output {
    let mut command = bareboat(["migrate"]);
    command
        .arg("--kubeconfig")
        .arg(home.kubeconfig())
        .args(arguments);
    run(&mut command, "")
}

#[test]
fn an_old_version_is_retired_after_a_migration_and_a_restart() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let examples = examples();
    // Stored in v1 at first.
    let old = examples[0]
        .replace("storage: true", "storage: maybe")
        .replace("storage: false", "storage: true")
        .replace("storage: maybe", "storage: false");
    define(&kubectl, &old);
    for index in 0..7 {
        let object = examples[1].replace("name: web}", &format!("name: web-{index}}}"));
        kubectl.says_for("apply -f -", &object, &["created"]);
    }
    kubectl.says_for("apply -f -", &examples[0], &["configured"]);
    let stored =
        || kubectl.gives("get crd foos.example.com -o 'jsonpath={.status.storedVersions}'");
    assert_eq!(stored(), r#"["v1","v2"]"#);
    let without_v1 = without_version(&examples[0]);
    kubectl.refuses_for(
        "apply -f -",
        &without_v1,
        &["v1 was previously a storage version, and must remain in spec.versions"],
    );

    let tried = migrate(&kubectl.home, &["--dry-run"]);
    assert!(tried.status.success(), "{}", tried.all());
    for words in [
        "foos.example.com: storage version v2, stored versions v1, v2",
        "7 objects, nothing is written",
        "foos.example.com: can be migrated",
    ] {
        assert!(tried.stdout.contains(words), "{}", tried.all());
    }
    assert_eq!(stored(), r#"["v1","v2"]"#);
    let version = |name: &str| {
        kubectl.gives(&format!(
            "get foos.v2.example.com {name} -o 'jsonpath={{.metadata.resourceVersion}}'"
        ))
    };
    let before = version("web-3");
    let done = migrate(&kubectl.home, &["foos.example.com"]);
    assert!(done.status.success(), "{}", done.all());
    for words in [
        "7 objects, 7 rewritten",
        "migrated, storedVersions is trimmed",
    ] {
        assert!(done.stdout.contains(words), "{}", done.all());
    }
    assert_eq!(stored(), r#"["v2"]"#);
    let after = version("web-3");
    assert_ne!(after, before, "it was written");
    // Objects in the storage version are not written again.
    kubectl.says(
        "patch foos.v2.example.com web-3 --type=merge -p '{}'",
        &["no change"],
    );
    assert_eq!(version("web-3"), after);
    let again = migrate(&kubectl.home, &["-q"]);
    assert_eq!(
        (again.stdout.as_str(), again.status.code()),
        ("", Some(0)),
        "{}",
        again.all()
    );
    kubectl.says_for("apply -f -", &without_v1, &["configured"]);

    // And it holds after a restart.
    let kubectl = kubectl.restarted();
    kubectl.says("get foos", &["web-0", "web-6"]);
    assert_eq!(
        kubectl.gives("get foos web-3 -o 'jsonpath={.apiVersion} {.spec.host}'"),
        "example.com/v2 localhost"
    );
    kubectl.says("delete crd foos.example.com --timeout=240s", &["deleted"]);
}

/// Returns the definition without v1 and without a conversion.
fn without_version(definition: &str) -> String {
    let (head, rest) = definition.split_once("  annotations:\n").unwrap();
    let (_, rest) = rest.split_once("spec:\n  group").unwrap();
    let (names, versions) = rest.split_once("  - name: v1\n").unwrap();
    let (_, v2) = versions.split_once("  - name: v2\n").unwrap();
    format!("{head}spec:\n  group{names}  - name: v2\n{v2}")
}

#[test]
fn objects_that_cannot_be_migrated_are_reported_and_stay() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let examples = examples();
    let old = examples[0]
        .replace("storage: true", "storage: maybe")
        .replace("storage: false", "storage: true")
        .replace("storage: maybe", "storage: false");
    define(&kubectl, &old);
    kubectl.says_for("apply -f -", &examples[1], &["created"]);
    let failing = examples[0].replace("it.split(\":\")[0]", "it.split(\":\")[9]");
    kubectl.says_for("apply -f -", &failing, &["configured"]);
    let failed = migrate(&kubectl.home, &[]);
    assert_eq!(failed.status.code(), Some(1), "{}", failed.all());
    for words in [
        "conversion of example.com/v1, Kind=Foo default/web to example.com/v2 failed",
        "index out of bounds: 9",
        "error: not migrated: foos.example.com",
    ] {
        assert!(failed.stderr.contains(words), "{words}: {}", failed.all());
    }
    assert_eq!(
        kubectl.gives("get crd foos.example.com -o 'jsonpath={.status.storedVersions}'"),
        r#"["v1","v2"]"#
    );
    let unknown = migrate(&kubectl.home, &["bars.example.com"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", unknown.all());
    assert!(
        unknown.stderr.contains("\"bars.example.com\" not found"),
        "{}",
        unknown.all()
    );
    let nobody = migrate(&kubectl.home, &["--server", "https://127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(1), "{}", nobody.all());
    assert!(
        nobody.stderr.contains("the server cannot be reached"),
        "{}",
        nobody.all()
    );
    let help = run(&mut bareboat(["migrate", "--help"]), "");
    for words in [
        "status.storedVersions",
        "--dry-run",
        "Exit codes:",
        "Examples:",
    ] {
        assert!(help.stdout.contains(words), "{words}: {}", help.stdout);
    }
}
