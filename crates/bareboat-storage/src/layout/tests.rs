//! Tests of the offsets of type meta and metadata in the bytes of an object.

use super::Layout;

fn check(text: &str, expected: Result<(&str, &str), usize>) {
    let found = Layout::locate(text.as_bytes());
    let found = found.map(|at| {
        let tail = |offset: u16| text.get(offset as usize..).expect("on a boundary");
        (tail(at.type_meta_len), tail(at.metadata_at))
    });
    assert_eq!(found.map_err(|error| error.at), expected, "{text}");
}

#[test]
fn the_offsets_are_found_or_the_error_names_a_position() {
    check(
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#,
        Ok((r#""metadata":{"name":"x"}}"#, r#""name":"x"}}"#)),
    );
    check(
        r#"{"apiVersion":"a\"\\","kind":"\\","metadata":{"n":1},"z":2}"#,
        Ok((r#""metadata":{"n":1},"z":2}"#, r#""n":1},"z":2}"#)),
    );
    check("", Err(0));
    check("{}", Err(0));
    check(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}"#,
        Err(0),
    );
    check(r#"{"apiVersion":"v1"#, Err(15));
    check(r#"{"apiVersion":"v1\"#, Err(15));
    check(r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, Err(44));
    check(r#"{"apiVersion":"v1","kind":"Pod","spec":{}}"#, Err(32));
    let long = format!(
        r#"{{"apiVersion":"{}","kind":"Pod","metadata":{{"name":"x"}}}}"#,
        "v".repeat(70_000)
    );
    check(&long, Err(70_042));
}
