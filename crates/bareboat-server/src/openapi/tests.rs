//! OpenAPI documents of some sample kinds, checked for what clients read from them.
#![allow(clippy::unwrap_used)]

mod crds;

use super::*;
use bareboat_api::kind::PublishedSchema;
use expect_test::{ExpectFile, expect_file};
use std::collections::BTreeSet;

fn kinds() -> Vec<Arc<Kind>> {
    [
        sample::config_maps(),
        sample::services(),
        sample::namespaces(),
        sample::service_accounts(),
        sample::deployments(),
        sample::self_subject_reviews(),
        sample::widgets(),
    ]
    .into_iter()
    .map(Arc::new)
    .collect()
}

fn documents() -> OpenApi {
    OpenApi::new(&kinds(), Sources::default())
}

fn schema<'a>(document: &'a Value, name: &str) -> &'a Value {
    document.at(&["components", "schemas", name]).unwrap()
}

fn check(value: &Value, expected: ExpectFile) {
    expected.assert_eq(&String::from_utf8(value.to_json_pretty()).unwrap());
}

/// Lists every operation as `method path name action`.
fn operations(document: &Value) -> String {
    let mut lines = String::new();
    for (path, item) in document.get("paths").unwrap().as_object().unwrap().iter() {
        for (method, operation) in item.as_object().unwrap().iter() {
            if method == "parameters" {
                continue;
            }
            let text = |name| operation.get(name).and_then(Value::as_str).unwrap_or("-");
            lines.push_str(&format!(
                "{method} {path} {} {}\n",
                text("operationId"),
                text("x-kubernetes-action")
            ));
        }
    }
    lines
}

/// Every `$ref` anywhere in a document.
fn all_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter() {
                match value.as_str() {
                    Some(reference) if name == "$ref" => {
                        found.insert(reference.to_owned());
                    }
                    _ => all_references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_references(item, found)),
        _ => {}
    }
}

fn assert_references_resolve(document: &Value) {
    let mut references = BTreeSet::new();
    all_references(document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let path: Vec<&str> = reference.strip_prefix("#/").unwrap().split('/').collect();
        assert!(document.at(&path).is_some(), "{reference} does not resolve");
    }
}

#[test]
fn every_reference_resolves() {
    let documents = documents();
    for path in documents.document_paths() {
        assert_references_resolve(&documents.document(&path).unwrap());
    }
    assert_references_resolve(&documents.v2());
}

#[test]
fn operation_names_are_unique() {
    let document = documents().v2();
    let mut names = BTreeSet::new();
    for line in operations(&document).lines() {
        let name = line.split(' ').nth(2).unwrap().to_owned();
        assert!(names.insert(name), "{line} is not unique");
    }
}

#[test]
fn common_schemas_are_complete() {
    let sources = Sources::default();
    let mut definitions = Definitions::new(&sources, SchemaDialect::V3, std::iter::empty());
    definitions.want(format!("{}DeleteOptions", names::META).into());
    definitions.want(format!("{}Status", names::META).into());
    definitions.want(format!("{}ObjectMeta", names::META).into());
    let schemas = definitions.finish();
    let described = |name: &str| schemas.get(name).unwrap().get("description").is_some();
    assert!(schemas.keys().all(described));
    assert_eq!(schemas.len(), 11);
}

#[test]
fn publishes_a_built_in_kind() {
    let document = documents().document("api/v1").unwrap();
    check(
        schema(&document, "io.k8s.api.core.v1.ConfigMap"),
        expect_file!["golden/config-map.json"],
    );
    check(
        schema(&document, "io.k8s.api.core.v1.ConfigMapList"),
        expect_file!["golden/config-map-list.json"],
    );
}

#[test]
fn publishes_how_lists_merge() {
    let document = documents().document("api/v1").unwrap();
    check(
        schema(&document, "io.k8s.api.core.v1.ServiceSpec"),
        expect_file!["golden/service-spec.json"],
    );
    check(
        schema(&document, "io.k8s.api.core.v1.ServicePort"),
        expect_file!["golden/service-port.json"],
    );
}

#[test]
fn publishes_a_custom_kind_as_declared() {
    let document = documents().document("apis/rec.example.com/v1").unwrap();
    check(
        schema(&document, "com.example.rec.v1.Widget"),
        expect_file!["golden/widget.json"],
    );
}

#[test]
fn publishes_a_custom_kind_for_old_clients() {
    let document = documents().v2();
    let definitions = document.get("definitions").unwrap();
    check(
        definitions.get("com.example.rec.v1.Widget").unwrap(),
        expect_file!["golden/widget-for-old-clients.json"],
    );
}

#[test]
fn a_custom_kind_without_limits_is_a_bare_object_to_old_clients() {
    let open = value!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": {"type": "object"}},
    });
    assert_eq!(
        custom::publish(open, SchemaDialect::V2),
        value!({"type": "object"})
    );
    assert_eq!(
        custom::publish(Value::object(), SchemaDialect::V3),
        value!({"type": "object"})
    );
}

