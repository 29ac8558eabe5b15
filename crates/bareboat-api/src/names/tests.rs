//! Names of objects, labels and groups: which are valid, and the error texts for the others.

use super::*;

fn accepts(check: fn(&str) -> Vec<String>, names: &[&str]) {
    for name in names {
        assert_eq!(check(name), Vec::<String>::new(), "{name:?}");
    }
}

fn rejects(check: fn(&str) -> Vec<String>, names: &[&str]) {
    for name in names {
        assert!(!check(name).is_empty(), "{name:?}");
    }
}

#[test]
fn dns_names_are_checked() {
    let (label_63, label_64) = ("a".repeat(63), "a".repeat(64));
    accepts(
        dns1123_label,
        &[
            "a",
            "ab",
            "a1",
            "a-1",
            "a--1--2--b",
            "0",
            "01",
            "1-a",
            &label_63,
        ],
    );
    rejects(
        dns1123_label,
        &[
            "", "A", "a.b", "-", "a-", "-a", "_", "a_b", " ", "a ", "a b", "é", &label_64,
        ],
    );
    accepts(dns1035_label, &["a", "a-1", "abc", &label_63]);
    rejects(dns1035_label, &["", "0", "1a", "a-", "A", "a.b", &label_64]);
    let (long, longer) = ("a.".repeat(126) + "a", "a.".repeat(127) + "a");
    accepts(dns1123_subdomain, &["a", "0.0", "a.b.c", "a-1.b--2", &long]);
    rejects(
        dns1123_subdomain,
        &["", ".", "a.", ".a", "a..b", "a.B", "a_b.c", "-a.b", &longer],
    );
}

#[test]
fn qualified_names_and_label_values_are_checked() {
    let longest = "a".repeat(253) + "/" + &"b".repeat(63);
    accepts(
        qualified_name,
        &[
            "simple",
            "1-starts-with-num",
            "1234",
            "simple/simple",
            "1.2.3.4/5678",
            "Uppercase_Is_OK_123",
            "example.com/Uppercase_Is_OK_123",
            &longest,
        ],
    );
    rejects(
        qualified_name,
        &[
            "nospecialchars%^=@",
            "cantendwithadash-",
            "-x-",
            "only/one/slash",
            "Example.com/abc",
            "example_com/abc",
            "example.com/",
            "/simple",
            &"a".repeat(64),
        ],
    );
    accepts(label_value, &["", "simple", "A_b.c-1", &"a".repeat(63)]);
    rejects(
        label_value,
        &["-a", "a-", ".a", "a b", "\\", "ā", &"a".repeat(64)],
    );
}

#[test]
fn path_segments_and_config_keys_are_checked() {
    accepts(
        path_segment,
        &["foo", "sha256:AB@x", ".test", "..test", "é"],
    );
    rejects(path_segment, &[".", "..", "a/b", "a%b"]);
    accepts(config_key, &["a", ".a", "a..b", "KEY_NAME", "key-name"]);
    rejects(
        config_key,
        &["", ".", "..", "..a", "a/b", "a b", &"a".repeat(254)],
    );
}

#[test]
fn errors_have_the_upstream_text() {
    assert_eq!(
        dns1123_subdomain("A"),
        [
            r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]
    );
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(
        dns1123_label("A"),
        [
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ]
    );
    assert_eq!(
        qualified_name("/"),
        [
            "prefix part must be non-empty",
            "name part must be non-empty",
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ]
    );
    assert_eq!(
        dns1123_label(&"a".repeat(64)),
        ["must be no more than 63 characters"]
    );
    assert_eq!(
        label_value(&"a".repeat(64)),
        ["must be no more than 63 bytes"]
    );
}

#[test]
fn a_prefix_may_end_in_a_dash() {
    for rule in [NameRule::Subdomain, NameRule::Label, NameRule::Label1035] {
        assert!(rule.check_prefix("web-").is_empty(), "{rule:?}");
        assert!(!rule.check("web-").is_empty(), "{rule:?}");
        assert!(!rule.check_prefix("-").is_empty(), "{rule:?}");
    }
    assert!(NameRule::PathSegment.check_prefix(".").is_empty());
    assert!(!NameRule::PathSegment.check(".").is_empty());
}
