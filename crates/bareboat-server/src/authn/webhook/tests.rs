//! Parsing of a webhook's answers.
#![allow(clippy::unwrap_used)]

use super::*;

fn status(status: Value) -> Value {
    value!({"status": (status)})
}

#[test]
fn an_answer_names_a_user_for_audiences_that_were_asked_for() {
    let wanted = ["a", "b"].map(Str::new);
    let user = value!({"username": "ann", "groups": ["dev"]});
    let answer =
        status(value!({"authenticated": true, "user": (user.clone()), "audiences": ["b", "c"]}));
    let found = read(&answer, &wanted).unwrap().unwrap();
    assert_eq!(found.user.name, "ann");
    assert_eq!(found.audiences, Some(vec![Str::new("b")]));
    let other = status(value!({"authenticated": true, "user": (user.clone()), "audiences": ["c"]}));
    assert_eq!(read(&other, &wanted).unwrap(), None);
    // A webhook without support for audiences.
    let none = status(value!({"authenticated": true, "user": (user)}));
    assert_eq!(
        read(&none, &wanted).unwrap().unwrap().audiences,
        Some(wanted.to_vec())
    );
}

#[test]
fn only_a_plain_yes_with_a_name_counts() {
    assert_eq!(read(&Value::Null, &[]).unwrap(), None);
    assert_eq!(
        read(&status(value!({"user": {"username": "ann"}})), &[]).unwrap(),
        None
    );
    assert!(read(&status(value!({"authenticated": true, "user": {}})), &[]).is_err());
    let error = read(&status(value!({"error": "expired"})), &[])
        .err()
        .unwrap();
    assert_eq!(error.0, "expired");
}
