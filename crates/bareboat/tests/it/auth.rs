//! Authentication and authorization: every verb of every resource without credentials and without permission.

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn guarded() -> TestServer {
    TestServer::builder()
        .token("s3cret", "ann", &["dev"])
        .token("root", "root", &["system:masters"])
        .listening()
        .start()
        .await
}

/// Returns every (method, path, verb) in discovery, subresources included.
async fn everything(server: &TestServer) -> Vec<(&'static str, String, String)> {
    let mut found = Vec::new();
    for root in ["/api", "/apis"] {
        let list = server.get_as(root, AGGREGATED).await.expect(200).json();
        for group in list["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                let base = match group["metadata"]["name"].as_str() {
                    None | Some("") => format!("/api/{}", text(&version["version"])),
                    Some(group) => format!("/apis/{group}/{}", text(&version["version"])),
                };
                for resource in version["resources"].as_array().unwrap() {
                    let place = if resource["scope"] == "Namespaced" {
                        "/namespaces/default"
                    } else {
                        ""
                    };
                    let collection = format!("{base}{place}/{}", text(&resource["resource"]));
                    add(&mut found, &collection, "", &resource["verbs"]);
                    for part in resource["subresources"].as_array().into_iter().flatten() {
                        let part_name = format!("/{}", text(&part["subresource"]));
                        add(&mut found, &collection, &part_name, &part["verbs"]);
                    }
                }
            }
        }
    }
    found
}

