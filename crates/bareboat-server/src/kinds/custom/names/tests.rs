//! Names of custom kinds belong to one definition.

use super::*;
use bareboat_schema::crd;

fn names(plural: &str, kind: &str, short: &str) -> Value {
    value!({"plural": plural, "singular": (kind.to_lowercase()), "kind": kind,
        "listKind": (format!("{kind}List")), "shortNames": [short]})
}

/// Returns whether reconciliation reports a conflict of names.
fn conflicts(held: &HeldNames, definition: &str, wanted: &Value) -> bool {
    let mut crd = value!({"metadata": {"name": definition}, "spec": {"group": "g", "names": (wanted.clone())}});
    let taken = held.taken("g", definition, wanted);
    if let Some(status) = crd::reconcile(&crd, &taken, "now") {
        crd.make_object().insert("status", status);
    }
    !crd::is_condition_true(&crd, "NamesAccepted")
}

#[test]
fn a_name_is_taken_while_another_definition_holds_it() {
    let mut held = HeldNames::default();
    held.hold("g", "foos.g", &names("foos", "Foo", "f"));
    held.hold("other", "bars.other", &names("bars", "Bar", "b"));
    assert!(
        !conflicts(&held, "foos.g", &names("foos", "Foo", "f")),
        "its own"
    );
    assert!(
        !conflicts(&held, "bars.g", &names("bars", "Bar", "b")),
        "of another group"
    );
    assert!(conflicts(&held, "x.g", &names("foos", "X", "x")));
    assert!(conflicts(&held, "x.g", &names("xs", "Foo", "x")));
    assert!(conflicts(&held, "x.g", &names("xs", "X", "foos")));
    // A name held twice stays taken until both holders release it.
    held.hold("g", "bars.g", &names("bars", "Bar", "f"));
    held.release("g", "foos.g");
    assert!(conflicts(&held, "x.g", &names("xs", "X", "f")));
    assert!(!conflicts(&held, "x.g", &names("foos", "Foo", "x")));
    held.hold("g", "bars.g", &names("bars", "Bar", "b"));
    assert!(!conflicts(&held, "x.g", &names("xs", "X", "f")));
    held.release("g", "bars.g");
    assert!(!held.groups.contains_key("g"));
}
