//! Which members a server syncs, if several share them by `spec.shardingName`.

use bareboat_api::{Object, Value};

/// Returns whether a server syncs a member. Members without a name are synced by every server.
pub(super) fn is_own(object: &Object, sharding_name: &str) -> bool {
    let name = object.at(&["spec", "shardingName"]).and_then(Value::as_str);
    name.is_none_or(|name| name.is_empty() || name == sharding_name)
}

#[cfg(test)]
mod tests {
    use super::is_own;
    use bareboat_api::{Object, value};

    #[test]
    fn members_with_another_name_are_left_to_others() {
        let named = |name: &str| {
            let object = value!({"metadata": {"name": "c1"}, "spec": {"shardingName": name}});
            Object::try_from(object).expect("it is an object")
        };
        assert!(is_own(&Object::default(), "a"));
        assert!(is_own(&named(""), "a"));
        assert!(is_own(&named("a"), "a"));
        assert!(!is_own(&named("b"), "a"));
        assert!(!is_own(&named("b"), ""));
    }
}
