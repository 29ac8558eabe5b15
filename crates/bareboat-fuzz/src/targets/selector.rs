//! Any text as a label and a field selector: what is accepted is printed, and reads the same again.

use bareboat_api::{Value, fields, labels};

pub(crate) fn run(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let mut accepted = false;
    if let Ok(selector) = labels::Selector::parse(text) {
        let printed = selector.to_string();
        let again = labels::Selector::parse(&printed);
        let again = again.unwrap_or_else(|error| panic!("{printed:?}: {error}"));
        assert_eq!(again.to_string(), printed);
        let value = |key: &str| key.len().is_multiple_of(2).then_some("a");
        assert_eq!(again.matches(value), selector.matches(value), "{printed:?}");
        accepted = true;
    }
    if let Ok(selector) = fields::Selector::parse(text) {
        let printed = selector.to_string();
        let again = fields::Selector::parse(&printed);
        let again = again.unwrap_or_else(|error| panic!("{printed:?}: {error}"));
        assert_eq!(again.terms().len(), selector.terms().len(), "{printed:?}");
        accepted = true;
    }
    if let Ok(parsed) = bareboat_wire::json::parse(input) {
        let path = bareboat_api::FieldPath::new("selector");
        let errors = labels::validate_selector(&parsed.value, &path);
        let selector = labels::Selector::from_object(&parsed.value);
        if let (Value::Object(_), true, Err(error)) = (&parsed.value, errors.is_empty(), selector) {
            panic!("valid, but {error}");
        }
    }
    accepted
}
