//! Ends streams of service accounts when the account, or an object that a token depends on, is deleted. New requests
//! are refused in `authenticate`.

use bareboat_api::kind::User;
use bareboat_server::{Revocations, ServerBuilder};
use bareboat_storage::{Event, EventKind, Observer, Snapshot};
use bareboat_tokens::account::USER_PREFIX;
use std::sync::Arc;

/// The kind of an object that tokens depend on: deleting the object revokes them.
#[derive(Clone, Copy)]
enum Dependency {
    Account,
    Secret,
    Pod,
    Node,
}

/// Follows everything that tokens depend on.
pub(super) fn observe(mut builder: ServerBuilder) -> ServerBuilder {
    for (resource, dependency) in [
        ("core/serviceaccounts", Dependency::Account),
        ("core/secrets", Dependency::Secret),
        ("core/pods", Dependency::Pod),
        ("core/nodes", Dependency::Node),
    ] {
        let observer = Dependents {
            dependency,
            revocations: builder.revocations().clone(),
        };
        builder = builder.observe(resource, Arc::new(observer));
    }
    builder
}

struct Dependents {
    dependency: Dependency,
    revocations: Revocations,
}

impl Observer for Dependents {
    fn reset(&self, _snapshot: &Snapshot) {
        self.revocations.everything_changed();
    }

    fn changed(&self, event: &Arc<Event>) {
        // A secret that is changed may no longer hold its token.
        let matters = match self.dependency {
            Dependency::Secret => event.kind != EventKind::Added,
            _ => event.kind == EventKind::Deleted,
        };
        if !matters || self.revocations.is_idle() {
            return;
        }
        let (dependency, key) = (self.dependency, event.key().to_owned());
        self.revocations
            .changed_for(move |user| depends(user, dependency, &key));
    }
}

/// Whether the token of a user may depend on an object.
fn depends(user: &User, dependency: Dependency, key: &str) -> bool {
    let Some((namespace, account)) = user
        .name
        .strip_prefix(USER_PREFIX)
        .and_then(|name| name.split_once(':'))
    else {
        return false;
    };
    let bound = |kind: &str, name: &str| {
        let key = format!("authentication.kubernetes.io/{kind}-name");
        let values = user.extra.get(&key);
        values.is_some_and(|values| values.iter().any(|value| value == name))
    };
    let (place, name) = key.split_once('/').unwrap_or(("", key));
    match dependency {
        Dependency::Account => namespace == place && account == name,
        Dependency::Secret => namespace == place,
        Dependency::Pod => namespace == place && bound("pod", name),
        Dependency::Node => bound("node", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::Str;

    #[test]
    fn a_token_depends_on_its_account_and_its_pod_and_on_no_others() {
        let mut user = User {
            name: Str::new("system:serviceaccount:a:robot"),
            ..User::default()
        };
        let pod = "authentication.kubernetes.io/pod-name".to_owned();
        user.extra.insert(pod, vec!["web-1".to_owned()]);
        assert!(depends(&user, Dependency::Account, "a/robot"));
        assert!(!depends(&user, Dependency::Account, "b/robot"));
        assert!(depends(&user, Dependency::Pod, "a/web-1"));
        assert!(!depends(&user, Dependency::Pod, "b/web-1"));
        assert!(!depends(&user, Dependency::Pod, "a/web-2"));
        assert!(!depends(&user, Dependency::Node, "web-1"));
        assert!(depends(&user, Dependency::Secret, "a/any"));
        let person = User {
            name: Str::new("ann"),
            ..User::default()
        };
        assert!(!depends(&person, Dependency::Secret, "a/any"));
    }
}
