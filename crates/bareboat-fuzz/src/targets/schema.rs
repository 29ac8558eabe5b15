//! Any JSON as a schema and as the objects it validates: `{"schema": …, "object": …, "old": …}`.

use bareboat_schema::{Schema, Source};

pub(crate) fn run(input: &[u8]) -> bool {
    let Ok(parsed) = bareboat_wire::json::parse(input) else {
        return false;
    };
    let part = |name: &str| parsed.value.get(name).cloned().unwrap_or_default();
    let Ok(schema) = Schema::parse(&part("schema")) else {
        return false;
    };
    let (mut object, old) = (part("object"), part("old"));
    let _ = schema.validate(&object, Some(&old), Vec::new());
    let _ = schema.coerce(&mut object, Source::Request, None);
    let _ = schema.default(&mut object);
    let once = object.clone();
    let _ = schema.default(&mut object);
    assert_eq!(object, once, "defaults settle at once");
    let _ = schema.validate(&object, None, Vec::new());
    true
}