fn add(
    found: &mut Vec<(&'static str, String, String)>,
    collection: &str,
    part: &str,
    verbs: &Value,
) {
    for verb in verbs.as_array().unwrap() {
        let object = format!("{collection}/x{part}");
        let (method, path) = match text(verb) {
            "create" if part.is_empty() => ("POST", collection.to_owned()),
            "create" => ("POST", object),
            "get" => ("GET", object),
            "list" => ("GET", collection.to_owned()),
            "watch" => ("GET", format!("{collection}?watch=1")),
            "update" => ("PUT", object),
            "patch" => ("PATCH", object),
            "delete" => ("DELETE", object),
            "deletecollection" => ("DELETE", collection.to_owned()),
            other => panic!("an unknown verb: {other}"),
        };
        found.push((method, path, text(verb).to_owned()));
    }
}

#[tokio::test]
async fn every_verb_of_every_resource_needs_credentials_and_permission() {
    let server = guarded().await;
    let everything = everything(&server).await;
    assert!(
        everything.len() > 300,
        "discovery lists only {} verbs",
        everything.len()
    );
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for (method, path, verb) in everything {
        let answer = connection.send(method, &path, &[], "").await;
        let (code, reason, message) = answer.status();
        assert_eq!(
            (code, reason.as_str(), message.as_str()),
            (401, "Unauthorized", "Unauthorized"),
            "{method} {path}"
        );
        let ann = [("authorization", "Bearer s3cret")];
        let answer = connection.send(method, &path, &ann, "").await;
        let (code, reason, message) = answer.status();
        assert_eq!(
            (code, reason.as_str()),
            (403, "Forbidden"),
            "{method} {path}: {message}"
        );
        let said = format!("User \"ann\" cannot {verb} resource \"");
        assert!(message.contains(&said), "{method} {path}: {message}");
    }
}

#[tokio::test]
async fn unauthorized_clients_do_not_learn_what_exists() {
    let server = guarded().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let ann = [("authorization", "Bearer s3cret")];
    for path in [
        "/nope",
        "/apis/nope.example.com/v1/things",
        "/api",
        "/apis",
        "/openapi/v2",
        "/openapi/v3",
        "/metrics",
        "/",
    ] {
        assert_eq!(
            connection.send("GET", path, &[], "").await.code,
            401,
            "{path}"
        );
    }
    let answer = connection.send("GET", "/nope", &ann, "").await.expect(403);
    assert_eq!(
        answer.status().2,
        "forbidden: User \"ann\" cannot get path \"/nope\""
    );
    let answer = connection
        .send("GET", &format!("{MAPS}/x"), &ann, "")
        .await
        .expect(403);
    assert_eq!(
        answer.status().2,
        "configmaps \"x\" is forbidden: User \"ann\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(
        answer.json()["details"],
        json!({"kind": "configmaps", "name": "x"})
    );
    let answer = connection
        .send("GET", "/apis/apps/v1/deployments", &ann, "")
        .await
        .expect(403);
    assert_eq!(
        answer.status().2,
        "deployments.apps is forbidden: User \"ann\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope"
    );
}

#[tokio::test]
async fn health_and_version_need_no_credentials() {
    let server = guarded().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for path in ["/healthz", "/livez", "/readyz", "/livez/ping"] {
        let answer = connection.send("GET", path, &[], "").await.expect(200);
        assert_eq!(answer.text(), "ok", "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
    let verbose = connection
        .send("GET", "/readyz?verbose", &[], "")
        .await
        .expect(200);
    assert!(
        verbose.text().contains("[+]ping ok") && verbose.text().ends_with("readyz check passed\n")
    );
    let version = connection
        .send("GET", "/version", &[], "")
        .await
        .expect(200)
        .json();
    assert!(text(&version["gitVersion"]).starts_with("v1.36."));
}

#[tokio::test]
async fn bad_credentials_are_rejected() {
    let server = guarded().await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for header in [
        "Bearer wrong",
        "Bearer ",
        "Bearer",
        "Basic czNjcmV0",
        "s3cret",
        "bearer  s3cre",
        "Bearer s3cret s3cret",
        "\u{7f}",
    ] {
        let Ok(value) = http::HeaderValue::from_str(header) else {
            continue;
        };
        let value = value.to_str().unwrap_or("Bearer x");
        let answer = connection
            .send("GET", MAPS, &[("authorization", value)], "")
            .await;
        assert_eq!(answer.code, 401, "{header}");
    }
    // A wrong token is rejected even where anonymous access is allowed.
    let root = [("authorization", "Bearer root")];
    connection.send("GET", MAPS, &root, "").await.expect(200);
    let lower = [("authorization", "bearer root")];
    connection.send("GET", MAPS, &lower, "").await.expect(200);
    let forged = [
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
    ];
    connection.send("GET", MAPS, &forged, "").await.expect(401);
}

#[tokio::test]
async fn only_certificates_of_the_ca_are_accepted() {
    let server = guarded().await;
    let stranger = guarded().await;
    let mut admin = Connection::http1(&server, As::Admin).await;
    admin.send("GET", MAPS, &[], "").await.expect(200);
    // The handshake with a foreign certificate succeeds, so that the server can respond with 401.
    let forged = crate::socket::with_certificate(&server, stranger.admin_certificate()).await;
    let mut forged = Connection::over_http1(forged).await;
    forged.send("GET", MAPS, &[], "").await.expect(401);
}

#[tokio::test]
async fn only_masters_may_impersonate() {
    let server = guarded().await;
    let mut connection = Connection::http2(&server, As::Nobody).await;
    let root = ("authorization", "Bearer root");
    let ann = ("authorization", "Bearer s3cret");
    let ask = async |connection: &mut Connection, headers: &[(&str, &str)]| {
        connection.send("GET", MAPS, headers, "").await
    };
    let answer = ask(&mut connection, &[root, ("impersonate-user", "bob")])
        .await
        .expect(403);
    assert!(
        answer.status().2.contains("User \"bob\" cannot list"),
        "{}",
        answer.text()
    );
    ask(
        &mut connection,
        &[
            root,
            ("impersonate-user", "bob"),
            ("impersonate-group", "system:masters"),
        ],
    )
    .await
    .expect(200);
    let account = "system:serviceaccount:default:robot";
    let answer = ask(&mut connection, &[root, ("impersonate-user", account)])
        .await
        .expect(403);
    assert!(answer.status().2.contains(account));
    for group in ["system:masters", "x"] {
        let headers = [
            ann,
            ("impersonate-user", "root"),
            ("impersonate-group", group),
        ];
        let answer = ask(&mut connection, &headers).await.expect(403);
        assert!(
            answer
                .status()
                .2
                .contains("cannot impersonate resource \"users\""),
            "{}",
            answer.text()
        );
    }
    ask(
        &mut connection,
        &[root, ("impersonate-group", "system:masters")],
    )
    .await
    .expect(400);
    ask(&mut connection, &[("impersonate-user", "root")])
        .await
        .expect(401);
}
