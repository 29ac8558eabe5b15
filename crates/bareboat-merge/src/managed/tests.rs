//! Managed fields: who owns what after a write.

#![allow(clippy::unwrap_used)]
use super::{scale::*, *};
use bareboat_api::value;

fn entry(manager: &str, operation: &str, time: &str, fields: Value) -> Value {
    value!({
        "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": (fields), "manager": (manager),
        "operation": (operation), "time": (time)
    })
}

fn at(second: usize) -> String {
    format!("2024-01-01T00:00:{second:02}Z")
}

#[test]
fn entries_are_sorted_by_operation_time_and_manager() {
    let list = Value::Array(vec![
        entry("a", "Update", &at(2), value!({"f:a": {}})),
        entry("c", "Update", &at(1), value!({"f:a": {}})),
        entry("b", "Update", &at(1), value!({"f:a": {}})),
        entry("z", "Apply", &at(9), value!({"f:a": {}})),
    ]);
    let sorted = Managed::parse(&list).unwrap().into_value().unwrap();
    let names: Vec<&str> = sorted
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry.get("manager")?.as_str())
        .collect();
    assert_eq!(names, ["z", "b", "c", "a"]);
    assert_eq!(Managed::trusted(sorted.clone()).into_value(), Some(sorted));
}

#[test]
fn the_list_of_a_client_must_be_well_formed() {
    let error = |list: Value| Managed::parse(&list).unwrap_err().to_string();
    assert_eq!(
        error(value!(1)),
        "managedFields must be a list, not integer"
    );
    assert_eq!(error(value!([1])), "entry 0 is malformed");
    assert_eq!(
        error(value!([{"manager": "x"}])),
        "operation must be `Apply` or `Update`"
    );
    assert_eq!(
        error(value!([{"operation": "Apply"}])),
        "apiVersion must not be empty"
    );
    let typed =
        |kind: Value| value!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": (kind)}]);
    assert_eq!(
        error(typed(value!(""))),
        "missing fieldsType in managed fields entry 0"
    );
    assert_eq!(
        error(typed(value!("V2"))),
        "invalid fieldsType \"V2\" in managed fields entry 0"
    );
    assert_eq!(
        error(
            value!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "noon"}])
        ),
        "entry 0 is malformed"
    );
    assert_eq!(
        error(
            value!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}}])
        ),
        "error decoding set of entry 0"
    );
    assert!(validate_managed_fields(&value!({"metadata": {"managedFields": [{}]}})).is_err());
    assert!(validate_managed_fields(&value!({"metadata": {}})).is_ok());
}

#[test]
fn of_two_entries_with_one_identity_the_later_counts() {
    let mut other_version = entry("a", "Apply", &at(1), value!({"f:b": {}}));
    other_version
        .make_object()
        .insert("apiVersion", value!("v2"));
    let list = Value::Array(vec![
        entry("a", "Apply", &at(1), value!({"f:a": {}})),
        other_version,
    ]);
    let managed = Managed::parse(&list).unwrap();
    assert_eq!(managed.0.len(), 1);
    assert_eq!(managed.0[0].api_version, "v2");
}

#[test]
fn the_oldest_of_many_updates_are_merged() {
    let make = |count: usize| {
        let entries = (0..count).map(|index| {
            let field = format!("f:f{index:02}");
            entry(
                &format!("u{index:02}"),
                "Update",
                &at(index),
                value!({field: {}}),
            )
        });
        Managed::parse(&entries.collect::<Value>()).unwrap()
    };
    let mut ten = make(10);
    cap_updates(&mut ten);
    assert_eq!(ten, make(10));

    let mut thirteen = make(13);
    cap_updates(&mut thirteen);
    assert_eq!(thirteen.0.len(), 10);
    let ancient = &thirteen.0[0];
    assert_eq!(ancient.manager, "ancient-changes");
    assert_eq!(ancient.time.as_deref(), Some(&*at(3)));
    assert_eq!(ancient.fields.paths(), [".f00", ".f01", ".f02", ".f03"]);

    // The next one joins the same bucket.
    let late = entry("late", "Update", &at(50), value!({"f:late": {}}));
    thirteen
        .0
        .extend(Managed::parse(&Value::Array(vec![late])).unwrap().0);
    cap_updates(&mut thirteen);
    assert_eq!(thirteen.0.len(), 10);
    let ancients: Vec<&Entry> = thirteen
        .0
        .iter()
        .filter(|entry| entry.manager == "ancient-changes")
        .collect();
    assert_eq!(ancients.len(), 1);
    assert_eq!(ancients[0].fields.len(), 5);
}

