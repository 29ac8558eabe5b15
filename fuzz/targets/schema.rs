//! Any JSON as a schema and as the objects it judges: `{"schema": …, "object": …, "old": …}`.

#![no_main]

use bareboat_schema::{Schema, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(parsed) = bareboat_wire::json::parse(bytes) else {
        return;
    };
    let part = |name: &str| parsed.value.get(name).cloned().unwrap_or_default();
    let Ok(schema) = Schema::parse(&part("schema")) else {
        return;
    };
    let (mut object, old) = (part("object"), part("old"));
    let _ = schema.validate(&object, Some(&old), Vec::new());
    let _ = schema.coerce(&mut object, Source::Request, None);
    schema.default(&mut object);
    let once = object.clone();
    schema.default(&mut object);
    assert_eq!(object, once, "defaults settle at once");
    let _ = schema.validate(&object, None, Vec::new());
});
