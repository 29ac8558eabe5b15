//! Impersonation: acting as another user, with permission.

use crate::authz::{self, Authorizer};
use crate::request::info::RequestInfo;
use crate::request::query::percent_decode;
use bareboat_api::kind::User;
use bareboat_api::names::{is_dns1123_label, is_dns1123_subdomain};
use bareboat_api::{Status, Str};
use http::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Arc;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Returns whether a request has impersonation headers.
pub(crate) fn wants_impersonation(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
}

/// Returns the impersonated user, if the sender may impersonate it; the sender itself without impersonation headers.
pub(crate) async fn impersonate(
    authorizer: &dyn Authorizer,
    user: Arc<User>,
    headers: &HeaderMap,
) -> Result<Arc<User>, Status> {
    if !wants_impersonation(headers) {
        return Ok(user);
    }
    let Some(wanted) = wanted(headers)? else {
        return Ok(user);
    };
    for (group, resource, subresource, namespace, name) in claims(&wanted) {
        let info = RequestInfo {
            is_resource: true,
            verb: Str::const_new("impersonate"),
            group: Str::const_new(group),
            version: Str::const_new("v1"),
            namespace: Str::new(namespace),
            resource: Str::const_new(resource),
            subresource: Str::new(subresource),
            name: Str::new(name),
            ..RequestInfo::default()
        };
        authz::also(authorizer, &user, &info).await?;
    }
    Ok(complete(wanted))
}

/// Returns the user that headers name; `None` if they are present but empty.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let text = |value: &http::HeaderValue| {
        value.to_str().map(str::to_owned).map_err(|_| {
            Status::bad_request(
                "an Impersonate header has characters that are not allowed in a name",
            )
        })
    };
    let name = match headers.get(USER) {
        Some(value) => text(value)?,
        None => String::new(),
    };
    let mut groups = Vec::new();
    for value in headers.get_all(GROUP) {
        groups.push(Str::new(text(value)?));
    }
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            let key = percent_decode(key).map_or_else(|| key.to_owned(), |key| key.into_owned());
            extra.entry(key).or_default().push(text(value)?);
        }
    }
    let uid = match headers.get(UID) {
        Some(value) => text(value)?,
        None => String::new(),
    };
    let wanted = User {
        name: Str::new(name),
        uid: Str::new(uid),
        groups,
        extra,
    };
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    Err(Status::bad_request(format!(
        "requested {} without impersonating a user name",
        as_go_prints(&wanted)
    )))
}

/// Formats a user as Go prints its type.
fn as_go_prints(user: &User) -> String {
    use bareboat_api::field::go_quote;
    fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
        let quoted: Vec<String> = texts.map(go_quote).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    }
    let groups = match user.groups.is_empty() {
        true => "[]string(nil)".to_owned(),
        false => list(user.groups.iter().map(Str::as_str)),
    };
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| {
            let values = list(values.iter().map(String::as_str));
            format!("{}:{values}", go_quote(key))
        })
        .collect();
    let extra = match extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    let (name, uid) = (go_quote(&user.name), go_quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

/// Returns all permissions that impersonation needs: group, resource, subresource, namespace, name.
fn claims(user: &User) -> Vec<(&'static str, &'static str, &str, &str, &str)> {
    const AUTHENTICATION: &str = "authentication.k8s.io";
    let mut claims = Vec::new();
    match service_account(&user.name) {
        Some((namespace, name)) => claims.push(("", "serviceaccounts", "", namespace, name)),
        None => claims.push(("", "users", "", "", user.name.as_str())),
    }
    claims.extend(
        user.groups
            .iter()
            .map(|group| ("", "groups", "", "", group.as_str())),
    );
    if !user.uid.is_empty() {
        claims.push((AUTHENTICATION, "uids", "", "", user.uid.as_str()));
    }
    for (key, values) in &user.extra {
        claims.extend(values.iter().map(|value| {
            (
                AUTHENTICATION,
                "userextras",
                key.as_str(),
                "",
                value.as_str(),
            )
        }));
    }
    claims
}

/// Returns namespace and name of a service account; `None` for any other user name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    (is_dns1123_label(namespace) && is_dns1123_subdomain(name)).then_some((namespace, name))
}

/// Adds the groups that every user of that kind has.
fn complete(mut user: User) -> Arc<User> {
    if let (Some((namespace, _)), true) = (service_account(&user.name), user.groups.is_empty()) {
        user.groups = vec![
            Str::const_new("system:serviceaccounts"),
            Str::new(format!("system:serviceaccounts:{namespace}")),
        ];
    }
    if user.name == "system:anonymous" && !user.is_in("system:unauthenticated") {
        user.groups.push(Str::const_new("system:unauthenticated"));
        return Arc::new(user);
    }
    super::authenticated(Arc::new(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::MastersOnly;
    use http::HeaderValue;

    fn master() -> Arc<User> {
        Arc::new(User {
            name: "root".into(),
            groups: vec!["system:masters".into()],
            ..User::default()
        })
    }

    #[tokio::test]
    async fn a_master_may_be_anybody_and_others_nobody_else() {
        let mut headers = HeaderMap::new();
        headers.insert(USER, HeaderValue::from_static("system:serviceaccount:a:b"));
        headers.insert(
            "impersonate-extra-Scopes%2fx",
            HeaderValue::from_static("y"),
        );
        let user = impersonate(&MastersOnly, master(), &headers)
            .await
            .expect("allowed");
        assert_eq!(
            user.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                "system:authenticated"
            ]
        );
        assert_eq!(user.extra["scopes/x"], ["y"]);
        let ann = Arc::new(User {
            name: "ann".into(),
            ..User::default()
        });
        let refused = impersonate(&MastersOnly, ann, &headers)
            .await
            .expect_err("refused");
        assert_eq!(refused.code, 403);
    }

    async fn refused(headers: &[(&'static str, &'static str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let refused = impersonate(&MastersOnly, master(), &map).await;
        let status = refused.expect_err("refused");
        assert_eq!(status.code, 400);
        status.message
    }

    #[tokio::test]
    async fn impersonation_needs_a_name() {
        assert_eq!(
            refused(&[(UID, "7")]).await,
            "requested &user.DefaultInfo{Name:\"\", UID:\"7\", Groups:[]string(nil), \
             Extra:map[string][]string(nil)} without impersonating a user name"
        );
        assert_eq!(
            refused(&[(GROUP, "g"), (GROUP, "h"), ("impersonate-extra-k", "v")]).await,
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\", \"h\"}, \
             Extra:map[string][]string{\"k\":[]string{\"v\"}}} without impersonating a user name"
        );
    }

    #[tokio::test]
    async fn an_empty_name_alone_asks_for_nothing() {
        let mut headers = HeaderMap::new();
        headers.insert(USER, HeaderValue::from_static(""));
        let user = impersonate(&MastersOnly, master(), &headers).await;
        assert_eq!(user.expect("allowed").name, "root");
    }

    #[test]
    fn only_well_formed_names_are_service_accounts() {
        let found = |name: &'static str| service_account(name);
        assert_eq!(found("system:serviceaccount:a:b"), Some(("a", "b")));
        assert_eq!(found("system:serviceaccount:a:b.c"), Some(("a", "b.c")));
        for plain in [
            "ann",
            "system:serviceaccount:a",
            "system:serviceaccount:a:b:c",
            "system:serviceaccount::b",
            "system:serviceaccount:a:",
            "system:serviceaccount:A:b",
            "system:serviceaccount:a.b:c",
        ] {
            assert_eq!(found(plain), None, "{plain}");
        }
    }
}
