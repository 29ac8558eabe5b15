//! Impersonation: acting as somebody else, for those who may.

use crate::authz::{self, Authorizer};
use crate::request::info::RequestInfo;
use crate::request::query::percent_decode;
use bareboat_api::kind::User;
use bareboat_api::{Status, Str};
use http::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Arc;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Whoever the request wants to be, if its sender may be that; its sender otherwise.
pub(crate) async fn impersonate(
    authorizer: &dyn Authorizer,
    user: Arc<User>,
    headers: &HeaderMap,
) -> Result<Arc<User>, Status> {
    if !headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
    {
        return Ok(user);
    }
    let wanted = wanted(headers)?;
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
    Ok(Arc::new(complete(wanted)))
}

fn wanted(headers: &HeaderMap) -> Result<User, Status> {
    let text = |value: &http::HeaderValue| {
        value.to_str().map(str::to_owned).map_err(|_| {
            Status::bad_request(
                "an Impersonate header holds characters that cannot stand in a name",
            )
        })
    };
    let name = match headers.get(USER) {
        Some(value) => text(value)?,
        None => String::new(),
    };
    if name.is_empty() {
        return Err(Status::bad_request(
            "Impersonate-User is required when any other Impersonate header is given",
        ));
    }
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
    Ok(User {
        name: Str::new(name),
        uid: Str::new(uid),
        groups,
        extra,
    })
}

/// Everything somebody must be allowed to claim: group, resource, subresource, namespace, name.
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

fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

/// Adds the groups that everyone of that sort is in.
fn complete(mut user: User) -> User {
    if let (Some((namespace, _)), true) = (service_account(&user.name), user.groups.is_empty()) {
        user.groups = vec![
            Str::const_new("system:serviceaccounts"),
            Str::new(format!("system:serviceaccounts:{namespace}")),
        ];
    }
    if user.name == "system:anonymous" && !user.is_in("system:unauthenticated") {
        user.groups.push(Str::const_new("system:unauthenticated"));
        return user;
    }
    super::authenticated(user)
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

    #[tokio::test]
    async fn groups_without_a_user_make_no_sense() {
        let mut headers = HeaderMap::new();
        headers.insert(GROUP, HeaderValue::from_static("g"));
        assert_eq!(
            impersonate(&MastersOnly, master(), &headers)
                .await
                .expect_err("refused")
                .code,
            400
        );
    }
}
