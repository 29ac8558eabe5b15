//! JSON paths of columns: syntax, and what they find.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::value;
use proptest::prelude::*;

fn store() -> Value {
    value!({
        "name": "store",
        "metadata": {"labels": {"app.io/x": "1", "plain": "p"}},
        "book": [
            {"author": "Nigel", "price": 8, "ok": true},
            {"author": "Evelyn", "price": 12.5},
            {"author": "Herman", "price": 9, "isbn": "0-553"},
        ],
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Synced", "status": "False"},
        ],
        "empty": [],
        "nothing": null,
    })
}

fn all(path: &str) -> String {
    let compiled = JsonPath::compile(path).unwrap();
    let store = store();
    let texts: Vec<String> = compiled.all(&store).into_iter().map(print).collect();
    texts.join(" ")
}

#[test]
fn paths_select_the_same_values_as_in_client_go() {
    for (path, expected) in [
        (".name", "store"),
        ("{.name}", "store"),
        ("$.name", "store"),
        ("@.name", "store"),
        (".missing.deeper", ""),
        (".nothing.deeper", ""),
        (".book[0].author", "Nigel"),
        (".book[-1].author", "Herman"),
        (".book[-1:].author", "Herman"),
        (".book[*].author", "Nigel Evelyn Herman"),
        (".book[:].price", "8 12.5 9"),
        (".book[0:2].price", "8 12.5"),
        (".book[0:3:2].price", "8 9"),
        (".book[0,2].author", "Nigel Herman"),
        (".book[].author", "Nigel"),
        (".book[7].author", ""),
        (".empty[*]", ""),
        (".metadata.labels.app\\.io/x", "1"),
        (".metadata.labels['app\\.io/x']", "1"),
        ("['metadata.labels.plain']", "p"),
        ("['name', 'metadata.labels.plain']", "store p"),
        (".metadata.labels.*", "1 p"),
        ("..price", "8 12.5 9"),
        ("..book[0].price", "8"),
        (".conditions[?(@.type==\"Ready\")].status", "True"),
        (".conditions[?(@.type=='Ready')].status", "True"),
        (".conditions[?(@.type!=\"Ready\")].status", "False"),
        (".conditions[?(@.type == 'Ready')].status", "True"),
        (".book[?(@.isbn)].author", "Herman"),
        (".book[?(@.price<10)].author", "Nigel Herman"),
        (".book[?(@.price>=9)].author", "Evelyn Herman"),
        (".book[?(@.price==12.5)].author", "Evelyn"),
        (".book[?(@.ok==true)].author", "Nigel"),
        (".book[?(@.author==\"a)b\")].price", ""),
        (".book[?(@.author==3)].price", ""),
        (".name[0]", ""),
        (".conditions[?(@.type==Ready)].status", ""),
        (".metadata.labels", "{\"app.io/x\":\"1\",\"plain\":\"p\"}"),
    ] {
        assert_eq!(all(path), expected, "{path}");
    }
}

#[test]
fn invalid_paths_are_refused() {
    for (path, expected) in [
        (".a[", "unterminated array"),
        (".a[x]", "invalid array index x"),
        (".a[1:2:3:4]", "invalid array index 1:2:3:4"),
        (
            ".a[99999999999999999999]",
            "array index 99999999999999999999 is not a number",
        ),
        (".a[?(@.b)", "unclosed array expect ]"),
        (".a[?(@.b", "unterminated filter"),
        ("....", "invalid multiple recursive descent"),
        ("&", "unrecognized character in action: U+0026 '&'"),
        ("\"x", "unterminated quoted string"),
        (".a\n.b", "unclosed action"),
    ] {
        assert_eq!(
            JsonPath::compile(path).unwrap_err().to_string(),
            expected,
            "{path}"
        );
    }
}

#[test]
fn simple_paths_are_recognized() {
    let path = JsonPath::compile(".spec.a\\.b").unwrap();
    assert_eq!(path.simple(), Some(vec!["spec", "a.b"]));
    assert_eq!(JsonPath::compile(".a[0]").unwrap().simple(), None);
}

#[test]
fn evaluation_ends_on_hostile_values() {
    let mut value = Value::Int(1);
    for _ in 0..150 {
        value = value!([(value.clone()), 1]);
    }
    let path = JsonPath::compile(&"...*".repeat(500)).unwrap();
    assert!(path.find(&value).is_err());
    assert!(JsonPath::compile(&".a".repeat(5000)).is_err());
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic_the_parser(text in r#"[.\[\]?()@$'"*:,0-9a-c=<>! \\é{}-]{0,30}"#) {
        if let Ok(path) = JsonPath::compile(&text) {
            let _ = path.find(&store());
        }
    }
}
