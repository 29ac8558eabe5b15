//! Storage migration: rewrites objects in the storage version and updates `storedVersions`.

use crate::support::*;
use bareboat::api::kind::BoxFuture;
use bareboat::api::{Status, Value as ApiValue};
use bareboat::controllers::Client;
use bareboat::controllers::migration::{self, Api, MigrateError, Options, Outcome, Progress};
use bareboat_testing::TestServer;
use http::Method;
use std::sync::Mutex;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "coins.example.com";
const STORE: &str = "example.com/coins";

fn coins(version: &str) -> String {
    format!("/apis/example.com/{version}/coins")
}

fn definition(conversion: Option<&str>) -> Value {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "worth": {"type": "integer"}, "face": {"type": "string"},
            }}},
        })
    };
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "coins", "kind": "Coin"},
            "versions": [version("v1"), version("v2"), version("v3")],
        },
    });
    if let Some(text) = conversion {
        definition["metadata"]["annotations"] = json!({"bareboat.dev/conversion": text});
    }
    definition
}

/// Returns a server with `count` coins stored in v1 and v2 as the storage version.
async fn start(count: usize, conversion: Option<&str>) -> TestServer {
    // The version of the whole store is compared, so no controller may write.
    let server = TestServer::builder().without_controllers().start().await;
    server
        .post(DEFINITIONS, &definition(conversion))
        .await
        .expect(201);
    for index in 0..count {
        let coin = json!({
            "apiVersion": "example.com/v1", "kind": "Coin",
            "metadata": {"name": format!("coin-{index:04}")}, "worth": index,
        });
        server.post(&coins("v1"), &coin).await.expect(201);
    }
    store_in(&server, "v2").await;
    server
}

async fn store_in(server: &TestServer, version: &str) {
    let at = format!("{DEFINITIONS}/{NAME}");
    let mut definition = server.get(&at).await.json();
    for found in definition["spec"]["versions"].as_array_mut().unwrap() {
        found["storage"] = json!(found["name"] == version);
    }
    server.put(&at, &definition).await.expect(200);
}

async fn stored_versions(server: &TestServer) -> Value {
    let definition = server.get(&format!("{DEFINITIONS}/{NAME}")).await;
    definition.json()["status"]["storedVersions"].clone()
}

/// Counts the objects stored in a version.
fn in_version(server: &TestServer, version: &str) -> usize {
    let prefix = format!(r#"{{"apiVersion":"example.com/{version}""#);
    let snapshot = server.server().store().resource(STORE).snapshot();
    snapshot
        .range("", None)
        .filter(|entry| entry.json().starts_with(prefix.as_bytes()))
        .count()
}

async fn migrate(api: &dyn Api) -> (Result<Outcome, MigrateError>, Vec<String>) {
    let reported = Mutex::new(Vec::new());
    let tell = |progress: Progress<'_>| {
        reported.lock().unwrap().push(format!("{progress:?}"));
    };
    let outcome = migration::migrate(api, NAME, Options::default(), &tell).await;
    (outcome, reported.into_inner().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_rewritten_once_and_the_old_version_can_be_removed() {
    let server = start(1201, None).await;
    assert_eq!(stored_versions(&server).await, json!(["v1", "v2"]));
    let client = Client::new(server.server().clone());
    let tried = migration::migrate(&client, NAME, Options { dry_run: true }, &|_| {}).await;
    assert_eq!(
        tried.unwrap(),
        Outcome::Migrated {
            objects: 1201,
            rewritten: 0
        }
    );
    assert_eq!(in_version(&server, "v1"), 1201);

    // Another client has already rewritten one.
    let patch = json!({"face": "king"});
    server
        .patch(&format!("{}/coin-0007", coins("v3")), MERGE, &patch)
        .await
        .expect(200);
    let (outcome, reported) = migrate(&client).await;
    assert_eq!(
        outcome.unwrap(),
        Outcome::Migrated {
            objects: 1201,
            rewritten: 1200
        }
    );
    assert!(reported.len() > 3, "page by page: {reported:?}");
    assert_eq!(
        (in_version(&server, "v1"), in_version(&server, "v2")),
        (0, 1201)
    );
    assert_eq!(stored_versions(&server).await, json!(["v2"]));
    let shown = server
        .get(&format!("{}/coin-0005", coins("v1")))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&shown["worth"], &shown["metadata"]["generation"]),
        (&json!(5), &json!(1))
    );

    let before = server.server().store().visible();
    let (outcome, _) = migrate(&client).await;
    assert_eq!(outcome.unwrap(), Outcome::UpToDate);
    let patched = server
        .patch(&format!("{}/coin-0005", coins("v2")), MERGE, &json!({}))
        .await;
    assert_eq!(version(&patched.expect(200).json()), version(&shown));
    assert_eq!(
        server.server().store().visible(),
        before,
        "nothing is written"
    );

    let at = format!("{DEFINITIONS}/{NAME}");
    let remove = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    server.patch(&at, JSON_PATCH, &remove).await.expect(200);
    assert_eq!(
        server
            .get(&format!("{}?limit=1", coins("v2")))
            .await
            .expect(200)
            .names(),
        ["coin-0000"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_cannot_be_converted_leave_the_definition_unchanged() {
    // The expressions fail for one object.
    let conversion = "[{from: v1, to: v2, set: {worth: \"self.worth == 3 ? [1][self.worth] : self.worth\"}}, {from: v2, to: v1}]";
    let server = start(8, Some(conversion)).await;
    let client = Client::new(server.server().clone());
    let (outcome, _) = migrate(&client).await;
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.contains("coin-0003 to example.com/v2 failed"),
        "{error}"
    );
    assert_eq!(stored_versions(&server).await, json!(["v1", "v2"]));
    // With v2 not served, the others are listed in v1 and rewritten.
    let at = format!("{DEFINITIONS}/{NAME}");
    let mut definition = server.get(&at).await.json();
    definition["spec"]["versions"][1]["served"] = json!(false);
    definition["spec"]["versions"][2]["served"] = json!(false);
    server.put(&at, &definition).await.expect(200);
    let (outcome, reported) = migrate(&client).await;
    assert_eq!(
        outcome.unwrap(),
        Outcome::Incomplete {
            objects: 8,
            rewritten: 7,
            failed: 1
        }
    );
    let failures: Vec<_> = reported
        .iter()
        .filter(|line| line.starts_with("Failed"))
        .collect();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].contains("coin-0003"), "{failures:?}");
    assert_eq!(stored_versions(&server).await, json!(["v1", "v2"]));
}

