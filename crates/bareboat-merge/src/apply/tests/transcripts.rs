//! Repeats every write of recorded kube-apiserver transcripts on the state before it, and compares
//! patches, managed fields and conflicts.

use super::*;
use crate::{
    json_patch::JsonPatch,
    managed::scale::{ReplicasPaths, to_parent, to_scale},
    merge_patch, strategic_merge,
    testing::{Node, atomic_list, keyed, map, object, open_struct, scalar, set_list, structure},
};
use std::collections::HashMap;

fn scalars(names: &[&str]) -> Vec<(String, Node)> {
    names
        .iter()
        .map(|name| ((*name).to_owned(), scalar()))
        .collect()
}

fn with(names: &[&str], more: &[(&str, Node)]) -> Node {
    let mut fields = scalars(names);
    fields.extend(
        more.iter()
            .map(|(name, node)| ((*name).to_owned(), node.clone())),
    );
    let fields: Vec<(&str, Node)> = fields
        .iter()
        .map(|(name, node)| (&**name, node.clone()))
        .collect();
    structure(&fields)
}

fn deployment() -> Node {
    let env = keyed(&[("name", None)], with(&["name", "value"], &[])).merging("name");
    let ports = keyed(
        &[("containerPort", None), ("protocol", Some(value!("TCP")))],
        with(&["containerPort", "name", "protocol"], &[]),
    );
    let container = with(
        &[
            "name",
            "image",
            "imagePullPolicy",
            "terminationMessagePath",
            "terminationMessagePolicy",
        ],
        &[
            ("env", env),
            ("ports", ports.merging("containerPort")),
            (
                "resources",
                structure(&[("limits", map(scalar())), ("requests", map(scalar()))]),
            ),
        ],
    );
    let pod = with(
        &[
            "dnsPolicy",
            "restartPolicy",
            "schedulerName",
            "terminationGracePeriodSeconds",
        ],
        &[
            (
                "containers",
                keyed(&[("name", None)], container).merging("name"),
            ),
            ("securityContext", structure(&[("runAsUser", scalar())])),
            (
                "tolerations",
                atomic_list(structure(&[("key", scalar()), ("operator", scalar())])),
            ),
        ],
    );
    let selector = structure(&[("matchLabels", map(scalar()))]).atomic();
    let template = structure(&[
        (
            "metadata",
            structure(&[("labels", map(scalar())), ("creationTimestamp", scalar())]),
        ),
        ("spec", pod),
    ]);
    let rolling = with(&["maxSurge", "maxUnavailable"], &[]);
    let spec = with(
        &[
            "replicas",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
            "minReadySeconds",
        ],
        &[
            ("selector", selector),
            (
                "strategy",
                structure(&[("type", scalar()), ("rollingUpdate", rolling)]),
            ),
            ("template", template),
        ],
    );
    object(&[
        ("spec", spec),
        ("status", with(&["replicas", "observedGeneration"], &[])),
    ])
}

fn service() -> Node {
    let ports = keyed(
        &[("port", None), ("protocol", Some(value!("TCP")))],
        with(&["name", "port", "protocol", "targetPort"], &[]),
    );
    let spec = with(
        &[
            "clusterIP",
            "internalTrafficPolicy",
            "ipFamilyPolicy",
            "sessionAffinity",
            "type",
        ],
        &[
            ("clusterIPs", atomic_list(scalar())),
            ("ipFamilies", atomic_list(scalar())),
            ("ports", ports.merging("port")),
        ],
    );
    object(&[
        ("spec", spec),
        ("status", structure(&[("loadBalancer", structure(&[]))])),
    ])
}

fn widget() -> Node {
    let entry = with(&["k", "v"], &[]);
    let spec = with(
        &["name", "replicas", "mode", "nul", "port", "when"],
        &[
            ("atomic", atomic_list(scalar())),
            ("deep", structure(&[("x", scalar())])),
            ("free", open_struct(&[])),
            ("map", keyed(&[("k", None)], entry)),
            ("set", set_list(scalar())),
        ],
    );
    object(&[
        ("spec", spec),
        ("status", structure(&[("replicas", scalar())])),
    ])
}

fn scale() -> Node {
    let spec = structure(&[("replicas", scalar())]);
    object(&[
        ("spec", spec),
        ("status", with(&["replicas", "selector"], &[])),
    ])
}

/// The test's data about a kind.
struct Kind {
    name: &'static str,
    api_version: &'static str,
    node: Node,
    empty: Option<Value>,
}

fn kind_of(path: &str) -> Option<Kind> {
    let kind = |name, api_version, node, empty| {
        Some(Kind {
            name,
            api_version,
            node,
            empty,
        })
    };
    if path.contains("/deployments") {
        let empty = value!({
            "spec": {
                "selector": null, "strategy": {},
                "template": {"metadata": {"creationTimestamp": null}, "spec": {"containers": null}}
            },
            "status": {}
        });
        return kind("Deployment", "apps/v1", deployment(), Some(empty));
    }
    if path.contains("/services") {
        let empty = value!({"spec": {}, "status": {"loadBalancer": {}}});
        return kind("Service", "v1", service(), Some(empty));
    }
    if path.contains("/widgets") {
        return kind("Widget", "rec.example.com/v1", widget(), None);
    }
    None
}

