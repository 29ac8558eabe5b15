//! Any JSON or YAML as a CustomResourceDefinition: defaulted, validated, compiled, given its status.

use bareboat_schema::{SchemaCache, crd};

pub(crate) fn run(input: &[u8]) -> bool {
    let Ok(parsed) = bareboat_wire::yaml::parse(input) else {
        return false;
    };
    let mut definition = parsed.value;
    if definition.as_object().is_none() {
        return false;
    }
    crd::default(&mut definition);
    crd::prepare(&mut definition, None);
    let errors = crd::validate_create(&definition);
    let _ = crd::validate_update(&definition, &definition);
    let _ = crd::warnings(&definition, None);
    let known = crd::Definition::parse(&definition);
    if !errors.is_empty() {
        return false;
    }
    let cache = SchemaCache::new();
    for version in known.served_versions() {
        let _ = crd::compile(&definition, &version.name, &cache);
    }
    let taken = crd::Taken::default();
    if let Some(status) = crd::reconcile(&definition, &taken, "now") {
        definition.make_object().insert("status", status);
    }
    let again = crd::reconcile(&definition, &taken, "later");
    assert_eq!(again, None, "a status settles at once");
    true
}
