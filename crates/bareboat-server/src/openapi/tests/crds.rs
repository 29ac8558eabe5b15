//! Published definitions of real projects, rendered in both versions of OpenAPI.

use super::*;
use bareboat_api::kind::{Names, Scope, Subresource};
use std::path::Path;

/// Returns the kinds of all published definitions; none without the vectors.
fn published() -> Vec<Arc<Kind>> {
    let mut kinds = Vec::new();
    let Some(folder) = bareboat_vectors::folder("crds") else {
        return kinds;
    };
    let projects = std::fs::read_dir(folder).unwrap();
    for project in projects {
        for file in std::fs::read_dir(project.unwrap().path()).unwrap() {
            read(&file.unwrap().path(), &mut kinds);
        }
    }
    kinds
}

fn read(file: &Path, kinds: &mut Vec<Arc<Kind>>) {
    let text = std::fs::read_to_string(file).unwrap();
    for document in text.split("\n---") {
        let document = document.trim_start_matches('-');
        let Ok(parsed) = bareboat_wire::yaml::parse(document.as_bytes()) else {
            panic!("{} is not readable", file.display());
        };
        if parsed.value.get("kind") == Some(&value!("CustomResourceDefinition")) {
            kinds.push(Arc::new(custom_kind(parsed.value.get("spec").unwrap())));
        }
    }
}

fn custom_kind(spec: &Value) -> Kind {
    let text = |path: &[&str]| spec.at(path).unwrap().as_str().unwrap();
    let scope = match text(&["scope"]) {
        "Namespaced" => Scope::Namespaced,
        _ => Scope::Cluster,
    };
    let names = Names::new(text(&["names", "plural"]), text(&["names", "kind"]));
    let mut kind = Kind::new(text(&["group"]), names, scope);
    kind = kind.into_custom();
    for declared in spec.get("versions").unwrap().as_array().unwrap() {
        let schema = declared.at(&["schema", "openAPIV3Schema"]).unwrap();
        let mut version = sample::version(
            declared.get("name").unwrap().as_str().unwrap(),
            PublishedSchema::Structural(schema.clone()),
            vec![Subresource::status()],
        );
        version.served = declared.get("served") == Some(&value!(true));
        kind = kind.with_version(version);
    }
    kind
}

/// Asserts that a schema has nothing that OpenAPI 2 clients cannot parse.
fn find_unreadable(schema: &mut Value, path: &str) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for name in ["allOf", "anyOf", "oneOf", "not", "nullable", "default"] {
        assert!(!members.contains_key(name), "{path} has {name}");
    }
    if members.get_str("type") == Some("array") {
        assert!(members.contains_key("items"), "{path} has no items");
    }
    walk::each_inner(members, &mut |inner| find_unreadable(inner, path));
}

#[test]
fn documents_of_published_definitions_are_sound() {
    let kinds = published();
    let documents = OpenApi::new(&kinds, Sources::default());
    for path in documents.document_paths() {
        assert_references_resolve(&documents.document(&path).unwrap());
    }
    let mut document = documents.v2();
    assert_references_resolve(&document);
    let definitions = document.at_mut(&["definitions"]).unwrap();
    for (name, schema) in definitions.make_object().iter_mut() {
        find_unreadable(schema, name);
    }
    for kind in &kinds {
        for version in kind.versions.iter().filter(|version| version.served) {
            let name = names::kind_definition(kind, version);
            let metadata = definitions.at(&[&name, "properties", "metadata", "$ref"]);
            assert!(metadata.is_some(), "{name} has no metadata");
        }
    }
}
