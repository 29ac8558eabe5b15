//! A server of the library behind another one: it delegates authentication and authorization, and an APIService leads to
//! it.

use super::cable::Cable;
use super::*;
use crate::support::Value;
use bareboat::prelude::*;
use bareboat::server::Delegation;
use bareboat::{RemoteApi, Server};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Ship {
    spec: ShipSpec,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ShipSpec {
    /// How many masts the ship has.
    masts: i32,
}

pub(super) const SHIPS: &str = "/apis/sea.example.com/v1/namespaces/default/ships";

/// A hub, and a server with ships behind it.
pub(super) struct Fleet {
    pub(super) hub: TestServer,
    /// The way from the hub to the server behind it.
    pub(super) cable: Cable,
    spoke: Server,
    _delegation: Delegation,
}

/// Starts both, and waits until the hub forwards requests for ships.
pub(super) async fn fleet() -> Fleet {
    let (callers, builder) = builder();
    let hub = builder.default_roles().listening().start().await;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extension-apiserver-authentication"},
        "data": {
            "client-ca-file": hub.ca(),
            "requestheader-client-ca-file": callers.pem(),
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        },
    });
    let maps = "/api/v1/namespaces/kube-system/configmaps";
    hub.post(maps, &config).await.expect(201);

    let serving = Ca::new();
    let (chain, key) = serving.server(&["localhost"]);
    let remote = RemoteApi::from_kubeconfig(hub.kubeconfig_path()).unwrap();
    let ships = TypedKind::new("sea.example.com", "ships", "Ship").version::<Ship>("v1");
    let spoke = Server::builder().kind(ships.build().unwrap());
    let (spoke, tls, delegation) = spoke.behind(remote, &chain, &key).await.unwrap();
    let spoke = spoke.build().unwrap();
    let address = spoke
        .listen("127.0.0.1:0".parse().unwrap(), Some(tls))
        .await
        .unwrap();
    let cable = Cable::to(address).await;

    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.sea.example.com",
            "annotations": {"bareboat.dev/url": format!("https://localhost:{}", cable.port)}},
        "spec": {
            "group": "sea.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1,
            "service": {"namespace": "default", "name": "sea"},
            "caBundle": BASE64_STANDARD.encode(serving.pem()),
        },
    });
    hub.post(SERVICES, &service).await.expect(201);
    until(&hub, "v1.sea.example.com", "True", "Passed").await;
    Fleet {
        hub,
        cable,
        spoke,
        _delegation: delegation,
    }
}

pub(super) fn ship(name: &str) -> Value {
    json!({"apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": {"name": name}, "spec": {"masts": 3}})
}

#[tokio::test]
async fn a_server_of_the_library_runs_behind_another_one() {
    let Fleet { hub, spoke, .. } = &fleet().await;
    hub.post(SHIPS, &ship("one")).await.expect(201);
    let jane = [
        ("impersonate-user", "jane"),
        ("impersonate-group", "people"),
    ];
    let one = format!("{SHIPS}/one");
    assert_eq!(hub.send("GET", &one, &jane, "").await.status().0, 403);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "ships"},
        "rules": [{"apiGroups": ["sea.example.com"], "resources": ["ships"], "verbs": ["get"]}]});
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    hub.post(&format!("{roles}/roles"), &role).await.expect(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "ships"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ships"},
        "subjects": [{"kind": "Group", "name": "people", "apiGroup": "rbac.authorization.k8s.io"}]});
    hub.post(&format!("{roles}/rolebindings"), &binding)
        .await
        .expect(201);
    // Both servers ask the hub's roles: this one directly, the other one by a SubjectAccessReview.
    let found = hub.send("GET", &one, &jane, "").await.expect(200).json();
    assert_eq!(found["spec"]["masts"], 3);

    // Its discovery is aggregated and its OpenAPI has version 3, so both are taken as they are.
    let accept = [("accept", AGGREGATED)];
    let all = hub
        .send("GET", "/apis", &accept, "")
        .await
        .expect(200)
        .json();
    let items = all["items"].as_array().unwrap();
    let sea = items
        .iter()
        .find(|item| item["metadata"]["name"] == "sea.example.com");
    assert_eq!(
        sea.unwrap()["versions"][0]["resources"][0]["resource"],
        "ships"
    );
    let index = hub.get("/openapi/v3").await.expect(200).json();
    let url = text(&index["paths"]["apis/sea.example.com/v1"]["serverRelativeURL"]).to_owned();
    let document = hub.get(&url).await.expect(200).text();
    assert!(
        document.contains("How many masts the ship has."),
        "{document}"
    );

    spoke.shut_down().await;
    hub.get(&one).await.expect(503);
}
