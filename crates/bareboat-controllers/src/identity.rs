//! Who controllers are: the user each one writes as, and the role that user needs.
//!
//! Controllers that Kubernetes has, too, use its service account and its default role. The others have an account and
//! roles named `bareboat-…`. The accounts need not exist as objects: a controller in this process needs no token.

use bareboat_api::Str;
use bareboat_api::Value;
use bareboat_api::kind::{Kind, User};
use bareboat_rbac::Rule;
use bareboat_rbac::defaults;
use bareboat_server::kinds::catalog::Table;

/// The user of one controller.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The name of the service account in `kube-system`.
    account: &'static str,
    /// Roles of its own by namespace, `None` being all namespaces. Empty if the role is one of Kubernetes' default roles.
    own: Vec<(Option<&'static str>, Vec<Rule>)>,
}

impl Identity {
    /// A controller of Kubernetes. Its role is one of the default roles.
    pub(crate) fn kubernetes(account: &'static str) -> Identity {
        Identity {
            account,
            own: Vec::new(),
        }
    }

    /// A controller that Kubernetes does not have. The rules of its cluster role are in the notation of
    /// [`defaults::rule`].
    pub(crate) fn own(account: &'static str, rules: &[&str]) -> Identity {
        Identity::kubernetes(account).with(None, rules.iter().map(|rule| defaults::rule(rule)))
    }

    /// A controller that deletes objects of those kinds that meet a condition.
    pub(crate) fn deleting(
        account: &'static str,
        table: &Table,
        condition: impl Fn(&Kind) -> bool,
    ) -> Identity {
        let kinds = table.iter().map(|backing| backing.kind());
        let kinds = kinds.filter(|kind| condition(kind));
        let mut rules: Vec<Rule> = kinds
            .map(|kind| Rule {
                verbs: vec![Str::const_new("delete")],
                api_groups: vec![Str::new(kind.group.as_str())],
                resources: vec![Str::new(kind.names.plural.as_str())],
                ..Rule::default()
            })
            .collect();
        rules.sort();
        Identity::kubernetes(account).with(None, rules)
    }

    /// Adds a role with these rules in one namespace.
    pub(crate) fn and_in(self, namespace: &'static str, rules: &[&str]) -> Identity {
        self.with(
            Some(namespace),
            rules.iter().map(|rule| defaults::rule(rule)),
        )
    }

    fn with(
        mut self,
        namespace: Option<&'static str>,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Identity {
        let rules: Vec<Rule> = rules.into_iter().collect();
        if !rules.is_empty() {
            self.own.push((namespace, rules));
        }
        self
    }

    /// The user as requests carry it.
    pub(crate) fn user(&self) -> User {
        User {
            name: Str::new(format!(
                "system:serviceaccount:kube-system:{}",
                self.account
            )),
            groups: vec![
                Str::const_new("system:serviceaccounts"),
                Str::const_new("system:serviceaccounts:kube-system"),
                Str::const_new("system:authenticated"),
            ],
            ..User::default()
        }
    }
}

/// The roles of these users and the bindings that give them to them.
///
/// They are made together: the default roles of Kubernetes are read from one text.
pub(crate) fn roles(identities: &[Identity]) -> Vec<Value> {
    let of_kubernetes = identities.iter().filter(|one| one.own.is_empty());
    let accounts: Vec<&str> = of_kubernetes.map(|one| one.account).collect();
    let mut all = match accounts.is_empty() {
        true => Vec::new(),
        false => defaults::of_controllers(&accounts).collect(),
    };
    for one in identities {
        for (namespace, rules) in &one.own {
            all.extend(defaults::controller_role(one.account, *namespace, rules));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::ALL;
    use std::collections::HashSet;

    #[test]
    fn every_controller_has_a_user_and_a_role_of_its_own() {
        let mut users = HashSet::new();
        for entry in ALL {
            let Some(identity) = entry.identity(&Table::default()) else {
                assert!(matches!(entry.name, "bootstrap" | "default-roles"));
                continue;
            };
            let user = identity.user();
            assert!(!user.is_in("system:masters"), "{}", entry.name);
            assert!(users.insert(user.name), "{} shares its user", entry.name);
            // Kinds decide about the rules of these two, and this table has none.
            if !matches!(entry.name, "expiry" | "pods") {
                assert!(roles(&[identity]).len() >= 2, "{}", entry.name);
            }
        }
    }
}
