//! Valid and invalid declarations.
#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::kind::{Names, Scope, SubresourceRole};
use bareboat_api::value;
use expect_test::{Expect, expect};

fn definition(annotation: &str) -> Value {
    value!({
        "metadata": {"annotations": {"bareboat.dev/subresources": annotation}},
        "spec": {"versions": [{"name": "v1"}, {"name": "v2"}]},
    })
}

fn check_errors(annotation: &str, expected: Expect) {
    let errors = check(&definition(annotation), None);
    let prefix = "metadata.annotations[bareboat.dev/subresources]";
    let lines: Vec<String> = errors
        .iter()
        .map(|error| error.to_string().replacen(prefix, "…", 1))
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_declaration_becomes_a_connection_of_each_version_it_names() {
    let annotation = r#"
- name: start
  verbs: [create, update]
  clientConfig: {url: "https://vms.example:8443/base"}
- name: console
  versions: [v2]
  verbs: [get]
  paths: true
  timeoutSeconds: 5
  responseKind: {group: meta.k8s.io, version: v1, kind: Status}
  clientConfig:
    service: {namespace: vms, name: api, port: 8443, path: /x}
    clientCertificate: {namespace: vms, name: caller}
- name: console
  versions: [v1]
  verbs: [get]
  responseKind: {kind: Console}
  clientConfig: {url: "https://old.example"}
"#;
    let crd = definition(annotation);
    assert_eq!(check(&crd, None), []);
    let mut kind = Kind::new(
        "vms.example",
        Names::new("machines", "Machine"),
        Scope::Namespaced,
    );
    for name in ["v2", "v1"] {
        kind.versions.push(Version {
            name: name.into(),
            served: true,
            deprecation: None,
            shape: crate::openapi::sample::services().versions[0].shape.clone(),
            columns: [].into(),
            subresources: vec![Subresource::status()],
            selectable: Vec::new(),
        });
    }
    let connections = add(&mut kind, &crd);
    let shown: Vec<String> = kind
        .versions
        .iter()
        .flat_map(|version| {
            version.subresources.iter().map(|part| {
                let verbs: Vec<&str> = part.verbs.iter().map(Verb::name).collect();
                let paths = part.role == SubresourceRole::Connect { paths: true };
                let response = part.response.as_ref();
                let response = response.map(|(g, v, k)| format!("{g}/{v} {k}"));
                let response = response.unwrap_or("-".to_owned());
                format!(
                    "{} {} {verbs:?} {paths} {response}",
                    version.name, part.name
                )
            })
        })
        .collect();
    expect![[r#"
        v2 status ["get", "patch", "update"] false -
        v2 start ["create", "update"] false -
        v2 console ["get"] true meta.k8s.io/v1 Status
        v1 status ["get", "patch", "update"] false -
        v1 start ["create", "update"] false -
        v1 console ["get"] false vms.example/v1 Console"#]]
    .assert_eq(&shown.join("\n"));
    for version in ["v1", "v2"] {
        assert!(connections.find(version, "start").is_some());
        assert!(connections.find(version, "status").is_none());
    }
}

#[test]
fn errors_name_the_field_they_are_about() {
    check_errors(
        "{",
        expect![
            "…: Invalid value: must be a list in YAML or JSON: line 1, column 1: unclosed bracket '{'"
        ],
    );
    check_errors(
        "name: start",
        expect![
            "…: Invalid value: must be a list of subresources, each with name, verbs and clientConfig"
        ],
    );
    check_errors(
        "[5, {}]",
        expect![[r#"
        …[0]: Invalid value: 5: must be an object with name, versions, verbs, responseKind, paths, timeoutSeconds, clientConfig
        …[1].name: Required value: the last segment of the URL, such as start
        …[1].verbs: Required value: at least one of get, create, update, patch and delete, for GET, POST, PUT, PATCH and DELETE
        …[1].clientConfig: Required value: say who answers: a url, or a service"#]],
    );
    check_errors(
        "[{name: status, verbs: [list], clientConfig: {url: 'http://a.example'}}]",
        expect![[r#"
            …[0].name: Invalid value: "status": is a subresource of every definition that asks for it under spec.versions[*].subresources; choose another name
            …[0].verbs[0]: Unsupported value: "list": supported values: "get", "create", "update", "patch", "delete"
            …[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#]],
    );
    check_errors(
        "[{name: Start_It, verbs: [get, get], paths: maybe, timeoutSeconds: 0, versions: [v3], \
         clientConfig: {service: {name: a, namespace: b, port: '1'}}}]",
        expect![[r#"
            …[0].name: Invalid value: "Start_It": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            …[0].versions[0]: Unsupported value: "v3": supported values: "v1", "v2"
            …[0].verbs[1]: Duplicate value: "get"
            …[0].paths: Invalid value: "maybe": must be true or false
            …[0].timeoutSeconds: Invalid value: 0: must be between 1 and 600, inclusive
            …[0].clientConfig.service.port: Invalid value: "1": must be an integer"#]],
    );
    check_errors(
        "[{name: a, name: b, verb: [get], clientConfig: {url: 'https://a.example', service: {}, caBundle: '*'}}]",
        expect![[r#"
            …: Invalid value: line 1: key "name" already set in map
            …[0].verb: Forbidden: unknown field; known are name, versions, verbs, responseKind, paths, timeoutSeconds, clientConfig
            …[0].verbs: Required value: at least one of get, create, update, patch and delete, for GET, POST, PUT, PATCH and DELETE
            …[0].clientConfig: Required value: exactly one of url or service is required
            …[0].clientConfig.caBundle: Invalid value: "*": unable to load root certificates: unable to parse bytes as PEM block"#]],
    );
    check_errors(
        "[{name: a, verbs: [get], clientConfig: {service: {name: a.b, namespace: c}}, responseKind: {group: x}}]",
        expect![[r#"
            …[0].responseKind.kind: Required value: the kind that discovery shows
            …[0].clientConfig: Invalid value: "a.b" cannot be the name of a service or its namespace"#]],
    );
    check_errors(
        "[{name: a, verbs: [get], clientConfig: {url: 'https://a.example'}}, \
          {name: a, versions: [v2], verbs: [create], clientConfig: {url: 'https://b.example', clientCertificate: {name: B}}}, \
          {name: a, versions: [v2], verbs: [create], clientConfig: {url: 'https://b.example'}}]",
        expect![[r#"
            …[1].clientConfig.clientCertificate.namespace: Required value: names a secret of type kubernetes.io/tls
            …[2].name: Duplicate value: "a""#]],
    );
}

#[test]
fn an_unchanged_invalid_declaration_is_accepted() {
    let bad = definition("{");
    assert_eq!(check(&bad, Some(&bad)), []);
    assert_eq!(check(&bad, Some(&definition("[]"))).len(), 1);
    assert!(annotation(&value!({})).is_none());
}
