//! Values: access, comparison, and the way to and from Rust types.

#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn prints_members_in_the_order_of_their_keys() {
    let built = value!({"b": 1, "a": [true, null, 1.5], "c": {"x": "y\n\"\u{1}"}});
    assert_eq!(
        built.to_string(),
        r#"{"a":[true,null,1.5],"b":1,"c":{"x":"y\n\"\u0001"}}"#
    );
}

#[test]
fn integers_and_floats_stay_apart_but_compare_by_number() {
    assert_eq!(Value::Int(1), Value::Float(1.0));
    assert_ne!(Value::Int(1), Value::Float(1.5));
    assert_eq!(Value::Float(1.0).to_string(), "1");
    assert_eq!(Value::Float(1e21).to_string(), "1e+21");
    assert_eq!(Value::Float(1.5e-7).to_string(), "1.5e-7");
    assert_eq!(Value::Float(123456.75).to_string(), "123456.75");
    // The shortest digits, as Go prints them; the exact value ends in 792.
    assert_eq!(
        Value::Float(9.268_547_758_036_018e17).to_string(),
        "926854775803601800"
    );
    assert_eq!(Value::Float(-0.000001).to_string(), "-0.000001");
}

#[test]
fn the_later_of_two_members_with_one_key_stays() {
    let map = Map::from_unsorted(vec![
        ("b".into(), 1.into()),
        ("a".into(), 2.into()),
        ("b".into(), 3.into()),
    ]);
    assert_eq!(Value::Object(map), value!({"a": 2, "b": 3}));
}

#[test]
fn typed_structs_convert_both_ways() {
    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        image: String,
        replicas: Option<i32>,
        tags: Vec<String>,
        mode: Mode,
    }
    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    enum Mode {
        Fast,
        Slow { by: u8 },
    }
    let spec = Spec {
        image: "a".into(),
        replicas: Some(3),
        tags: vec!["x".into()],
        mode: Mode::Slow { by: 2 },
    };
    let value = to_value(&spec).unwrap();
    assert_eq!(
        value,
        value!({"image": "a", "replicas": 3, "tags": ["x"], "mode": {"Slow": {"by": 2}}})
    );
    assert_eq!(from_value::<Spec>(&value).unwrap(), spec);
    assert_eq!(from_value::<Mode>(&value!("Fast")).unwrap(), Mode::Fast);
    assert!(from_value::<Spec>(&value!({"image": 3})).is_err());
}
