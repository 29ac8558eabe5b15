//! Tests that patterns match as in Go, are rejected as in Go, and stay within their limits.

#![allow(clippy::unwrap_used)]

use super::compiled::Compiled;
use super::parse::parse;
use super::search::{Steps, TooManySteps};
use super::store::Store;
use super::*;

/// Matches both with our own program and with the faster form.
fn matches(pattern: &str, text: &str) -> bool {
    let compiled = Compiled::new(pattern, &parse(pattern).unwrap());
    let mut steps = Steps::unlimited();
    let slow = compiled.is_match(text, &mut steps).unwrap();
    for _ in 0..40 {
        assert_eq!(
            compiled.is_match(text, &mut steps),
            Ok(slow),
            "{pattern} on {text:?}"
        );
    }
    slow
}

#[test]
fn patterns_match_as_in_go() {
    for (pattern, text, expected) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "١٢", false),
        (r"^\w+$", "é", false),
        (r"^[\w.-]+$", "a-b.c", true),
        (r"^[^[]+$", "a[", false),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^[[:^alpha:]]+$", "12", true),
        (r"^a{2}$", "aa", true),
        (r"^a{2,3}$", "aaaa", false),
        (r"^a{2,}$", "aaaa", true),
        (r"^a{0}$", "", true),
        (r"^a{,2}$", "a{,2}", true),
        (r"^a{01}$", "a{01}", true),
        (r"^{x}$", "{x}", true),
        (r"\Qa.b\E", "a.b", true),
        (r"\Qa.b\E", "axb", false),
        (r"^\Qab\E+$", "abbb", true),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
        (r"^[]a]+$", "]a", true),
        (r"^[a&&b]+$", "a&b", true),
        (r"(?i)^ABC$", "abc", true),
        (r"(?i)^[^x]$", "X", false),
        (r"(?i)^\w$", "ſ", true),
        (r"^(?i:a)b$", "Ab", true),
        (r"^(?i:a)b$", "AB", false),
        (r"^a(?i)*$", "aaa", true),
        (r"^a|b(?i)c$", "bC", true),
        (r"^\x41\x{42}\103$", "ABC", true),
        (r"^[+\-*/]$", "-", true),
        (r"\bfoo\b", "a foo b", true),
        (r"\Boo", "foo", true),
        (r"^\<a\>$", "<a>", true),
        (r"^\ \-\_\/\%$", " -_/%", true),
        (r"^[\<]$", "<", true),
        (r"^[+--]+$", "+,-", true),
        (r"^[+--]$", ".", false),
        (r"^[--/]+$", "-./", true),
        (r"^[a\-z]+$", "a-z", true),
        (r"^[a\-z]+$", "b", false),
        (r"^[\x41-\x{43}\104]+$", "ABCD", true),
        (r"^[\d-]+$", "1-2", true),
        (r"^[\pL-]+$", "é-", true),
        (r"^[[:word:]-]+$", "a_-", true),
        (r"^[^\s]+$", "a b", false),
        (r"^[ -~]+$", "a b~", true),
        (r"^[#a b]+$", "# a", true),
        (r"^x$", "x\n", false),
        (r"(?m)^x$", "x\ny", true),
        (r"^.$", "\n", false),
        (r"(?s)^.$", "\n", true),
        (r"^\p{Greek}\P{Greek}\p{^Greek}$", "αab", true),
        (r"^\p{Letter}\p{lu}$", "aB", true),
        (r"^(?P<n>a)(?P<n>b)(?<m>c)$", "abc", true),
        (r"^(|a)*b$", "aab", true),
        (r"^(?:a*)*$", "b", false),
        (r"^(\p{L}){0,500}$", &"é".repeat(500), true),
        (r"^(\p{L}){0,500}$", &"é".repeat(501), false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn patterns_go_refuses_are_refused_with_its_message() {
    for (pattern, why, part) in [
        ("[", "missing closing ]", "["),
        ("[a", "missing closing ]", "[a"),
        ("[]", "missing closing ]", "[]"),
        (r"[\]", "missing closing ]", r"[\]"),
        ("[[:alpha:", "missing closing ]", "[[:alpha:"),
        ("(", "missing closing )", "("),
        ("a)", "unexpected )", "a)"),
        ("*", "missing argument to repetition operator", "*"),
        ("a|*", "missing argument to repetition operator", "*"),
        ("(?i)*", "missing argument to repetition operator", "*"),
        ("a**", "invalid nested repetition operator", "**"),
        ("a???", "invalid nested repetition operator", "???"),
        ("a{1}?{2}", "invalid nested repetition operator", "{1}?{2}"),
        ("a{1001}", "invalid repeat count", "{1001}"),
        ("a{2,1}", "invalid repeat count", "{2,1}"),
        ("(a{500}){3}", "invalid repeat count", "{3}"),
        (r"\k", "invalid escape sequence", r"\k"),
        (r"\8", "invalid escape sequence", r"\8"),
        (r"\1", "invalid escape sequence", r"\1"),
        (r"\C", "invalid escape sequence", r"\C"),
        (r"\E", "invalid escape sequence", r"\E"),
        (r"\é", "invalid escape sequence", r"\é"),
        (r"[\b]", "invalid escape sequence", r"\b"),
        (r"[a-\d]", "invalid escape sequence", r"\d"),
        (r"\x{110000}", "invalid escape sequence", r"\x{110000"),
        (r"\x{}", "invalid escape sequence", r"\x{}"),
        (r"\x{g}", "invalid escape sequence", r"\x{g"),
        (r"\xg", "invalid escape sequence", r"\xg"),
        (r"\", "trailing backslash at end of expression", ""),
        ("[z-a]", "invalid character class range", "z-a"),
        ("[[:foo:]]", "invalid character class range", "[:foo:]"),
        (r"\p{Emoji}", "invalid character class range", r"\p{Emoji}"),
        (
            r"\p{sc=Greek}",
            "invalid character class range",
            r"\p{sc=Greek}",
        ),
        (r"[\p{", "invalid character class range", r"\p{"),
        (r"\pé", "invalid character class range", r"\pé"),
        ("(?P<n", "invalid named capture", "(?P<n"),
        ("(?P<a-b>x)", "invalid named capture", "(?P<a-b>"),
        ("(?=a)", "invalid or unsupported Perl syntax", "(?="),
        ("(?x)a", "invalid or unsupported Perl syntax", "(?x"),
        ("(?u)", "invalid or unsupported Perl syntax", "(?u"),
        ("(?R)", "invalid or unsupported Perl syntax", "(?R"),
        ("(?i-:a)", "invalid or unsupported Perl syntax", "(?i-:"),
        ("(?--i)", "invalid or unsupported Perl syntax", "(?--"),
    ] {
        let expected = format!("error parsing regexp: {why}: `{part}`");
        assert_eq!(check_pattern(pattern), Err(expected), "{pattern}");
    }
}

#[test]
fn matches_are_found_where_go_finds_them() {
    for (pattern, text, expected) in [
        ("a|ab", "xab", Some((1, 2))),
        ("ab|a", "xab", Some((1, 3))),
        ("a*", "baa", Some((0, 0))),
        ("a+?", "baa", Some((1, 2))),
        ("(?U)a+", "baa", Some((1, 2))),
        ("(?U)a+?", "baa", Some((1, 3))),
        ("b{1,2}", "abbb", Some((1, 3))),
        ("c", "ab", None),
    ] {
        let compiled = Compiled::new(pattern, &parse(pattern).unwrap());
        for _ in 0..40 {
            let found = compiled.find_at(text, 0, &mut Steps::unlimited());
            assert_eq!(found, Ok(expected), "{pattern}");
        }
    }
}

#[test]
fn the_size_of_a_pattern_does_not_depend_on_the_size_of_its_classes() {
    let letters = check_pattern(r"\pL{200}").unwrap();
    let ascii = check_pattern("[a-z]{200}").unwrap();
    assert_eq!(letters.instructions, ascii.instructions);
    let twice = check_pattern(r"\pL{400}").unwrap();
    assert!(twice.instructions <= 2 * letters.instructions);
    let compiled = Compiled::new(r"\pL{200}", &parse(r"\pL{200}").unwrap());
    assert!(compiled.bytes() < 8 << 10, "{}", compiled.bytes());
}

#[test]
fn patterns_that_are_too_large_are_refused_without_being_compiled() {
    let too_large = |pattern: &str| {
        let error = check_pattern(pattern).unwrap_err();
        assert!(
            error.starts_with("error parsing regexp: expression too large"),
            "{error}"
        );
    };
    too_large(&"(a{100}){10}".repeat(200));
    too_large(&"a".repeat(400_000));
    too_large(&r"[\pL0]".repeat(1000));
    too_large(&r"[^\pL]".repeat(1000));
    too_large(&r"(?i)[\x{41}-\x{1E900}]".repeat(100));
    let nested = format!("{}a{}", "(".repeat(1001), ")".repeat(1001));
    let error = check_pattern(&nested).unwrap_err();
    assert!(error.contains("expression nests too deeply"), "{error}");
    let nested = format!("{}a{}", "(?:".repeat(999), "b)*".repeat(999));
    let error = check_pattern(&nested).unwrap_err();
    assert!(error.contains("expression nests too deeply"), "{error}");
    assert!(matches(
        &format!("{}a{}", "(".repeat(300), "b)*".repeat(300)),
        "ab"
    ));
}

#[test]
fn a_search_that_takes_too_many_steps_ends() {
    let pattern = "(a?){500}b";
    let compiled = Compiled::new(pattern, &parse(pattern).unwrap());
    let count = |length: usize| {
        let mut steps = Steps::limited(1 << 30);
        let text = "a".repeat(length);
        assert_eq!(compiled.is_match(&text, &mut steps), Ok(false));
        (1 << 30) - steps.left()
    };
    let (once, twice) = (count(10_000), count(20_000));
    assert!(once > 1_000_000, "{once}");
    assert!(twice <= 2 * once + once / 10, "{once} and {twice}");
    let mut few = Steps::limited(1000);
    assert_eq!(
        compiled.is_match(&"a".repeat(10_000), &mut few),
        Err(TooManySteps)
    );
}

#[test]
fn the_store_stays_below_its_limit_and_keeps_used_patterns() {
    let compile = |pattern: &str| Arc::new(Compiled::new(pattern, &parse(pattern).unwrap()));
    let mut store = Store::new(64 << 10);
    store.put(compile("hot"));
    for number in 0..1000 {
        store.put(compile(&format!("[a-z]{{{number}}}")));
        assert!(store.bytes() <= 64 << 10);
        assert!(store.get("hot").is_some(), "after {number}");
    }
    assert!(store.get("[a-z]{0}").is_none());
}

#[test]
fn a_dropped_pattern_is_compiled_again() {
    let pattern = GoPattern::new("^a+$");
    assert_eq!(pattern.matches("aa"), Ok(true));
    *pattern.compiled.write() = Weak::new();
    assert_eq!(pattern.matches("b"), Ok(false));
    assert!(GoPattern::new("(").matches("").is_err());
}

#[test]
fn idle_patterns_are_dropped() {
    let compile = |pattern: &str| Arc::new(Compiled::new(pattern, &parse(pattern).unwrap()));
    let mut store = Store::new(64 << 10);
    store.put(compile("hot"));
    store.put(compile("cold"));
    store.get("hot");
    store.forget_idle();
    assert!(store.get("cold").is_none());
    assert!(store.get("hot").is_some());
    store.forget_idle();
    store.forget_idle();
    assert!(store.get("hot").is_none());
    assert_eq!(store.bytes(), 0);
}

/// Go 1.26's answers for patterns of random parts: its error, or the position of the first match.
#[test]
fn random_patterns_behave_as_in_go() {
    for line in include_str!("../../../tests/data/go-regexp.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let pattern = row["pattern"].as_str().unwrap();
        let text = row["text"].as_str().unwrap();
        let tree = match (parse(pattern), row["error"].as_str().unwrap()) {
            (Ok(tree), "") => tree,
            (Err(error), expected) => {
                assert_eq!(error, expected, "{pattern:?}");
                continue;
            }
            (Ok(_), expected) => panic!("{pattern:?} is accepted, Go says: {expected}"),
        };
        let number = |at: usize| row["found"][at].as_u64().map(|found| found as usize);
        let expected = number(0).zip(number(1));
        let compiled = Compiled::new(pattern, &tree);
        // After some rounds the faster form is used.
        for _ in 0..40 {
            let found = compiled.find_at(text, 0, &mut Steps::unlimited());
            assert_eq!(found, Ok(expected), "{pattern:?} on {text:?}");
        }
        let found = compiled.is_match(text, &mut Steps::unlimited());
        assert_eq!(found, Ok(expected.is_some()), "{pattern:?} on {text:?}");
    }
}
