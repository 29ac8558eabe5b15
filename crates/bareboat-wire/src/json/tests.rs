//! The JSON reader: numbers, strings, duplicates, depth, and error texts.

#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::value;
use proptest::prelude::*;

fn read(text: &str) -> Value {
    parse(text.as_bytes()).unwrap().value
}

fn fault(text: &[u8]) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn every_kind_of_value_is_parsed() {
    let text = r#" {"a":[1,-2,2.5,true,false,null,"x"],"b":{"c":{}},"d":[]} "#;
    let expected = value!({
        "a": [1, (-2), 2.5, true, false, null, "x"],
        "b": {"c": {}},
        "d": [],
    });
    assert_eq!(read(text), expected);
}

#[test]
fn numbers_are_integers_where_they_fit() {
    let check = |text: &str, expected: Value| {
        let found = read(text);
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{text}");
    };
    check("0", Value::Int(0));
    check("-0", Value::Int(0));
    check("9223372036854775807", Value::Int(i64::MAX));
    check("-9223372036854775808", Value::Int(i64::MIN));
    check(
        "9223372036854775808",
        Value::Float(9.223_372_036_854_776e18),
    );
    check("1.0", Value::Float(1.0));
    check("1e3", Value::Float(1000.0));
    check("1E-3", Value::Float(0.001));
    assert!(fault(b"1e999").contains("too large"));
    assert!(fault(b"-1e999").contains("too large"));
}

