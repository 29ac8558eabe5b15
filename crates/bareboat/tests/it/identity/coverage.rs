//! Every verb of every resource, every subresource and every other path, with bad credentials, without credentials and
//! as a user without bindings. What that user may do is computed from the default roles of a kube-apiserver.

use super::peer::Ca;
use crate::aggregation::{at_url, until};
use crate::backend::{self, Speaks, TestBackend};
use crate::socket::{As, Connection, with_certificate};
use crate::support::*;
use bareboat::ClientIdentity;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat_testing::TestServer;
use base64::Engine as _;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// A request for a resource.
struct Target {
    method: &'static str,
    path: String,
    verb: String,
    group: String,
    /// The resource, with its subresource.
    resource: String,
}

/// The rules that the default roles give to a group.
struct Granted(Vec<Value>);

impl Granted {
    fn to(group: &str) -> Option<Granted> {
        let folder = bareboat_vectors::folder("rbac")?;
        let text = std::fs::read_to_string(folder.join("bootstrap.yaml")).unwrap();
        let objects: Vec<Value> = text
            .split("\n---\n")
            .map(|document| {
                let document = document.trim_start_matches("---\n");
                let parsed = bareboat_wire::yaml::parse(document.as_bytes()).unwrap();
                serde_json::from_slice(&parsed.value.to_json()).unwrap()
            })
            .collect();
        let subject = |it: &Value| it["kind"] == "Group" && it["name"] == group;
        let roles: Vec<&str> = objects
            .iter()
            .filter(|it| it["kind"] == "ClusterRoleBinding")
            .filter(|it| {
                it["subjects"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(subject))
            })
            .map(|it| text_of(&it["roleRef"]["name"]))
            .collect();
        assert!(!roles.is_empty(), "{group} has no roles");
        let rules = objects
            .iter()
            .filter(|it| it["kind"] == "ClusterRole")
            .filter(|it| roles.contains(&text_of(&it["metadata"]["name"])))
            .flat_map(|it| it["rules"].as_array().unwrap().clone());
        Some(Granted(rules.collect()))
    }

    fn any(&self, holds: impl Fn(&dyn Fn(&str, &str) -> bool, &Value) -> bool) -> bool {
        self.0.iter().any(|rule| {
            let has = |member: &str, wanted: &str| {
                let all = rule[member].as_array().map_or(&[][..], Vec::as_slice);
                all.iter().any(|it| it == wanted || it == "*")
            };
            holds(&has, rule)
        })
    }

    fn resource(&self, target: &Target) -> bool {
        self.any(|has, _| {
            has("verbs", &target.verb)
                && has("apiGroups", &target.group)
                && has("resources", &target.resource)
        })
    }