/// The state of the server so far, and the step being repeated.
struct Replay {
    objects: HashMap<String, Value>,
    managed: usize,
    conflicts: usize,
}

struct Step<'a> {
    title: &'a str,
    method: &'a str,
    path: String,
    manager: &'a str,
    force: bool,
    dry: bool,
    patch_type: &'a str,
    body: &'a Value,
    code: i64,
    answer: &'a Value,
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.at(path).and_then(Value::as_str).unwrap_or_default()
}

fn replay(file: &str) -> Option<Replay> {
    let folder = bareboat_vectors::folder("transcript")?;
    let lines = std::fs::read_to_string(folder.join(file)).unwrap();
    let mut replay = Replay {
        objects: HashMap::new(),
        managed: 0,
        conflicts: 0,
    };
    for line in lines.lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        let (path, query) = {
            let path = text(&step, &["request", "path"]);
            path.split_once('?').unwrap_or((path, ""))
        };
        let option = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                .unwrap_or("")
        };
        replay.step(&Step {
            title: text(&step, &["name"]),
            method: text(&step, &["request", "method"]),
            path: path.to_owned(),
            manager: Some(option("fieldManager"))
                .filter(|name| !name.is_empty())
                .unwrap_or("transcript"),
            force: option("force") == "true",
            dry: option("dryRun") == "All",
            patch_type: text(&step, &["request", "headers", "Content-Type"]),
            body: step.at(&["request", "body"]).unwrap_or(&Value::Null),
            code: step
                .at(&["answer", "code"])
                .and_then(Value::as_i64)
                .unwrap(),
            answer: step.at(&["answer", "body"]).unwrap_or(&Value::Null),
        });
    }
    Some(replay)
}

impl Replay {
    fn step(&mut self, step: &Step<'_>) {
        let Some(kind) = kind_of(&step.path) else {
            return;
        };
        let (path, subresource) = match step.path.rsplit_once('/') {
            Some((path, sub @ ("status" | "scale"))) => (path.to_owned(), sub),
            _ => (step.path.clone(), ""),
        };
        let path = match step.method {
            "POST" => format!("{path}/{}", text(step.answer, &["metadata", "name"])),
            _ => path,
        };
        let live = self.objects.get(&path).cloned();
        let writer = Writer {
            manager: step.manager,
            subresource,
            now: "<time>",
        };
        let versions = OneVersion {
            api_version: kind.api_version,
            node: &kind.node,
            reset: match subresource {
                "" => FieldSet::of_names(&["status"]),
                _ => FieldSet::of_names(&["spec"]),
            },
        };
        let fields = FieldManager {
            api_version: kind.api_version,
            kind: kind.name,
            versions: &versions,
            converter: &NoConversion,
            empty: &|| kind.empty.clone(),
        };
        let applied = step.patch_type.starts_with("application/apply-patch");
        let result = match (step.method, subresource) {
            ("GET", _) if live.is_some() && step.code == 200 && subresource.is_empty() => {
                if step.answer.get("kind").and_then(Value::as_str) == Some(kind.name) {
                    self.check(step, live.as_ref().unwrap(), step.answer);
                }
                return;
            }
            ("PUT" | "PATCH", "scale") if step.code == 200 => {
                let mut parent = live.unwrap();
                let replicas = step.body.at(&["spec", "replicas"]).unwrap().clone();
                rescale(&mut parent, replicas, kind.api_version, writer);
                self.objects.insert(path, parent);
                return;
            }
            ("POST", _) if step.code == 201 => fields
                .update(None, without_managed(step.answer), writer)
                .unwrap(),
            ("PATCH", _) if applied => {
                match fields.apply(live.as_ref(), step.body, step.force, writer) {
                    Ok(object) if step.code < 300 => object,
                    Ok(object) => return self.refused_later(step, &object),
                    Err(error) => return self.refused(step, &error),
                }
            }
            ("PATCH", _) if step.code == 200 => {
                let patched = patch(live.as_ref().unwrap(), step, &kind.node);
                // The status endpoint drops everything but the status.
                if subresource.is_empty() {
                    within(step, &patched, step.answer);
                }
                let mut new = without_managed(step.answer);
                if let Some(list) = managed::of(&patched) {
                    new.at_mut(&["metadata"])
                        .unwrap()
                        .make_object()
                        .insert("managedFields", list.clone());
                }
                fields.update(live.as_ref(), new, writer).unwrap()
            }
            _ => return,
        };
        if applied {
            within(step, &result, step.answer);
        }
        self.check(step, &result, step.answer);
        if !step.dry {
            self.objects.insert(path, step.answer.clone());
        }
    }

