//! Device selectors: what they may use, and what they select.

use super::{SELECTOR_COST, compile_device_selector};

#[test]
fn selectors_read_the_device() {
    for (expression, wanted) in [
        ("device.driver == 'gpu.example.com'", ""),
        ("device.attributes['gpu.example.com'].large", ""),
        (
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('8Gi')) >= 0",
            "",
        ),
        (
            "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.a == 1 && gpu.b)",
            "",
        ),
        (
            "device.allowMultipleAllocations || 'a' in device.attributes",
            "",
        ),
        (
            "device.attributes['a'].version.isLessThan(semver('1.0.0'))",
            "",
        ),
        (
            "device.driver",
            "must evaluate to bool or the unknown type, not string",
        ),
        ("[device.attributes['a'].b][0]", ""),
        ("true ? device.attributes['a'].b : true", ""),
        ("device.attributes['a'].?b.orValue(true)", ""),
        ("device.attributes[?'a'].orValue({})['b']", ""),
        ("!dyn(true)", ""),
        (
            "dyn(true)",
            "must evaluate to bool or the unknown type, not dyn",
        ),
        (
            "device.attributes['a'].b.c",
            "must evaluate to bool or the unknown type, not dyn",
        ),
        (
            "[][0]",
            "must evaluate to bool or the unknown type, not dyn",
        ),
        (
            "device.attributes['a']",
            "not map(string, google.protobuf.Any)",
        ),
        (
            "device.attributes['a'].?b",
            "not optional_type(google.protobuf.Any)",
        ),
        (
            "[device.attributes['a'].b, true][0]",
            "expected type 'any' but found 'bool'",
        ),
        ("device.nothing", "undefined field 'nothing'"),
        ("object.a", "undeclared reference to 'object'"),
        (
            "1 +",
            "compilation failed: ERROR: <input>:1:4: Syntax error",
        ),
    ] {
        match (compile_device_selector(expression), wanted) {
            (Ok(selector), "") => {
                assert!(selector.max_cost <= SELECTOR_COST, "{expression}");
            }
            (Ok(_), wanted) => panic!("{expression} compiled; wanted: {wanted}"),
            (Err(refused), wanted) => {
                let refused = refused.to_string();
                assert!(
                    !wanted.is_empty() && refused.contains(wanted),
                    "{expression}: {refused}"
                );
            }
        }
    }
}

#[test]
fn the_estimate_shows_that_a_selector_is_too_expensive() {
    let costly = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a + b == c + d))))";
    let selector = compile_device_selector(costly).unwrap_or_else(|refused| panic!("{refused}"));
    assert!(selector.max_cost > SELECTOR_COST);
}
