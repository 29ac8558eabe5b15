//! Label selectors: syntax, errors, and what they match.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::value;
use proptest::prelude::*;

fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
    let selector = Selector::parse(selector).unwrap();
    selector.matches(|key| {
        labels
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    })
}

#[test]
fn selectors_match_the_documented_objects() {
    let labels = [("a", "1"), ("b", "x"), ("example.com/c", "")];
    for yes in [
        "",
        "a",
        "a=1",
        "a==1",
        "a = 1",
        "b!=y",
        "z!=y",
        "b in (x,y)",
        "b in ( x , y )",
        "b notin (y)",
        "z notin (y)",
        "!z",
        "a>0",
        "a<2",
        "a=1,b=x,!z",
        "example.com/c",
        "example.com/c=",
        "b in (,x)",
        "example.com/c in ()",
        "a=1,example.com/c=",
    ] {
        assert!(matches(yes, &labels), "{yes}");
    }
    for no in [
        "a=2",
        "z",
        "b!=x",
        "b in (y)",
        "b notin (x,y)",
        "!a",
        "a>1",
        "a<1",
        "b>0",
        "z>0",
        "a=1,b=y",
        "z in (x)",
        "a=",
    ] {
        assert!(!matches(no, &labels), "{no}");
    }
    assert!(matches("in in (in,notin)", &[("in", "notin")]));
    assert!(matches("notin=in", &[("notin", "in")]));
}

#[test]
fn errors_have_the_upstream_text() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            Selector::parse(text).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    };
    check(
        "=",
        "found '=', expected: !, identifier, or 'end of string'",
    );
    check("a,", "found '', expected: identifier after ','");
    check("a=b c", "found 'c', expected: ',' or 'end of string'");
    check(
        "a b",
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    );
    check(
        "a in b",
        "unable to parse requirement: found 'b' expected: '('",
    );
    check(
        "a in (b",
        "unable to parse requirement: found '', expected: ',' or ')'",
    );
    check(
        "a==(",
        "unable to parse requirement: found '(', expected: identifier",
    );
    check(
        "!",
        "unable to parse requirement: found '', expected: identifier",
    );
    check(
        "a>x",
        r#"unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#,
    );
    let fault = Selector::parse("-a=b").unwrap_err().to_string();
    assert!(
        fault.starts_with(
            r#"unable to parse requirement: <nil>: Invalid value: "-a": name part must"#
        ),
        "{fault}"
    );
    let fault = Selector::parse("a=-b").unwrap_err().to_string();
    assert!(
        fault.starts_with(
            r#"unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must"#
        ),
        "{fault}"
    );
}

#[test]
fn selectors_print_sorted_and_read_back() {
    for (text, printed) in [
        ("z=1, a in (y,x),!b", "a in (x,y),!b,z=1"),
        (
            "a==1,b!=2,c>3,d<4,e,f notin (1)",
            "a==1,b!=2,c>3,d<4,e,f notin (1)",
        ),
        ("", ""),
    ] {
        let selector = Selector::parse(text).unwrap();
        assert_eq!(selector.to_string(), printed);
        assert_eq!(Selector::parse(printed).unwrap(), selector);
    }
}

#[test]
fn equality_terms_are_the_terms_an_index_can_answer() {
    let selector = Selector::parse("a=1,b==2,c in (3),d in (4,5),e!=6,f").unwrap();
    let terms: Vec<_> = selector.equality_terms().collect();
    assert_eq!(terms, [("a", "1"), ("b", "2"), ("c", "3")]);
    assert!(Selector::parse(" ").unwrap().is_everything());
    assert!(!selector.is_everything());
}

#[test]
fn objects_become_selectors() {
    let selector = Selector::from_object(&value!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }))
    .unwrap();
    assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
    assert!(Selector::from_object(&Value::Null).unwrap().is_nothing());
    assert!(!Selector::nothing().matches(|_| None));
    assert!(
        Selector::from_object(&Value::object())
            .unwrap()
            .is_everything()
    );
    let fault =
        Selector::from_object(&value!({"matchExpressions": [{"key": "a", "operator": "Is"}]}));
    assert_eq!(
        fault.unwrap_err().to_string(),
        r#""Is" is not a valid label selector operator"#
    );
}

#[test]
fn invalid_selector_objects_are_explained() {
    let wrong = validate_selector(
        &value!({"matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["b"]},
            {"key": "a", "operator": "="},
        ]}),
        &FieldPath::new("spec").child("selector"),
    );
    let texts: Vec<String> = wrong.iter().map(FieldError::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            r#"spec.selector.matchExpressions[2].operator: Invalid value: "=": not a valid selector operator"#,
        ]
    );
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic_the_parser(text in "[a-z!=<>(), \\-é]{0,30}") {
        if let Ok(selector) = Selector::parse(&text) {
            let printed = selector.to_string();
            prop_assert_eq!(Selector::parse(&printed).map(|again| again.to_string()), Ok(printed));
        }
    }
}
