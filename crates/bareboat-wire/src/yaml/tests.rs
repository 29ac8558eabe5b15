//! The YAML reader: scalars, anchors, merge keys, documents, and limits.

#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::{Value, value};
use proptest::prelude::*;

fn read(text: &str) -> Value {
    parse(text.as_bytes()).unwrap().value
}

fn fault(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

fn printed(value: &Value) -> String {
    String::from_utf8(print(value)).unwrap()
}

#[test]
fn block_and_flow_collections_are_parsed() {
    let text = "# comment\napiVersion: v1\nitems:\n- a: 1\n  b: [x, {c: z}]\n-\n  - deep\ntext: |\n  two\n  lines\n";
    let expected = value!({
        "apiVersion": "v1",
        "items": [{"a": 1, "b": ["x", {"c": "z"}]}, ["deep"]],
        "text": "two\nlines\n",
    });
    assert_eq!(read(text), expected);
}

#[test]
fn scalars_follow_yaml_1_1() {
    let check = |text: &str, expected: Value| {
        let found = read(text);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{text}");
    };
    for yes in ["y", "Yes", "on", "TRUE", "true"] {
        check(yes, Value::Bool(true));
    }
    for no in ["n", "No", "off", "FALSE"] {
        check(no, Value::Bool(false));
    }
    for null in ["", "~", "null", "NULL", "---\n"] {
        check(null, Value::Null);
    }
    check("0777", Value::Int(511));
    check("0o17", Value::Int(15));
    check("0x1F", Value::Int(31));
    check("-0b11", Value::Int(-3));
    check("+12", Value::Int(12));
    check("1_000", Value::Int(1000));
    check("08", Value::Int(8));
    check("1.0", Value::Int(1));
    check("1e3", Value::Int(1000));
    check(".5", Value::Float(0.5));
    check("-1.5e-3", Value::Float(-0.0015));
    check("18446744073709551615", Value::Float(18446744073709551615.0));
    for text in [
        "1e999",
        "1.2.3",
        "0x",
        "2020-01-02",
        "2020-01-02T03:04:05Z",
        "12:30",
        "yEs",
        "1 2",
        "<<",
        "0xg",
    ] {
        check(text, Value::string(text));
    }
    check("\"yes\"", Value::string("yes"));
    check("'1'", Value::string("1"));
    check("!!str 1", Value::string("1"));
    check("!!int \"3\"", Value::Int(3));
    check("!!binary aGk=", Value::string("hi"));
    check("!custom 1", Value::string("1"));
    assert!(fault("!!int x").contains("cannot decode `x` as a !!int"));
    assert!(fault(".inf").contains("JSON has no number"));
}

#[test]
fn keys_become_strings() {
    assert_eq!(
        read("1: a\ntrue: b\n1.5: c\n\"x\": d\nyes: e\n"),
        value!({"1": "a", "true": "e", "1.5": "c", "x": "d"})
    );
    assert!(fault("~: x").contains("a key must be a scalar, not null"));
    assert!(fault("[a]: x").contains("a key must be a scalar, not array"));
}

#[test]
fn duplicate_keys_are_reported_with_their_line() {
    let parsed = parse(b"a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n").unwrap();
    assert_eq!(parsed.value, value!({"a": 2, "b": {"c": 3, "d": 2}}));
    assert_eq!(
        parsed.duplicates,
        [
            "line 5: key \"c\" already set in map",
            "line 6: key \"a\" already set in map"
        ]
    );
    let json = parse(br#"{"a": 1, "a": 2}"#).unwrap();
    assert_eq!(json.duplicates, ["line 1: key \"a\" already set in map"]);
}

#[test]
fn aliases_and_merge_keys_are_expanded() {
    let text = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\none:\n  <<: *base\n  b: 9\ntwo:\n  <<: [*base, *more]\nthree: *base\n";
    let value = read(text);
    assert_eq!(value.get("one"), Some(&value!({"a": 1, "b": 9})));
    assert_eq!(value.get("two"), Some(&value!({"a": 1, "b": 2, "c": 4})));
    assert_eq!(value.get("three"), Some(&value!({"a": 1, "b": 2})));
    assert!(fault("a: &a {<<: 3}").contains("map merge requires"));
    assert!(fault("a: *nowhere").to_lowercase().contains("anchor"));
    assert!(fault("a: &a [*a]").contains("refers to itself"));
}

#[test]
fn only_the_first_document_is_read() {
    assert_eq!(read("---\na: 1\n---\nb: ]["), value!({"a": 1}));
}

#[test]
fn alias_bombs_are_refused() {
    let mut laughs = String::from("a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n");
    for level in 1..30 {
        let previous = format!("*a{}", level - 1);
        let list = vec![previous; 9].join(",");
        laughs.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    assert!(fault(&laughs).contains("alias"));
    let long = "x".repeat(1 << 20);
    let strings = format!("a: &a {long}\nb: [{}]", vec!["*a"; 1000].join(","));
    assert!(fault(&strings).contains("alias"));
    let mut chain = String::from("a0: &a0 [1]\n");
    for level in 1..300 {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(fault(&chain).contains("nested deeper"));
}

#[test]
fn nesting_is_bounded() {
    assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    assert!(parse("{a: ".repeat(100_000).as_bytes()).is_err());
    assert!(parse("- ".repeat(100_000).as_bytes()).is_err());
    let blocks: String = (0..1000).map(|level| " ".repeat(level) + "a:\n").collect();
    assert!(parse(blocks.as_bytes()).is_err());
}

#[test]
fn errors_name_the_line() {
    assert!(
        fault("a: 1\nb: [\n").starts_with("line "),
        "{}",
        fault("a: 1\nb: [\n")
    );
    assert_eq!(parse(b"a: \xff").unwrap_err().column, 4);
}

#[test]
fn values_print_in_the_style_of_kubernetes() {
    let value = value!({
        "apiVersion": "v1",
        "empty": {}, "list": [], "nothing": null, "text": "",
        "items": [{"b": 1, "a": ["x", ["y"]]}, "z", []],
        "strings": ["true", "12", "yes", "a: b", "#no", "- x", "-x", "it's", "a#b", "tab\t", "1.5", "~", "2020-01-01", "é", " lead", "*x", "@x", "a:", "<<"],
        "script": "one\n  two\n\nthree\n",
        "open": "a\nb",
        "kept": "a\n\n",
        "lead": "  a\nb\n",
        "odd": "a \nb",
        "number": 1.5,
        "yes": false,
    });
    let expected = "apiVersion: v1
empty: {}
items:
- a:
  - x
  - - \"y\"
  b: 1
- z
- []
kept: |+
  a

lead: |2
    a
  b
list: []
nothing: null
number: 1.5
odd: \"a \\nb\"
open: |-
  a
  b
script: |
  one
    two

  three
strings:
- \"true\"
- \"12\"
- \"yes\"
- 'a: b'
- '#no'
- '- x'
- -x
- it's
- a#b
- \"tab\\t\"
- \"1.5\"
- \"~\"
- \"2020-01-01\"
- é
- ' lead'
- '*x'
- '@x'
- 'a:'
- \"<<\"
text: \"\"
\"yes\": false
";
    assert_eq!(printed(&value), expected);
    assert_eq!(read(expected), value);
}

#[test]
fn scalars_and_long_keys_are_printed() {
    assert_eq!(printed(&Value::Int(3)), "3\n");
    assert_eq!(printed(&Value::object()), "{}\n");
    assert_eq!(printed(&value!("a\nb")), "|-\n  a\n  b\n");
    let mut map = bareboat_api::Map::new();
    map.insert("k".repeat(2000), value!({"a": 1}));
    map.insert("two\nlines", value!([1]));
    let value = Value::Object(map);
    assert_eq!(read(&printed(&value)), value);
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,20}",
        "[-a-z0-9:#'\" \\n\\t.,\\[\\]{}&*!|>%@`?~_+x]{0,20}",
        "(yes|no|null|0x1|1e3|-|---|\\.\\.\\.|\\n| |\\n\\n| \\n)",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1e9..1e9f64).prop_map(Value::Float),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((text.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn printed_values_parse_to_the_same_values(value in any_value()) {
        let text = printed(&value);
        let parsed = load::first_document(&text);
        prop_assert!(parsed.is_ok(), "{:?}\n{}", parsed, text);
        prop_assert_eq!(&parsed.unwrap().value, &value, "{}", text);
    }

    #[test]
    fn arbitrary_text_does_not_panic_the_parser(text in "[-a-z0-9:#'\" \\n\\t.,\\[\\]{}&*!|>%@`?~<\\\\é]{0,60}") {
        let _ = parse(text.as_bytes());
    }
}

#[test]
fn text_after_the_first_document_is_ignored() {
    // As kube-apiserver parses them.
    for (text, wanted) in [
        ("{\"a\":}\"b\"}", Some("{\"a\":null}")),
        ("{\"a\":1}}", Some("{\"a\":1}")),
        (
            " {a: '}', b: \"\\\"}\"} ]",
            Some("{\"a\":\"}\",\"b\":\"\\\"}\"}"),
        ),
        ("{a: 1}, b", Some("{\"a\":1}")),
        ("[1]]", Some("[1]")),
        ("{\"a\":1]", None),
        ("{\"a\":{\"b\":1}", None),
        ("{\"a\",:\"1\"}", None),
        ("{a: [:b]}", None),
        ("a: :b", Some("{\"a\":\":b\"}")),
        ("a: {b: ':c'}", Some("{\"a\":{\"b\":\":c\"}}")),
        ("%YAML 1.1\n---\na: 1", Some("{\"a\":1}")),
        ("# note\n%YAML 1.2\n---\na: 1", None),
    ] {
        let parsed = parse(text.as_bytes()).ok();
        let shown = parsed.map(|parsed| parsed.value.to_string());
        assert_eq!(shown.as_deref(), wanted, "{text}");
    }
}

#[test]
fn sequences_have_their_exact_size() {
    let text = "- [0]\n".repeat(1000);
    let Value::Array(items) = parse(text.as_bytes()).unwrap().value else {
        panic!("a sequence");
    };
    assert_eq!((items.len(), items.capacity()), (1000, 1000));
    for item in items {
        let Value::Array(inner) = item else {
            panic!("a sequence");
        };
        assert_eq!((inner.len(), inner.capacity()), (1, 1));
    }
}
