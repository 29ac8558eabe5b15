//! Any JSON or YAML as a CustomResourceDefinition: defaulted, judged, compiled, given its status.

#![no_main]

use bareboat_schema::{SchemaCache, crd};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(parsed) = bareboat_wire::yaml::parse(bytes) else {
        return;
    };
    let mut definition = parsed.value;
    if definition.as_object().is_none() {
        return;
    }
    crd::default(&mut definition);
    crd::prepare(&mut definition, None);
    let errors = crd::validate_create(&definition);
    let _ = crd::validate_update(&definition, &definition);
    let _ = crd::warnings(&definition, None);
    let known = crd::Definition::parse(&definition);
    if !errors.is_empty() {
        return;
    }
    let cache = SchemaCache::new();
    for version in known.served_versions() {
        let _ = crd::compile(&definition, &version.name, &cache);
    }
    let taken = crd::Taken::default();
    if let Some(status) = crd::reconcile(&definition, &taken, "now") {
        definition.make_object().insert("status", status);
    }
    assert_eq!(crd::reconcile(&definition, &taken, "later"), None, "a status settles at once");
});