/// A client that runs something else at a certain request.
struct Meddled<F> {
    client: Client,
    path: &'static str,
    method: Method,
    meddle: F,
    times: Mutex<u32>,
}

impl<F, Fut> Api for Meddled<F>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = ()> + Send,
{
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        accept: &'static str,
        body: Option<&'a ApiValue>,
    ) -> BoxFuture<'a, Result<ApiValue, Status>> {
        Box::pin(async move {
            let meddles = method == self.method && path.contains(self.path) && {
                let mut times = self.times.lock().unwrap();
                let left = *times > 0;
                *times = times.saturating_sub(1);
                left
            };
            if meddles {
                (self.meddle)().await;
            }
            self.client.send(method, path, accept, body).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_are_noticed() {
    // Objects are created, deleted and changed during the migration.
    let server = start(20, None).await;
    let meddled = Meddled {
        client: Client::new(server.server().clone()),
        path: "coin-0010",
        method: Method::PATCH,
        times: Mutex::new(1),
        meddle: || async {
            let path = coins("v1");
            server
                .delete(&format!("{path}/coin-0010"))
                .await
                .expect(200);
            let patch = json!({"face": "queen"});
            server
                .patch(&format!("{path}/coin-0019"), MERGE, &patch)
                .await
                .expect(200);
            let coin = json!({"apiVersion": "example.com/v1", "kind": "Coin", "metadata": {"name": "new"}});
            server.post(&path, &coin).await.expect(201);
        },
    };
    let (outcome, _) = migrate(&meddled).await;
    assert!(matches!(
        outcome.unwrap(),
        Outcome::Migrated { objects: 20, .. }
    ));
    assert_eq!(in_version(&server, "v1"), 0);

    // An irrelevant change of the definition is ignored.
    let server = start(3, None).await;
    let meddled = Meddled {
        client: Client::new(server.server().clone()),
        path: "/status",
        method: Method::PATCH,
        times: Mutex::new(2),
        meddle: || async {
            let patch = json!({"metadata": {"labels": {"at": uuid_like()}}});
            server
                .patch(&format!("{DEFINITIONS}/{NAME}"), MERGE, &patch)
                .await
                .expect(200);
        },
    };
    let (outcome, _) = migrate(&meddled).await;
    assert!(matches!(
        outcome.unwrap(),
        Outcome::Migrated { objects: 3, .. }
    ));
    assert_eq!(stored_versions(&server).await, json!(["v2"]));

    // A relevant change is not: objects may be stored in v3 now.
    let server = start(3, None).await;
    let meddled = Meddled {
        client: Client::new(server.server().clone()),
        path: "coin-0001",
        method: Method::PATCH,
        times: Mutex::new(1),
        meddle: || store_in(&server, "v3"),
    };
    let (outcome, _) = migrate(&meddled).await;
    assert!(matches!(outcome, Err(MigrateError::Changed)), "{outcome:?}");
    assert_eq!(stored_versions(&server).await, json!(["v1", "v2", "v3"]));
    let (outcome, _) = migrate(&Client::new(server.server().clone())).await;
    assert!(matches!(
        outcome.unwrap(),
        Outcome::Migrated { objects: 3, .. }
    ));
    assert_eq!(in_version(&server, "v3"), 3);
}

/// Returns a different text each time.
fn uuid_like() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("n{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test]
async fn definitions_that_cannot_be_migrated_report_why() {
    let server = start(1, None).await;
    let client = Client::new(server.server().clone());
    assert_eq!(migration::definitions(&client).await.unwrap(), [NAME]);
    let nobody =
        migration::migrate(&client, "nobody.example.com", Options::default(), &|_| {}).await;
    assert!(
        nobody
            .unwrap_err()
            .to_string()
            .contains("\"nobody.example.com\" not found (code 404)")
    );
    let at = format!("{DEFINITIONS}/{NAME}");
    let mut definition = server.get(&at).await.json();
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["served"] = json!(false);
    }
    server.put(&at, &definition).await.expect(200);
    let (outcome, _) = migrate(&client).await;
    assert!(
        outcome
            .unwrap_err()
            .to_string()
            .contains("set served: true")
    );
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    server.patch(&at, MERGE, &hold).await.expect(200);
    server.delete(&at).await.expect(200);
    let (outcome, _) = migrate(&client).await;
    assert!(
        matches!(outcome, Err(MigrateError::NotInUse)),
        "{outcome:?}"
    );
}