    fn path(&self, method: &str, path: &str) -> bool {
        self.any(|has, rule| {
            let urls = rule["nonResourceURLs"].as_array();
            let matches = |url: &Value| match text_of(url).strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => url == path,
            };
            has("verbs", &method.to_lowercase())
                && urls.is_some_and(|urls| urls.iter().any(matches))
        })
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Every verb in discovery, in every version.
async fn targets(server: &TestServer) -> Vec<Target> {
    let mut found = Vec::new();
    for root in ["/api", "/apis"] {
        let list = server.get_as(root, AGGREGATED).await.expect(200).json();
        for group in list["items"].as_array().unwrap() {
            let name = text_of(&group["metadata"]["name"]);
            for version in group["versions"].as_array().unwrap() {
                let base = match name {
                    "" => format!("/api/{}", text_of(&version["version"])),
                    name => format!("/apis/{name}/{}", text_of(&version["version"])),
                };
                for resource in version["resources"].as_array().unwrap() {
                    let place = match text_of(&resource["scope"]) {
                        "Namespaced" => "/namespaces/default",
                        _ => "",
                    };
                    let plural = text_of(&resource["resource"]);
                    let collection = format!("{base}{place}/{plural}");
                    add(
                        &mut found,
                        name,
                        plural,
                        &collection,
                        "",
                        &resource["verbs"],
                    );
                    for part in resource["subresources"].as_array().into_iter().flatten() {
                        let sub = text_of(&part["subresource"]);
                        add(&mut found, name, plural, &collection, sub, &part["verbs"]);
                    }
                }
            }
        }
    }
    found
}

fn add(
    found: &mut Vec<Target>,
    group: &str,
    plural: &str,
    collection: &str,
    part: &str,
    verbs: &Value,
) {
    let (object, resource) = match part {
        "" => (format!("{collection}/x"), plural.to_owned()),
        part => (format!("{collection}/x/{part}"), format!("{plural}/{part}")),
    };
    for verb in verbs.as_array().unwrap() {
        let (method, path) = match text_of(verb) {
            "create" if part.is_empty() => ("POST", collection.to_owned()),
            "create" => ("POST", object.clone()),
            "get" => ("GET", object.clone()),
            "list" => ("GET", collection.to_owned()),
            "watch" => ("GET", format!("{collection}?watch=1")),
            "update" => ("PUT", object.clone()),
            "patch" => ("PATCH", object.clone()),
            "delete" => ("DELETE", object.clone()),
            "deletecollection" => ("DELETE", collection.to_owned()),
            other => panic!("an unknown verb: {other}"),
        };
        found.push(Target {
            method,
            path,
            verb: text_of(verb).to_owned(),
            group: group.to_owned(),
            resource: resource.clone(),
        });
    }
}

/// A kind with all subresources a definition may have, and one that another server answers.
fn definition() -> Value {
    let ca = base64::engine::general_purpose::STANDARD.encode(Ca::new().pem());
    let console = json!([{
        "name": "console", "verbs": ["get", "create"],
        "clientConfig": {"url": "https://localhost:1/", "caBundle": ca},
    }]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.walk.example", "annotations": {"bareboat.dev/subresources": console.to_string()}},
        "spec": {
            "group": "walk.example", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            }],
        },
    })
}

/// A server with custom kinds and streams, and the backend of an aggregated group.
async fn server() -> (TestServer, TestBackend) {
    let callers = backend::Ca::new();
    let (chain, key) = callers.client("front-proxy-client");
    let identity = ClientIdentity::from_pem(&chain, &key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = ServiceAccounts::new(&key, &[], TokenSettings::default()).unwrap();
    let server = TestServer::builder()
        .token("of-sam", "sam", &["strangers"])
        .with(move |builder| accounts.install(builder.client_identity(identity.clone())))
        .default_roles()
        .listening()
        .start()
        .await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition()).await.expect(201);
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let service = at_url(&backend);
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    server.post(services, &service).await.expect(201);
    let name = text_of(&service["metadata"]["name"]);
    until(&server, name, "True", "Passed").await;
    (server, backend)
}

const SAM: (&str, &str) = ("authorization", "Bearer of-sam");
const BAD: (&str, &str) = ("authorization", "Bearer of-nobody");

