//! Impersonation: each header needs its own right, by name, on every path.

use super::who;
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ANN: (&str, &str) = ("authorization", "Bearer a");

async fn grant(server: &TestServer, name: &str, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let roles = format!("{RBAC}/clusterroles");
    server.post(&roles, &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    server.post(&bindings, &binding).await.expect(201);
}

/// A server where Ann may impersonate by name only.
async fn server() -> TestServer {
    let server = TestServer::builder()
        .token("a", "ann", &[])
        .default_roles()
        .listening()
        .start()
        .await;
    let rule = |group: &str, resource: &str, names: &[&str]| json!({"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource], "resourceNames": names});
    let authentication = "authentication.k8s.io";
    grant(
        &server,
        "impersonate",
        json!([
            rule(
                "",
                "users",
                &["bob", "system:serviceaccount:a:b:c", "system:anonymous"]
            ),
            rule("", "groups", &["dev"]),
            rule(authentication, "uids", &["7"]),
            rule(authentication, "userextras/example.com/team", &["red"]),
        ]),
    )
    .await;
    let role = json!({
        "metadata": {"name": "robots"},
        "rules": [rule("", "serviceaccounts", &["robot"])],
    });
    let local = format!("{RBAC}/namespaces/default");
    server
        .post(&format!("{local}/roles"), &role)
        .await
        .expect(201);
    let binding = json!({
        "metadata": {"name": "robots"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "robots"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    server
        .post(&format!("{local}/rolebindings"), &binding)
        .await
        .expect(201);
    server
}

#[tokio::test]
async fn each_header_needs_its_own_right() {
    let server = server().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let bob = ("impersonate-user", "bob");
    let all = [
        ANN,
        bob,
        ("impersonate-group", "dev"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-example.com%2fteam", "red"),
    ];
    let user = who(&mut connection, &all).await.unwrap();
    assert_eq!(user["username"], "bob");
    assert_eq!(user["uid"], "7");
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    assert_eq!(user["extra"], json!({"example.com/team": ["red"]}));
    for (wrong, said) in [
        (("impersonate-user", "carl"), "resource \"users\""),
        (("impersonate-user", "BOB"), "resource \"users\""),
        (
            ("impersonate-group", "system:masters"),
            "resource \"groups\"",
        ),
        (("impersonate-group", ""), "resource \"groups\""),
        (("impersonate-uid", "8"), "resource \"uids\""),
        (
            ("impersonate-extra-example.com%2fteam", "blue"),
            "userextras/example.com/team",
        ),
        (("impersonate-extra-other", "red"), "userextras/other"),
        // Percent-encoding names another key.
        (
            ("impersonate-extra-example.com%252fteam", "red"),
            "userextras/example.com%2fteam",
        ),
    ] {
        let headers = match wrong.0 {
            "impersonate-user" => vec![ANN, wrong],
            _ => vec![ANN, bob, wrong],
        };
        for path in [MAPS, "/version", "/livez", "/missing"] {
            let answer = connection.send("GET", path, &headers, "").await;
            assert_eq!(answer.code, 403, "{wrong:?} {path}: {}", answer.text());
            let message = answer.status().2;
            assert!(message.contains("cannot impersonate"), "{message}");
            assert!(message.contains(said), "{message}");
        }
    }
}

#[tokio::test]
async fn accounts_are_impersonated_in_their_namespace_only() {
    let server = server().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let account = async |connection: &mut Connection, name: &str| {
        who(connection, &[ANN, ("impersonate-user", name)]).await
    };
    let user = account(&mut connection, "system:serviceaccount:default:robot").await;
    let groups = json!([
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated"
    ]);
    assert_eq!(user.unwrap()["groups"], groups);
    for name in [
        "system:serviceaccount:kube-system:robot",
        "system:serviceaccount:default:other",
        "system:serviceaccount:default:",
        "system:serviceaccount:default",
    ] {
        assert_eq!(account(&mut connection, name).await, Err(403), "{name}");
    }
    // Five parts are the name of a user, not of an account: no groups of accounts.
    let user = account(&mut connection, "system:serviceaccount:a:b:c")
        .await
        .unwrap();
    assert_eq!(user["groups"], json!(["system:authenticated"]));
    // An impersonated anonymous user is not authenticated, so it has no right to review itself.
    let anonymous = [ANN, ("impersonate-user", "system:anonymous")];
    let answer = connection.send("GET", "/api", &anonymous, "").await;
    let (_, _, message) = answer.expect(403).status();
    assert!(
        message.contains("User \"system:anonymous\" cannot get path"),
        "{message}"
    );
}

#[tokio::test]
async fn headers_without_a_user_are_refused_and_an_empty_user_is_none() {
    let server = server().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for header in [
        ("impersonate-group", "dev"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-a", "b"),
    ] {
        let answer = connection.send("GET", MAPS, &[ANN, header], "").await;
        let (_, _, message) = answer.expect(400).status();
        assert!(
            message.ends_with("without impersonating a user name"),
            "{message}"
        );
    }
    let user = who(&mut connection, &[ANN, ("impersonate-user", "")]).await;
    assert_eq!(user.unwrap()["username"], "ann");
    // Of several users the first counts, for the check and for the result.
    let twice = [
        ANN,
        ("impersonate-user", "bob"),
        ("impersonate-user", "root"),
    ];
    let user = who(&mut connection, &twice).await.unwrap();
    assert_eq!(user["username"], "bob");
    // Nobody may impersonate without credentials, also where none are needed.
    for path in [MAPS, "/livez"] {
        let answer = connection
            .send("GET", path, &[("impersonate-user", "bob")], "")
            .await;
        assert!(matches!(answer.code, 401 | 403), "{path}: {}", answer.code);
    }
}
