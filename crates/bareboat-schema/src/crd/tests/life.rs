//! Tests of the life of a definition: defaults, updates, storage versions, names, approval,
//! warnings.

use super::*;

#[test]
fn a_definition_gets_its_defaults() {
    let mut crd = gadgets("{type: object}");
    assert_eq!(
        crd.at(&["spec", "names", "singular"]),
        Some(&Value::string("gadget"))
    );
    assert_eq!(
        crd.at(&["spec", "names", "listKind"]),
        Some(&Value::string("GadgetList"))
    );
    assert_eq!(
        crd.at(&["spec", "conversion"]),
        Some(&yaml("{strategy: None}"))
    );
    assert_eq!(crd.at(&["status", "storedVersions"]), Some(&yaml("[v1]")));
    set(
        &mut crd,
        "spec.conversion",
        "{strategy: Webhook, webhook: {clientConfig: {service: {name: s}}}}",
    );
    default(&mut crd);
    assert_eq!(
        crd.at(&[
            "spec",
            "conversion",
            "webhook",
            "clientConfig",
            "service",
            "port"
        ]),
        Some(&Value::Int(443))
    );
}

#[test]
fn an_update_keeps_immutable_fields_and_tolerates_old_errors() {
    let schema = "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object, properties: {b: {type: string}}}}}}";
    let mut old = gadgets(schema);
    let mut new = old.clone();
    assert_eq!(lines(&validate_create(&old)).len(), 1);
    assert_eq!(lines(&validate_update(&new, &old)), [""; 0]);
    set(&mut new, "spec.scope", "Cluster");
    set(&mut new, "spec.group", "other.com");
    let group = r#"spec.group: Invalid value: "other.com": field is immutable"#;
    assert_eq!(lines(&validate_update(&new, &old)), [group]);
    let status = reconcile(&old, &Taken::default(), NOW).unwrap();
    old.make_object().insert("status", status);
    prepare(&mut new, Some(&old));
    let scope = r#"spec.scope: Invalid value: "Cluster": field is immutable"#;
    assert_eq!(lines(&validate_update(&new, &old)), [group, scope]);
}

#[test]
fn storage_versions_are_remembered() {
    let mut old = gadgets("{type: object}");
    let status = reconcile(&old, &Taken::default(), NOW).unwrap();
    old.make_object().insert("status", status);
    let mut new = old.clone();
    set(&mut new, "spec.versions.0.storage", "false");
    set(
        &mut new,
        "spec.versions.1",
        "{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}",
    );
    prepare(&mut new, Some(&old));
    assert_eq!(
        new.at(&["status", "storedVersions"]),
        Some(&yaml("[v1, v2]"))
    );
    assert!(is_condition_true(&new, "Established"));
    assert_eq!(lines(&validate_update(&new, &old)), [""; 0]);
}

#[test]
fn names_in_use_are_refused_and_freed_again() {
    let mut first = gadgets("{type: object}");
    let status = reconcile(&first, &Taken::default(), NOW).unwrap();
    first.make_object().insert("status", status);
    assert_eq!(reconcile(&first, &Taken::default(), "later"), None);

    let mut second = gadgets("{type: object}");
    set(&mut second, "metadata.name", "widgets.example.com");
    set(
        &mut second,
        "spec.names",
        "{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [gd, wd]}",
    );
    let status = reconcile(&second, &Taken::by([&first]), NOW).unwrap();
    second.make_object().insert("status", status);
    assert_eq!(
        second.get("status"),
        Some(&yaml(
            r#"
acceptedNames: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
conditions:
- {type: NamesAccepted, status: "False", reason: ShortNamesConflict, message: '"gd" is already in use', lastTransitionTime: "2024-01-01T00:00:00Z"}
- {type: Established, status: "False", reason: NotAccepted, message: not all names are accepted, lastTransitionTime: "2024-01-01T00:00:00Z"}
storedVersions: [v1]
"#
        ))
    );
    let definition = Definition::parse(&second);
    assert!(!definition.established && !definition.names_accepted);
    let status = reconcile(&second, &Taken::default(), "later").unwrap();
    second.make_object().insert("status", status);
    let definition = Definition::parse(&second);
    assert!(definition.established && definition.names_accepted);
    assert_eq!(definition.accepted.short, ["gd", "wd"]);
    // After establishment, a conflict over a new name keeps the old names.
    set(&mut second, "spec.names.kind", "Gadget");
    let status = reconcile(&second, &Taken::by([&first]), "later").unwrap();
    second.make_object().insert("status", status);
    let definition = Definition::parse(&second);
    assert!(definition.established && !definition.names_accepted);
    assert_eq!(definition.accepted.kind, "Widget");
}