#[test]
fn lists_the_operations_of_kinds() {
    let documents = documents();
    let listed = |path: &str| operations(&documents.document(path).unwrap());
    expect_file!["golden/operations-core.txt"].assert_eq(&listed("api/v1"));
    expect_file!["golden/operations-custom.txt"].assert_eq(&listed("apis/rec.example.com/v1"));
    expect_file!["golden/operations-reviews.txt"]
        .assert_eq(&listed("apis/authentication.k8s.io/v1"));
}

#[test]
fn publishes_that_patches_are_validated() {
    let documents = documents();
    for (root, subject, strategic) in [
        (
            "api/v1",
            value!({"group": "", "version": "v1", "kind": "ConfigMap"}),
            true,
        ),
        (
            "apis/rec.example.com/v1",
            value!({"group": "rec.example.com", "version": "v1", "kind": "Widget"}),
            false,
        ),
    ] {
        let plural = if strategic { "configmaps" } else { "widgets" };
        let path = format!("/{root}/namespaces/{{namespace}}/{plural}/{{name}}");
        let document = documents.document(root).unwrap();
        let patch = document.at(&["paths", &path, "patch"]).unwrap();
        assert_eq!(patch.get("x-kubernetes-group-version-kind"), Some(&subject));
        let parameters = patch.get("parameters").unwrap().as_array().unwrap();
        assert!(parameters.iter().any(|parameter| {
            parameter.get("name") == Some(&value!("fieldValidation"))
                && parameter.get("in") == Some(&value!("query"))
        }));
        let media = patch.at(&["requestBody", "content"]).unwrap();
        let media = media.as_object().unwrap();
        assert!(media.contains_key("application/apply-patch+yaml"));
        assert_eq!(
            media.contains_key("application/strategic-merge-patch+json"),
            strategic
        );
    }
}

#[test]
fn hashes_change_with_the_content_of_documents() {
    let before = documents();
    let mut kinds = kinds();
    let mut changed = sample::widgets();
    let PublishedSchema::Structural(mut schema) = changed.versions[0].shape.published_schema()
    else {
        unreachable!("widgets have a schema");
    };
    let spec = schema.at_mut(&["properties", "spec"]).unwrap();
    spec.make_object()
        .insert("description", value!("What is wanted."));
    changed.versions[0].shape =
        sample::version("v1", PublishedSchema::Structural(schema), Vec::new()).shape;
    *kinds.last_mut().unwrap() = Arc::new(changed);
    let after = before.renew(&kinds);
    assert_eq!(before.hash("api/v1"), after.hash("api/v1"));
    let widgets = "apis/rec.example.com/v1";
    assert_ne!(before.hash(widgets), after.hash(widgets));
    assert_ne!(before.v2_hash(), after.v2_hash());
    assert_eq!(before.renew(&self::kinds()).v2_hash(), before.v2_hash());
}

#[test]
fn indexes_local_and_remote_documents() {
    let documents = documents();
    let remote = RemoteDocument {
        path: "apis/metrics.example.com/v1".into(),
        hash: "ABC".into(),
    };
    let index = documents.index(&[remote]);
    let paths: Vec<&str> = index
        .get("paths")
        .unwrap()
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        paths,
        [
            "api",
            "api/v1",
            "apis",
            "apis/apps",
            "apis/apps/v1",
            "apis/authentication.k8s.io",
            "apis/authentication.k8s.io/v1",
            "apis/metrics.example.com/v1",
            "apis/rec.example.com",
            "apis/rec.example.com/v1",
            "version"
        ]
    );
    let url = |path: &str| index.at(&["paths", path, "serverRelativeURL"]).unwrap();
    assert_eq!(
        url("apis/metrics.example.com/v1"),
        &value!("/openapi/v3/apis/metrics.example.com/v1?hash=ABC")
    );
    let hash = documents.hash("apis/apps/v1").unwrap();
    assert_eq!(
        url("apis/apps/v1"),
        &Value::from(format!("/openapi/v3/apis/apps/v1?hash={hash}"))
    );
}

#[test]
fn finds_no_document_where_nothing_is_served() {
    let documents = documents();
    for path in [
        "",
        "api/v2",
        "api/v1/x",
        "apis/",
        "apis/nope",
        "apis/apps/v9",
        "apis/apps/v1/x",
        "version/x",
        "apis//v1",
    ] {
        assert!(documents.document(path).is_none(), "{path}");
        assert!(documents.hash(path).is_none(), "{path}");
    }
}

#[test]
fn copies_descriptions_and_required_members() {
    fn described(definition: &str) -> Option<Value> {
        (definition == "io.k8s.api.core.v1.Service").then(|| {
            value!({
                "description": "A name for some pods.",
                "required": ["metadata", "spec"],
                "properties": {"spec": {"description": "What is wanted."}},
            })
        })
    }
    let sources = Sources {
        descriptions: Some(described),
        ..Sources::default()
    };
    let document = OpenApi::new(&kinds(), sources).document("api/v1").unwrap();
    let service = schema(&document, "io.k8s.api.core.v1.Service");
    assert_eq!(
        service.get("description"),
        Some(&value!("A name for some pods."))
    );
    assert_eq!(service.get("required"), Some(&value!(["spec"])));
    assert_eq!(
        service.at(&["properties", "spec"]),
        Some(&value!({
            "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ServiceSpec"}],
            "default": {},
            "description": "What is wanted.",
        }))
    );
}