    fn check(&mut self, step: &Step<'_>, found: &Value, expected: &Value) {
        self.managed += 1;
        assert_eq!(sorted(found), sorted(expected), "{}", step.title);
    }

    fn refused(&mut self, step: &Step<'_>, error: &ApplyError) {
        let message = text(step.answer, &["message"]);
        if let ApplyError::Conflicts(conflicts) = error {
            self.conflicts += 1;
            let expected = step
                .answer
                .at(&["details", "causes"])
                .and_then(Value::as_array)
                .unwrap();
            let mut causes = conflicts.causes();
            causes.sort_by(|(_, a), (_, b)| a.cmp(b));
            let found: Value = causes
                .into_iter()
                .map(|(message, field)| value!({"reason": "FieldManagerConflict", "message": (message), "field": (field)}))
                .collect();
            assert_eq!(found, Value::Array(expected.to_vec()), "{}", step.title);
            if message == "<all causes>" {
                return;
            }
        }
        assert_eq!(error.to_string(), message, "{}", step.title);
    }

    /// Handles a step that a later part of the pipeline rejected.
    fn refused_later(&mut self, step: &Step<'_>, object: &Value) {
        panic!("{} should have failed and gave {object}", step.title);
    }
}

fn patch(live: &Value, step: &Step<'_>, node: &Node) -> Value {
    let mut object = live.clone();
    match step.patch_type {
        "application/strategic-merge-patch+json" => {
            strategic_merge(&mut object, step.body.clone(), node).unwrap();
        }
        "application/merge-patch+json" => merge_patch(&mut object, step.body.clone()),
        _ => JsonPatch::parse(step.body.clone())
            .unwrap()
            .apply(&mut object)
            .unwrap(),
    }
    object
}

fn rescale(parent: &mut Value, replicas: Value, api_version: &str, writer: Writer<'_>) {
    let paths = ReplicasPaths::new().with(api_version, Some(&["spec", "replicas"]));
    let old = parent
        .at(&["spec", "replicas"])
        .cloned()
        .unwrap_or_default();
    let mut live = value!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {"replicas": (old)}});
    to_scale(parent, &mut live, &paths);
    let mut new = live.clone();
    *new.at_mut(&["spec", "replicas"]).unwrap() = replicas.clone();
    let node = scale();
    let versions = OneVersion {
        api_version: "autoscaling/v1",
        node: &node,
        reset: FieldSet::new(),
    };
    let fields = FieldManager {
        api_version: "autoscaling/v1",
        kind: "Scale",
        versions: &versions,
        converter: &NoConversion,
        empty: &|| None,
    };
    let new = fields.update(Some(&live), new, writer).unwrap();
    to_parent(&new, parent, api_version, &paths);
    *parent.at_mut(&["spec", "replicas"]).unwrap() = replicas;
}

fn without_managed(object: &Value) -> Value {
    let mut object = object.clone();
    managed::take(&mut object);
    object
}

/// Returns the entries in the order of their managers, like transcripts.
fn sorted(object: &Value) -> Vec<String> {
    let entries = managed::of(object)
        .and_then(Value::as_array)
        .unwrap_or_default();
    let mut entries: Vec<String> = entries.iter().map(Value::to_string).collect();
    entries.sort();
    entries
}

/// Checks that the answer contains the object; defaults and server-set fields are additional.
fn within(step: &Step<'_>, object: &Value, answer: &Value) {
    fn check(step: &str, path: &str, found: &Value, answer: &Value) {
        match (found, answer) {
            (Value::Object(found), Value::Object(answer)) => {
                for (name, value) in found.iter() {
                    if matches!(name, "managedFields" | "generation" | "resourceVersion") {
                        continue;
                    }
                    let path = format!("{path}.{name}");
                    let expected = answer
                        .get(name)
                        .unwrap_or_else(|| panic!("{step}: {path} is not in the answer"));
                    check(step, &path, value, expected);
                }
            }
            (Value::Array(found), Value::Array(answer)) => {
                assert_eq!(found.len(), answer.len(), "{step}: {path}");
                for (found, answer) in found.iter().zip(answer) {
                    check(step, path, found, answer);
                }
            }
            _ => assert_eq!(found, answer, "{step}: {path}"),
        }
    }
    check(step.title, "", object, answer);
}

#[test]
fn built_in_kinds_are_written_as_in_kubernetes() {
    if let Some(replay) = replay("writes.jsonl") {
        assert!(replay.managed >= 25, "{}", replay.managed);
        assert_eq!(replay.conflicts, 3);
    }
}

#[test]
fn custom_kinds_are_written_as_in_kubernetes() {
    if let Some(replay) = replay("custom.jsonl") {
        assert!(replay.managed >= 10, "{}", replay.managed);
        assert_eq!(replay.conflicts, 1);
    }
}
