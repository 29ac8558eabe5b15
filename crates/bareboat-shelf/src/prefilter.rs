//! A quick look at the bytes of a body: whether it can match at all.
//!
//! A field that equals a text has that text somewhere in the body, if no character of it is escaped in JSON. Looking for it is much
//! faster than following paths.

use crate::fields::{FieldOperator, FieldRequirement};
use crate::predicate::{Predicate, Term};
use memchr::memmem::Finder;

/// Texts that a body must contain: one of each group.
#[derive(Debug, Default)]
pub(crate) struct Prefilter(Vec<Vec<Finder<'static>>>);

impl Prefilter {
    /// Finds what bodies must contain for a condition to hold.
    pub(crate) fn of(predicate: &Predicate) -> Prefilter {
        let mut groups = Vec::new();
        collect(predicate, &mut groups);
        Prefilter(groups)
    }

    /// Returns whether a body may match.
    pub(crate) fn passes(&self, body: &[u8]) -> bool {
        let mut groups = self.0.iter();
        groups.all(|group| group.iter().any(|text| text.find(body).is_some()))
    }
}

fn collect(predicate: &Predicate, groups: &mut Vec<Vec<Finder<'static>>>) {
    match predicate {
        Predicate::All(parts) => parts.iter().for_each(|part| collect(part, groups)),
        Predicate::Term(Term::Field(FieldRequirement {
            operator: FieldOperator::In,
            values,
            ..
        })) if values.iter().all(|value| is_plain(value)) => {
            let texts = values.iter();
            groups.push(
                texts
                    .map(|text| Finder::new(text.as_bytes()).into_owned())
                    .collect(),
            );
        }
        _ => {}
    }
}

/// Returns whether a text is printed as it is.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./:@=+,".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::Prefilter;
    use crate::fields::parse_field_selector;
    use crate::predicate::{Predicate, Term};
    use bareboat_api::value;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c]{0,2}", "[\"\\\\<é\u{1}/ ]{0,2}", "[0-9]{1,2}"]
    }

    proptest! {
        #[test]
        fn what_does_not_pass_does_not_match(
            left in text(), right in text(), number in 0..20_i64,
            wanted in prop::collection::vec((0..3_usize, text()), 1..3),
        ) {
            let object = value!({"a": (left.as_str()), "b": [{"c": (right.as_str())}], "n": number});
            let body = object.to_json();
            let mut all = Predicate::default();
            let mut holds = true;
            for (path, text) in wanted {
                let mut parsed = parse_field_selector(["a=x", "b[].c=x", "n=x"][path]).expect("it parses");
                parsed[0].values = vec![text];
                holds &= parsed[0].matches_body(&body);
                all.and(Predicate::Term(Term::Field(parsed.remove(0))));
            }
            prop_assert!(!holds || Prefilter::of(&all).passes(&body));
        }
    }

    #[test]
    fn a_body_without_the_text_does_not_pass() {
        let term = |text: &str| {
            let mut parsed = parse_field_selector(text).expect("it parses");
            Predicate::Term(Term::Field(parsed.remove(0)))
        };
        let passes = |predicate: &Predicate| Prefilter::of(predicate).passes(br#"{"a":"web"}"#);
        assert!(passes(&term("a=web")));
        assert!(!passes(&term("a=db")));
        assert!(passes(&term("a in (db,web)")));
        assert!(passes(&term("a!=db")));
        assert!(!passes(&Predicate::All(vec![term("a=web"), term("a=db")])));
        assert!(passes(&Predicate::Any(vec![term("a=web"), term("a=db")])));
    }
}
