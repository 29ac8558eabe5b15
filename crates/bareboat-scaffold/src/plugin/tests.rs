//! Flags of schemas, and scripts run by a shell with a kubectl that prints what it gets.
#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::{Value, value};
use std::process::Command;

fn post() -> Target {
    Target {
        group: "blog.example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Post".to_owned(),
        plural: "posts".to_owned(),
        name: "post".to_owned(),
        namespaced: true,
    }
}

fn schema() -> Value {
    value!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "metadata": {"type": "object"},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
            "spec": {
                "type": "object",
                "required": ["title"],
                "properties": {
                    "title": {"type": "string", "description": "What it is called. More text."},
                    "draft": {"type": "boolean", "default": false},
                    "berths": {"type": "integer"},
                    "weight": {"type": ["number", "null"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "levels": {"type": "array", "items": {"type": "integer"}},
                    "extra": {"type": "object", "additionalProperties": {"type": "string"}},
                    "port": {"x-kubernetes-int-or-string": true},
                    "user": {"type": "string"},
                    "ownerRef": {"allOf": [{"$ref": "#/components/schemas/Ref"}]},
                    "parts": {"type": "array", "items": {"type": "object"}}
                }
            }
        }
    })
}

fn schemas() -> Value {
    value!({"Ref": {"type": "object", "properties": {"apiGroup": {"type": "string"}, "name": {"type": "string"}}}})
}

/// Runs the script with a kubectl that prints its arguments and its input.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let dir = std::env::temp_dir().join(format!(
        "bareboat-plugin-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("plugin");
    std::fs::write(
        &file,
        script(&post(), &flags(&schema(), &schemas())).unwrap(),
    )
    .unwrap();
    let kubectl = dir.join("kubectl");
    std::fs::write(
        &kubectl,
        "#!/bin/sh\nprintf '[%s]' \"$@\"\nprintf '\\n'\ncat\n",
    )
    .unwrap();
    let made = Command::new("chmod").arg("+x").arg(&kubectl).status();
    assert!(made.unwrap().success());
    let output = Command::new("sh")
        .arg(&file)
        .args(arguments)
        .env("KUBECTL_PATH", &kubectl)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Returns the object and the arguments that kubectl gets.
fn made(arguments: &[&str]) -> (Value, String) {
    let (code, stdout, stderr) = run(arguments);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (first, object) = stdout.split_once('\n').unwrap();
    let object = bareboat_wire::json::parse(object.as_bytes()).unwrap().value;
    (object, first.to_owned())
}

#[test]
fn fields_become_flags() {
    let flags = flags(&schema(), &schemas());
    let names: Vec<&str> = flags.iter().map(|flag| flag.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "berths",
            "draft",
            "extra",
            "levels",
            "owner-ref-api-group",
            "owner-ref-name",
            "parts",
            "port",
            "tags",
            "title",
            "spec-user",
            "weight"
        ]
    );
    let title = flags.iter().find(|flag| flag.name == "title").unwrap();
    assert!(title.required);
    assert_eq!(title.help, "What it is called");
}

#[test]
fn values_arrive_as_they_were_given() {
    let text = "He said \"hi\" \\ $(id) `id` $HOME\n\ttab, Zoë \u{1}";
    let (object, arguments) = made(&[
        "hello",
        "--title",
        text,
        "--draft",
        "--berths=-4",
        "--weight",
        "1.5e3",
        "--tags",
        "a b",
        "--tags=c",
        "--levels",
        "1",
        "--extra",
        "k=v=w",
        "--port",
        "80",
        "--owner-ref-name=x",
        "--parts",
        "[{\"a\":1}]",
        "--label",
        "app=x",
        "--spec-user",
        "",
        "-n",
        "blog",
        "--dry-run=server",
        "-oyaml",
    ]);
    let expected = value!({
        "apiVersion": "blog.example.com/v1",
        "kind": "Post",
        "metadata": {"name": "hello", "labels": {"app": "x"}},
        "spec": {
            "title": (text),
            "draft": true,
            "berths": (-4),
            "weight": 1500.0,
            "tags": ["a b", "c"],
            "levels": [1],
            "extra": {"k": "v=w"},
            "port": 80,
            "user": "",
            "ownerRef": {"name": "x"},
            "parts": [{"a": 1}]
        }
    });
    assert_eq!(object, expected);
    assert_eq!(
        arguments,
        "[create][-f][-][-n][blog][--dry-run=server][-oyaml]"
    );
    let (object, _) = made(&["--title=x", "--port", "http", "--generate-name", "p-"]);
    assert_eq!(object.at(&["spec", "port"]).unwrap().as_str(), Some("http"));
    assert_eq!(
        object.at(&["metadata", "generateName"]).unwrap().as_str(),
        Some("p-")
    );
}

#[test]
fn mistakes_are_named() {
    for (arguments, wanted) in [
        (&["--title", "x"][..], "NAME is required"),
        (&["hello"], "required flag \"title\" not set"),
        (&["hello", "--title"], "flag needs an argument: --title"),
        (&["hello", "--titel", "x"], "unknown flag: --titel"),
        (&["hello", "again", "--title=x"], "exactly one NAME"),
        (
            &["hello", "--title=x", "--berths", "four"],
            "not an integer",
        ),
        (&["hello", "--title=x", "--draft=yes"], "not true or false"),
        (
            &["hello", "--title=x", "--extra", "novalue"],
            "not KEY=VALUE",
        ),
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!(code, 1, "{arguments:?}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
        assert_eq!(stdout, "", "nothing reaches kubectl");
    }
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    assert!(
        help.contains("--title TEXT                 What it is called (required)"),
        "{help}"
    );
}

#[test]
fn hostile_schemas_run_nothing() {
    let schema = value!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "x": {"type": "string", "description": "\nEND-OF-HELP\ntouch owned\n'; id; $(id)"},
            "y'; id; '": {"type": "string"},
            "$(id)": {"type": "string"}
        }}}
    });
    let flags = flags(&schema, &Value::object());
    assert_eq!(flags.len(), 1, "odd names get no flags");
    let mut odd = post();
    odd.kind = "Post\nid".to_owned();
    assert!(script(&odd, &flags).is_err());
    let script = script(&post(), &flags).unwrap();
    let ends = script.lines().filter(|line| *line == "END-OF-HELP").count();
    assert_eq!(ends, 1, "a description cannot end the text");
    assert_eq!(
        script
            .lines()
            .filter(|line| line.starts_with("touch"))
            .count(),
        0
    );
}