#[test]
fn protected_groups_need_approval() {
    let mut crd = gadgets("{type: object}");
    set(&mut crd, "spec.group", "gadgets.k8s.io");
    set(&mut crd, "metadata.name", "gadgets.gadgets.k8s.io");
    let check = |crd: &Value, errors: usize, truth: &str, reason: &str| {
        assert_eq!(lines(&validate_create(crd)).len(), errors, "{reason}");
        let status = reconcile(crd, &Taken::default(), NOW).unwrap();
        let conditions = status.get("conditions").unwrap().as_array().unwrap();
        let found = conditions.iter().find(|condition| {
            condition.get("type") == Some(&Value::string("KubernetesAPIApprovalPolicyConformant"))
        });
        let found = found.unwrap();
        assert_eq!(found.get("status"), Some(&Value::string(truth)));
        assert_eq!(found.get("reason"), Some(&Value::string(reason)));
    };
    check(&crd, 1, "False", "MissingAnnotation");
    for (text, errors, truth, reason) in [
        (
            "'unapproved, experimental'",
            0,
            "False",
            "UnapprovedAnnotation",
        ),
        (
            "https://github.com/kubernetes/enhancements/pull/1",
            0,
            "True",
            "ApprovedAnnotation",
        ),
        ("yes please", 1, "False", "InvalidAnnotation"),
    ] {
        let annotations = crd
            .make_object()
            .object_mut("metadata")
            .object_mut("annotations");
        annotations.insert(APPROVAL_ANNOTATION, yaml(text));
        check(&crd, errors, truth, reason);
    }
    assert!(is_protected("x.kubernetes.io") && !is_protected("notk8s.io"));
}

#[test]
fn unknown_formats_cause_one_warning() {
    let old = gadgets("{type: object, properties: {a: {type: string, format: odd}}}");
    let new = gadgets(
        "{type: object, properties: {a: {type: string, format: odd}, b: {type: string, format: new}}}",
    );
    assert_eq!(warnings(&old, None), ["unrecognized format \"odd\""]);
    assert_eq!(warnings(&new, Some(&old)), ["unrecognized format \"new\""]);
}

#[test]
fn versions_are_preferred_in_the_order_of_kubernetes() {
    let mut names = [
        "v1", "v10", "v2beta1", "foo", "v1alpha1", "v2", "v11beta2", "v1beta2", "bar",
    ];
    names.sort_by(|a, b| compare_versions(b, a));
    assert_eq!(
        names,
        [
            "v10", "v2", "v1", "v11beta2", "v2beta1", "v1beta2", "v1alpha1", "bar", "foo"
        ]
    );
}

#[test]
fn a_deprecated_version_warning_names_a_better_version() {
    let mut crd = gadgets("{type: object}");
    set(&mut crd, "spec.versions.0.name", "v1beta1");
    set(&mut crd, "spec.versions.0.deprecated", "true");
    set(
        &mut crd,
        "status.acceptedNames",
        "{plural: gadgets, kind: Gadget}",
    );
    let warning = |crd: &Value| Definition::parse(crd).deprecation_warning("v1beta1");
    assert_eq!(
        warning(&crd).unwrap(),
        "example.com/v1beta1 Gadget is deprecated"
    );
    set(
        &mut crd,
        "spec.versions.1",
        "{name: v1, served: true, storage: false}",
    );
    assert_eq!(
        warning(&crd).unwrap(),
        "example.com/v1beta1 Gadget is deprecated; use example.com/v1 Gadget"
    );
    set(&mut crd, "spec.versions.0.deprecationWarning", "go away");
    assert_eq!(warning(&crd).unwrap(), "go away");
}