/// A connection with a certificate that a trusted CA signed, and that has expired.
async fn expired(server: &TestServer) -> Connection {
    let ca = Ca::new();
    let both = format!("{}\n{}", server.ca(), ca.pem());
    server.tls().replace_client_ca(&both).unwrap();
    let mut params = rcgen::CertificateParams::default();
    let name = rcgen::DnType::CommonName;
    params.distinguished_name.push(name, "sam");
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let (certificate, key) = ca.sign(params);
    Connection::over_http1(with_certificate(server, (&certificate, &key)).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_of_every_resource_is_refused_to_those_without_rights() {
    let Some(granted) = Granted::to("system:authenticated") else {
        return;
    };
    let (server, _backend) = server().await;
    let targets = targets(&server).await;
    assert!(targets.len() > 500, "{} verbs", targets.len());
    for wanted in [
        "boats/scale",
        "boats/console",
        "serviceaccounts/token",
        "pods/exec",
        "pods/attach",
        "pods/portforward",
        "pods/log",
        "pods/proxy",
        "services/proxy",
        "nodes/proxy",
        "things",
        "things/console",
    ] {
        assert!(targets.iter().any(|it| it.resource == wanted), "{wanted}");
    }
    let mut nobody = Connection::http1(&server, As::Nobody).await;
    let mut expired = expired(&server).await;
    let mut open = Vec::new();
    for target in &targets {
        let Target { method, path, .. } = target;
        for (connection, headers) in [(&mut nobody, &[][..]), (&mut expired, &[][..])] {
            let answer = connection.send(method, path, headers, "").await;
            assert_eq!(answer.code, 401, "{method} {path}: {}", answer.text());
        }
        let answer = nobody.send(method, path, &[BAD], "").await;
        let (code, reason, message) = answer.status();
        assert_eq!(
            (code, &*reason, &*message),
            (401, "Unauthorized", "Unauthorized")
        );
        let answer = nobody.send(method, path, &[SAM], "").await;
        match granted.resource(target) {
            true => {
                let refused = matches!(answer.code, 401 | 403 | 404);
                assert!(!refused, "{method} {path}: {}", answer.text());
                open.push(format!("{} {}", target.verb, target.resource));
            }
            false => {
                assert_eq!(answer.code, 403, "{method} {path}: {}", answer.text());
                let said = format!("User \"sam\" cannot {} resource", target.verb);
                assert!(
                    answer.text().contains(&said.replace('"', "\\\"")),
                    "{}",
                    answer.text()
                );
            }
        }
    }
    assert_eq!(
        open,
        [
            "create selfsubjectreviews",
            "create selfsubjectaccessreviews",
            "create selfsubjectrulesreviews",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_learns_from_a_refusal_what_exists() {
    let (server, _backend) = server().await;
    server.post(MAPS, &config_map("there")).await.expect(201);
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let mut collections: Vec<String> = targets(&server)
        .await
        .into_iter()
        .filter(|it| it.verb == "list")
        .map(|it| it.path)
        .collect();
    collections.dedup();
    assert!(collections.len() > 50);
    let mut paths = vec![
        format!("{MAPS}/there"),
        format!("{MAPS}/missing"),
        "/api/v1/namespaces/missing/configmaps".to_owned(),
        "/apis/missing.example/v1/things".to_owned(),
        "/apis/apps/v7/deployments".to_owned(),
        "/api/v1/namespaces/default".to_owned(),
        "/api/v1/namespaces/missing".to_owned(),
        "/api/v1/watch/namespaces/default/configmaps/there".to_owned(),
        "/api/v1/proxy/namespaces/default/services/x".to_owned(),
        "/api/v1/namespaces/default/pods/x/proxy/a/b".to_owned(),
        "/api/v1/namespaces/default/services/https:x:1/proxy/a/b".to_owned(),
        "/api/v1/nodes/x/proxy/metrics".to_owned(),
        "/apis/agg.example.com/v1/missing".to_owned(),
        "/apis/agg.example.com/v1/namespaces/default/things/x/console/deeper".to_owned(),
    ];
    for collection in collections {
        // The URL of the other scope, of a missing subresource, and of a deeper path.
        let other = match collection.contains("/namespaces/default/") {
            true => collection.replace("/namespaces/default/", "/"),
            false => {
                let (base, plural) = collection.rsplit_once('/').unwrap();
                format!("{base}/namespaces/default/{plural}")
            }
        };
        paths.push(other);
        paths.push(format!("{collection}/x/missing"));
        paths.push(format!("{collection}/x/status/deeper/still"));
    }
    for path in &paths {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = connection.send(method, path, &[SAM], "{}").await;
            assert_eq!(answer.code, 403, "{method} {path}: {}", answer.text());
            let answer = connection.send(method, path, &[], "{}").await;
            assert_eq!(answer.code, 401, "{method} {path}: {}", answer.text());
        }
    }
}

/// CVE-2019-11247: rights in a namespace must not lead to objects without one, nor the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_of_the_other_scope_lead_nowhere_for_those_who_may_do_all() {
    let (server, _backend) = server().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"metadata": {"name": "all"}, "rules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    server
        .post(&format!("{rbac}/roles"), &role)
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "sam"}]});
    server
        .post(&format!("{rbac}/rolebindings"), &binding)
        .await
        .expect(201);
    let mut admin = Connection::http1(&server, As::Admin).await;
    let mut sam = Connection::http1(&server, As::Nobody).await;
    let mut known: Vec<(String, String)> = targets(&server)
        .await
        .into_iter()
        // Another server answers for this group, whatever the path.
        .filter(|it| it.group != "agg.example.com" && !it.resource.contains('/'))
        .map(|it| {
            let path = it.path.split('?').next().unwrap_or("");
            let path = path.strip_suffix("/x").unwrap_or(path);
            (path.to_owned(), it.resource)
        })
        .collect();
    known.sort();
    known.dedup();
    assert!(known.len() > 60, "{} kinds", known.len());
    let headers = [("content-type", "application/json")];
    let with_token = [headers[0], SAM];
    for (collection, plural) in known {
        let namespaced = collection.contains("/namespaces/default/");
        let other = match namespaced {
            true => collection.replace("/namespaces/default/", "/"),
            false => {
                let base = collection.strip_suffix(&plural).unwrap();
                format!("{base}namespaces/default/{plural}")
            }
        };
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            for path in [
                other.clone(),
                format!("{other}/x"),
                format!("{other}/x/status"),
            ] {
                // A list of all namespaces is no other scope.
                if namespaced && path == other {
                    continue;
                }
                let answer = admin.send(method, &path, &headers, "{}").await;
                // A method that no URL of this form has is refused before its scope.
                let nowhere = |code: u16| code == 404 || code == 405 && method != "GET";
                assert!(nowhere(answer.code), "{method} {path}: {}", answer.text());
                let answer = sam.send(method, &path, &with_token, "{}").await;
                let refused = match namespaced {
                    true => answer.code == 403,
                    false => nowhere(answer.code),
                };
                assert!(refused, "{method} {path}: {}", answer.text());
            }
        }
        if namespaced {
            // Nothing is written without a namespace.
            let answer = admin.send("POST", &other, &headers, "{}").await;
            assert!(
                matches!(answer.code, 404 | 405),
                "POST {other}: {}",
                answer.text()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_path_is_refused_to_those_without_rights() {
    let (Some(known), Some(unknown)) = (
        Granted::to("system:authenticated"),
        Granted::to("system:unauthenticated"),
    ) else {
        return;
    };
    let (server, _backend) = server().await;
    let index = server.get("/").await.expect(200).json();
    let mut paths: Vec<String> = index["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| text_of(path).to_owned())
        .collect();
    assert!(paths.len() > 40, "{paths:?}");
    let more = [
        "/",
        "/index.html",
        "/missing",
        "/metrics/",
        "/debug/pprof/",
        "/debug/api_priority_and_fairness/dump_queues",
        "/debug/api_priority_and_fairness/dump_requests",
        "/openapi/v3/apis/apps/v1",
        "/openid/v1/jwks",
        "/.well-known/openid-configuration",
        "/logs/",
        "/api/",
        "/apis/missing.example",
        "/readyz/../metrics",
    ];
    paths.extend(more.map(str::to_owned));
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let mut expired = expired(&server).await;
    for path in &paths {
        for method in METHODS {
            let bad = connection.send(method, path, &[BAD], "").await;
            assert_eq!(bad.code, 401, "{method} {path}");
            assert_eq!(expired.send(method, path, &[], "").await.code, 401);
            // Health and version are open to all, whatever the method.
            let first = path.trim_matches('/').split('/').next().unwrap();
            let public = unknown.path("GET", &format!("/{first}"));
            let nobody = connection.send(method, path, &[], "").await;
            assert_eq!(
                nobody.code == 401,
                !public,
                "{method} {path}: {}",
                nobody.code
            );
            assert!(!public || !nobody.text().contains("apiserver_"), "{path}");
            let sam = connection.send(method, path, &[SAM], "").await;
            match public || known.path(method, path) {
                true => assert!(
                    !matches!(sam.code, 401 | 403),
                    "{method} {path}: {}",
                    sam.code
                ),
                false => assert_eq!(sam.code, 403, "{method} {path}"),
            }
        }
    }
}
