//! Tests of declared conversion: objects in `objects`, declarations in `declarations`.

mod declarations;
mod objects;

use super::*;
use crate::testing::{lines, yaml};
use std::fmt::Write as _;

/// Returns a definition with versions v1 and v2 (stored), optionally v3, and an annotation.
fn definition(annotation: &str) -> Value {
    with_storage(annotation, "v2")
}

fn with_storage(annotation: &str, storage: &str) -> Value {
    let mut crd = yaml(
        r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com, annotations: {}}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}
  conversion: {strategy: None}
  versions:
  - name: v1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              deploymentName: {type: string}
              replicas: {type: integer}
              hostPort: {type: string}
              size: {type: string}
              tags: {type: array, items: {type: string}}
              blob: {type: object, x-kubernetes-preserve-unknown-fields: true}
              same: {type: string}
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              workload:
                type: object
                properties:
                  name: {type: string}
                  replicas: {type: integer, default: 1}
              host: {type: string}
              port: {type: integer}
              size: {x-kubernetes-int-or-string: true}
              tags:
                type: array
                items: {type: object, properties: {key: {type: string}}}
              since: {type: string, format: date-time}
              blob: {type: object, x-kubernetes-preserve-unknown-fields: true}
              same: {type: string}
              maybe: {type: string, nullable: true}
  - name: v3
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {title: {type: string}, workload: {type: string}}}
"#,
    );
    let annotations = crd.at_mut(&["metadata", "annotations"]).unwrap();
    annotations
        .make_object()
        .insert(ANNOTATION, Value::string(annotation));
    for version in crd
        .at_mut(&["spec", "versions"])
        .unwrap()
        .as_array_mut()
        .unwrap()
    {
        let is_storage = version.get("name") == Some(&Value::string(storage));
        version
            .make_object()
            .insert("storage", Value::Bool(is_storage));
    }
    let status = yaml(&format!("{{storedVersions: [{storage}]}}"));
    crd.make_object().insert("status", status);
    crd
}

const BOTH_WAYS: &str = r#"
- from: v1
  to: v2
  move:
    spec.deploymentName: spec.workload.name
    spec.replicas: spec.workload.replicas
  set:
    spec.host: self.spec.?hostPort.optMap(it, it.split(":")[0])
    spec.port: self.spec.?hostPort.optMap(it, int(it.split(":")[1]))
    spec.tags: "self.spec.?tags.orValue([]).map(tag, {'key': tag})"
    spec.since: self.metadata.creationTimestamp
- from: v2
  to: v1
  move:
    spec.workload.name: spec.deploymentName
    spec.workload.replicas: spec.replicas
  set:
    spec.hostPort: "has(self.spec.host) ? optional.of(self.spec.host + ':' + string(self.spec.?port.orValue(80))) : optional.none()"
    spec.tags: "self.spec.?tags.orValue([]).map(tag, tag.key)"
    spec.size: "self.spec.?size.optMap(size, string(size))"
"#;

const AND_V3: &str = r#"
- {from: v2, to: v3, set: {spec.title: self.spec.workload.name, spec.workload: "'one of ' + string(self.spec.workload.replicas)"}}
- {from: v3, to: v2, set: {spec.workload.name: "self.spec.title"}, remove: [spec.workload]}
"#;

fn converted(crd: &Value, object: &str, to: &str) -> Result<Value, String> {
    let conversions = Conversions::of(crd, &SchemaCache::new()).expect("it declares some");
    let mut object = yaml(object);
    object.make_object().insert("kind", Value::string("Foo"));
    let to = format!("example.com/{to}");
    let done = conversions.convert(object, &to).map_err(|error| error.0)?;
    assert_eq!(done.get("apiVersion"), Some(&Value::string(&to)));
    Ok(done)
}

fn spec(crd: &Value, object: &str, to: &str) -> String {
    let done = converted(crd, object, to).unwrap();
    done.get("spec").map(Value::to_string).unwrap_or_default()
}

fn problems(annotation: &str) -> Vec<String> {
    lines_of(&definition(annotation))
}

fn lines_of(crd: &Value) -> Vec<String> {
    lines(&super::super::validate_create(crd))
}
