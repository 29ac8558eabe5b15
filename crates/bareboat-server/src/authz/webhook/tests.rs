//! Parsing of a webhook's answers.

use super::*;

#[test]
fn a_denial_wins_and_nothing_else_but_true_allows() {
    let read = |status: Value| read(&value!({"status": (status)}));
    assert_eq!(
        read(value!({"allowed": true, "reason": "r"})),
        Decision::Allow("r".to_owned())
    );
    assert_eq!(
        read(value!({"allowed": true, "denied": true})),
        Decision::Deny(String::new())
    );
    assert_eq!(
        read(value!({"denied": true})),
        Decision::Deny(String::new())
    );
    for status in [value!({"allowed": "true"}), value!({}), Value::Null] {
        assert_eq!(read(status), Decision::NoOpinion(String::new()));
    }
}
