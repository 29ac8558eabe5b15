//! Tests with published definitions and recorded answers: every definition installs, every object
//! gets the causes of a real server.

#![allow(clippy::unwrap_used)]

use bareboat_api::{FieldError, FieldErrors, Value};
use bareboat_schema::crd::{self, Taken};
use bareboat_schema::{Schema, SchemaCache, Source, scale};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns the folder of vectors, or `None` if it is absent.
fn vectors() -> Option<PathBuf> {
    bareboat_vectors::folder("")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the non-empty documents of a YAML stream.
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut parts = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            parts.push(String::new());
        } else {
            let part = parts.last_mut().unwrap();
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
        .iter()
        .map(|part| bareboat_wire::yaml::parse(part.as_bytes()))
        .map(|parsed| {
            parsed
                .unwrap_or_else(|error| panic!("{}: {error:?}", path.display()))
                .value
        })
        .filter(|value| !value.is_null())
        .collect()
}

fn definitions(folder: &Path) -> Vec<Value> {
    let documents = files(&folder.join("crds"))
        .into_iter()
        .flat_map(|path| documents(&path));
    documents
        .filter(|value| value.get("kind") == Some(&Value::string("CustomResourceDefinition")))
        .collect()
}

fn install(crd: &mut Value, taken: &Taken) {
    crd::prepare(crd, None);
    crd::default(crd);
    let errors = crd::validate_create(crd);
    let name = crd.at(&["metadata", "name"]).unwrap().clone();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{name}: {texts:#?}");
    let status = crd::reconcile(crd, taken, "2024-01-01T00:00:00Z").unwrap();
    crd.as_object_mut().unwrap().insert("status", status);
}

#[test]
fn every_published_definition_installs_and_is_established() {
    let Some(folder) = vectors() else { return };
    let mut installed: Vec<Value> = Vec::new();
    for mut crd in definitions(&folder) {
        let group = crd.at(&["spec", "group"]).unwrap().clone();
        let siblings = installed
            .iter()
            .filter(|other| other.at(&["spec", "group"]) == Some(&group));
        let taken = Taken::by(siblings);
        install(&mut crd, &taken);
        let definition = crd::Definition::parse(&crd);
        assert!(definition.established, "{}", definition.name);
        assert!(definition.names_accepted, "{}", definition.name);
        assert_eq!(definition.names, definition.accepted);
        assert!(crd::validate_update(&crd, &crd).is_empty());
        assert_eq!(crd::reconcile(&crd, &Taken::by([]), "later"), None);
        installed.push(crd);
    }
    assert!(installed.len() > 40, "only {} definitions", installed.len());
}

#[test]
fn equal_parts_of_definitions_share_memory() {
    let Some(folder) = vectors() else { return };
    let cache = SchemaCache::new();
    let mut kept = Vec::new();
    for crd in definitions(&folder) {
        for version in crd::Definition::parse(&crd).versions {
            let shared = crd::compile(&crd, &version.name, &cache);
            let alone = Schema::parse(crd::schema_of(&crd, &version.name).unwrap()).unwrap();
            assert_eq!(shared.hash(), alone.hash());
            kept.push(shared);
        }
    }
}

/// Returns the errors of a new object, as a server computes them.
fn errors_of(crd: &Value, schema: &Schema, object: &mut Value) -> Vec<FieldError> {
    let definition = crd::Definition::parse(crd);
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap();
    let version = api_version.rsplit('/').next().unwrap().to_owned();
    schema.coerce(object, Source::Request, None).unwrap();
    schema.default(object).expect("the defaults are few");
    let mut earlier = FieldErrors::default();
    if let Some(paths) = definition
        .version(&version)
        .and_then(|version| version.scale.as_ref())
    {
        scale::validate_spec(paths, object, &mut earlier);
        scale::validate_status(paths, object, &mut earlier);
    }
    schema.validate(object, None, earlier.into_list()).errors
}

/// Returns causes as recorded: sorted triples of field, reason and message.
fn causes(errors: &[FieldError]) -> Vec<(String, String, String)> {
    let mut causes: Vec<_> = errors
        .iter()
        .map(|error| {
            (
                error.path.to_string(),
                match error.kind.reason() {
                    "FieldValueTypeInvalid" => "FieldValueTypeInvalid".to_owned(),
                    other => other.to_owned(),
                },
                error.body(),
            )
        })
        .collect();
    causes.sort();
    causes
}

fn recorded_causes(causes: Option<&Value>) -> Vec<(String, String, String)> {
    let list = causes.and_then(Value::as_array).unwrap_or(&[]);
    let text = |cause: &Value, key: &str| cause.get(key).unwrap().as_str().unwrap().to_owned();
    let mut causes: Vec<_> = list
        .iter()
        .map(|cause| {
            (
                text(cause, "field"),
                text(cause, "reason"),
                text(cause, "message"),
            )
        })
        .collect();
    causes.sort();
    causes
}

#[test]
fn gateway_objects_get_the_recorded_causes() {
    let Some(folder) = vectors() else { return };
    let cache = SchemaCache::new();
    let mut kinds: BTreeMap<(String, String), (Value, Schema)> = BTreeMap::new();
    for crd in definitions(&folder) {
        let definition = crd::Definition::parse(&crd);
        for version in definition.served_versions() {
            let key = (
                format!("{}/{}", definition.group, version.name),
                definition.names.kind.to_string(),
            );
            let schema = crd::compile(&crd, &version.name, &cache);
            kinds.insert(key, (crd.clone(), schema));
        }
    }
    let folder = folder.join("objects/gateway-api");
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    let expected = bareboat_wire::json::parse(&expected).unwrap().value;
    let (mut seen, mut wrong) = (0, Vec::new());
    for path in files(&folder) {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        for (index, mut object) in documents(&path).into_iter().enumerate() {
            let label = format!("{name}#{index}");
            let text = |key: &str| {
                object
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned()
            };
            let Some((crd, schema)) = kinds.get(&(text("apiVersion"), text("kind"))) else {
                continue;
            };
            let Some(answer) = expected.get(&label) else {
                continue;
            };
            seen += 1;
            let found = causes(&errors_of(crd, schema, &mut object));
            let recorded = recorded_causes(answer.get("causes"));
            if found != recorded {
                wrong.push(format!(
                    "{label}\n  found {found:#?}\n  recorded {recorded:#?}"
                ));
            }
        }
    }
    assert!(seen > 50, "only {seen} objects");
    assert!(
        wrong.is_empty(),
        "{} of {seen} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_recorded_custom_kind_behaves_as_recorded() {
    let Some(folder) = vectors() else { return };
    let text = std::fs::read_to_string(folder.join("transcript/custom.jsonl")).unwrap();
    let steps: Vec<Value> = text
        .lines()
        .map(|line| bareboat_wire::json::parse(line.as_bytes()).unwrap().value)
        .collect();
    let crd = steps[0].at(&["answer", "body"]).unwrap().clone();
    assert_eq!(crd::validate_create(&crd), []);
    let schema = crd::compile(&crd, "v1", &SchemaCache::new());
    let mut seen = 0;
    for step in &steps {
        let is_create = step.at(&["request", "method"]) == Some(&Value::string("POST"))
            && step.at(&["request", "body", "kind"]) == Some(&Value::string("Widget"));
        if !is_create {
            continue;
        }
        let name = step.get("name").unwrap();
        let mut object = step.at(&["request", "body"]).unwrap().clone();
        if object.at(&["metadata", "name"]).is_none() {
            continue;
        }
        let Some(code) = step.at(&["answer", "code"]).and_then(Value::as_i64) else {
            continue;
        };
        let found = causes(&errors_of(&crd, &schema, &mut object));
        match code {
            201 => {
                assert_eq!(found, [], "{name}");
                let recorded = step.at(&["answer", "body", "spec"]).unwrap();
                let mut spec = object.get("spec").unwrap().clone();
                if spec.get("when").is_some() {
                    spec.as_object_mut()
                        .unwrap()
                        .insert("when", Value::string("<time>"));
                }
                assert_eq!(&spec, recorded, "{name}");
            }
            422 => {
                let recorded = recorded_causes(step.at(&["answer", "body", "details", "causes"]));
                // The server checks type meta and metadata.
                if recorded
                    .iter()
                    .any(|(field, ..)| field.starts_with("metadata") || field == "kind")
                {
                    continue;
                }
                assert_eq!(found, recorded, "{name}");
            }
            _ => continue,
        }
        seen += 1;
    }
    assert!(seen > 8, "only {seen} steps");
}