#[test]
fn updates_of_different_versions_are_not_merged() {
    let entries = (0..12).map(|index| {
        let mut entry = entry(
            &format!("u{index:02}"),
            "Update",
            &at(index),
            value!({"f:a": {}}),
        );
        entry
            .make_object()
            .insert("apiVersion", Value::from(format!("v{index}")));
        entry
    });
    let mut managed = Managed::parse(&entries.collect::<Value>()).unwrap();
    cap_updates(&mut managed);
    assert_eq!(managed.0.len(), 12);
}

#[test]
fn a_change_of_times_only_is_no_change() {
    let object = |time: &str, a: i64| {
        let list = Value::Array(vec![entry("m", "Apply", time, value!({"f:a": {}}))]);
        value!({"metadata": {"name": "n", "managedFields": (list)}, "a": (a)})
    };
    let mut new = object(&at(2), 1);
    assert!(keep_times(&object(&at(1), 1), &mut new));
    assert_eq!(new, object(&at(1), 1));

    let mut new = object(&at(2), 2);
    assert!(!keep_times(&object(&at(1), 1), &mut new));
    assert_eq!(new, object(&at(2), 2));
}

#[test]
fn the_scale_subresource_reads_and_sets_the_owner_of_replicas() {
    let paths = ReplicasPaths::new()
        .with("v1", Some(&["spec", "size"]))
        .with("v2", None);
    let replicas = || value!({"f:spec": {"f:size": {}}});
    let list = Value::Array(vec![
        entry(
            "applier",
            "Apply",
            &at(1),
            value!({"f:spec": {"f:size": {}, "f:x": {}}}),
        ),
        entry("other", "Update", &at(1), value!({"f:spec": {"f:x": {}}})),
        entry("updater", "Update", &at(2), replicas()),
    ]);
    let parent = || value!({"metadata": {"managedFields": (list.clone())}});

    let mut scale = value!({"metadata": {"name": "s"}});
    to_scale(&parent(), &mut scale, &paths);
    let seen = Managed::parse(of(&scale).unwrap()).unwrap();
    let names: Vec<&str> = seen.0.iter().map(|entry| &*entry.manager).collect();
    assert_eq!(names, ["applier", "updater"]);
    assert!(
        seen.0
            .iter()
            .all(|entry| entry.api_version == "autoscaling/v1"
                && entry.fields.has_names(&["spec", "replicas"]))
    );

    // Without a change all managers keep their fields.
    let mut same = parent();
    to_parent(&scale, &mut same, "v1", &paths);
    assert_eq!(same, parent());

    // One manager scales: the others lose the field.
    let taken = value!({
        "apiVersion": "autoscaling/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "manager": "hpa", "operation": "Update", "subresource": "scale", "time": "2024-01-01T00:00:09Z"
    });
    let scaled = value!({"metadata": {"managedFields": [(taken)]}});
    let mut after = parent();
    to_parent(&scaled, &mut after, "v1", &paths);
    let entries = Managed::parse(of(&after).unwrap()).unwrap().0;
    let shown: Vec<String> = entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {:?}",
                entry.manager,
                entry.api_version,
                entry.fields.paths()
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"applier v1 [".spec.x"]"#,
            r#"hpa v1 [".spec.size"]"#,
            r#"other v1 [".spec.x"]"#
        ]
    );
}