#[test]
fn strings_are_unescaped() {
    let check = |text: &str, expected: &str| assert_eq!(read(text), Value::string(expected));
    check(
        r#""plain text, longer than eight bytes""#,
        "plain text, longer than eight bytes",
    );
    check(r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t");
    check(r#""\u00e9\uD83D\uDE00 end""#, "é😀 end");
    check("\"größe: übermäßig lang\"", "größe: übermäßig lang");
    check("\"1234567\\n\"", "1234567\n");
    check("\"\u{7f}\"", "\u{7f}");
}

#[test]
fn errors_name_the_place_and_the_expected_text() {
    let check = |text: &[u8], expected: &str| assert_eq!(fault(text), expected);
    check(b"", "line 1, column 1: expected a value, found the end");
    check(
        b"{\n  \"a\": 1\n  \"b\": 2}",
        "line 3, column 3: expected ',' or '}', found '\"'",
    );
    check(
        b"{\"a\" 1}",
        "line 1, column 6: expected ':' after the key, found '1'",
    );
    check(
        b"{a: 1}",
        "line 1, column 2: expected a quoted key, found 'a'",
    );
    check(b"[1,]", "line 1, column 4: expected a value, found ']'");
    check(b"01", "line 1, column 2: a number may not start with 0");
    check(
        b"1 2",
        "line 1, column 3: expected the end of the document, found '2'",
    );
    check(
        b"\"a\xff\"",
        "line 1, column 3: the text is not valid UTF-8",
    );
    check(
        b"\"\\ud800x\"",
        "line 1, column 2: half of a surrogate pair is missing",
    );
    check(
        b"\"a\nb\"",
        "line 1, column 3: control characters in strings must be escaped",
    );
    check(
        b"\"abc",
        "line 1, column 5: expected '\"' at the end of the string, found the end",
    );
    check(
        "[\"é\", x]".as_bytes(),
        "line 1, column 7: expected a value, found 'x'",
    );
    check(
        b"\xEF\xBB\xBF{}",
        "line 1, column 1: a byte order mark before JSON is not allowed",
    );
    check(b"tru", "line 1, column 1: expected 'true', found 't'");
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert!(fault(nested(MAX_DEPTH + 1).as_bytes()).contains("nested deeper"));
    assert!(fault("[".repeat(100_000).as_bytes()).contains("nested deeper"));
    assert!(fault("{\"a\":".repeat(100_000).as_bytes()).contains("nested deeper"));
}

#[test]
fn duplicate_keys_are_reported_with_their_paths_and_the_last_wins() {
    let parsed = parse(
        br#"{"spec":{"foo":1,"items":[{"bar":1,"bar":2,"bar":3}],"foo":4},"b":1,"a":{},"a":{"x":1}}"#,
    )
    .unwrap();
    assert_eq!(
        parsed.duplicates,
        [
            r#"duplicate field "spec.items[0].bar""#,
            r#"duplicate field "spec.foo""#,
            r#"duplicate field "a""#,
        ]
    );
    let expected = value!({
        "spec": {"foo": 4, "items": [{"bar": 3}]}, "b": 1, "a": {"x": 1},
    });
    assert_eq!(parsed.value, expected);
    let escaped = parse(br#"{"a":1,"\u0061":2}"#).unwrap();
    assert_eq!(escaped.duplicates, [r#"duplicate field "a""#]);
}

#[test]
fn findings_are_sorted_by_their_place_in_the_document() {
    let document = br#"{"z":1,"spec":{"unknown":{"in":1,"in":2},"n":2,"n":3,"list":[{},{"y":1,"y":2}],"a":0},"b.c":1}"#;
    let findings = [
        r#"unknown field "told \"otherwise\"""#,
        r#"duplicate field "spec.unknown.in""#,
        r#"duplicate field "spec.n""#,
        r#"unknown field "b.c""#,
        r#"unknown field "spec.a""#,
        r#"unknown field "spec.list[1].y""#,
        r#"unknown field "spec.unknown""#,
        r#"unknown field "z""#,
    ];
    let expected = [
        r#"unknown field "z""#,
        r#"unknown field "spec.unknown""#,
        r#"duplicate field "spec.n""#,
        r#"unknown field "spec.list[1].y""#,
        r#"unknown field "spec.a""#,
        r#"unknown field "b.c""#,
        r#"unknown field "told \"otherwise\"""#,
    ];
    assert_eq!(
        in_order(document, findings.map(str::to_owned).to_vec()),
        expected
    );
}

#[test]
fn a_flood_of_duplicates_is_cut_short() {
    let members: Vec<String> = (0..1000)
        .map(|n| format!("\"k{n}\":1,\"k{n}\":2"))
        .collect();
    let parsed = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
    assert_eq!(parsed.duplicates.len(), crate::parsed::MAX_FINDINGS);
}

#[test]
fn the_parser_test_suite_passes() {
    let Some(folder) = bareboat_vectors::folder("json") else {
        return;
    };
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let accepted = parse(&std::fs::read(&path).unwrap()).is_ok();
        match name.as_bytes() {
            [b'y', b'_', ..] if !accepted => wrong.push(name),
            [b'n', b'_', ..] if accepted => wrong.push(name),
            _ => {}
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        // Whole floats above 2^53 print as the shortest digits that identify them, which as an
        // integer are a neighbouring number: Go's encoder does the same.
        any::<f64>()
            .prop_filter("finite, and not an integer", |number| {
                number.is_finite() && (number.abs() < 9e15 || number.abs() >= 1e21)
            })
            .prop_map(Value::Float),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((".{0,12}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn printed_values_parse_to_the_same_values(value in any_value()) {
        prop_assert_eq!(&parse(&value.to_json()).unwrap().value, &value);
        prop_assert_eq!(&parse(&value.to_json_pretty()).unwrap().value, &value);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn the_parser_agrees_with_serde_json(text in r#"[\[\]{}",:\\u0-9a-fA-F.eE+\- truefalsn\n]{0,40}"#) {
        let theirs = serde_json::from_str::<Value>(&text);
        let ours = parse(text.as_bytes());
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}", text);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.value, theirs);
        }
    }
}

#[test]
fn collections_have_their_exact_size() {
    for (text, count) in [
        (format!("[{}0]", "0,".repeat(100_000)), 100_001),
        (format!("[{}[]]", "[0],".repeat(50_000)), 50_001),
        (format!("[{}[]]", "[0],".repeat(100)), 101),
    ] {
        let Value::Array(items) = parse(text.as_bytes()).unwrap().value else {
            panic!("an array");
        };
        assert_eq!((items.len(), items.capacity()), (count, count));
        for item in &items {
            if let Value::Array(inner) = item {
                assert_eq!(inner.len(), inner.capacity());
            }
        }
    }
}
