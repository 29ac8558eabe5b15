//! The users of controllers, and the roles that give them their rights.

use crate::fixture::{
    DEFINITIONS, Fixture, builder_without_roles, config, configs, definition, ghost,
};
use bareboat::control_plane::{ControlPlane as _, Settings};
use bareboat::rbac::Rbac;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat_api::admission::{Lookup, Review, Validator};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value, value};
use bareboat_builtin::services::ip_address_of;
use bareboat_controllers::{FrontProxy, KubernetesService, Options};
use bareboat_rbac::Rule;
use bareboat_server::Server;
use bareboat_server::authn;
use bareboat_server::request::body::RequestBody;
use http_body_util::BodyExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const SPACE: &str = "/api/v1/namespaces/space";

/// Options with which every controller runs.
fn everything() -> Options {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = ServiceAccounts::new(&key, &[], TokenSettings::default()).unwrap();
    Options {
        secret_tokens: Some(Arc::new(accounts)),
        root_ca: Some("CA".to_owned()),
        kubernetes: Some(KubernetesService {
            endpoint: Some(Ipv4Addr::new(192, 0, 2, 1).into()),
            ..Settings::default().kubernetes(6443)
        }),
        front_proxy: Some(FrontProxy {
            client_ca: "CA".to_owned(),
            ca: "CA".to_owned(),
            names: vec!["front-proxy".to_owned()],
        }),
        ..Options::default()
    }
}

async fn list(fixture: &Fixture, path: &str) -> Vec<Value> {
    let list = fixture.client.get(path).await.unwrap();
    let items = list.get("items").and_then(Value::as_array);
    items.unwrap_or(&[]).to_vec()
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or("")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_that_kubernetes_does_not_have_are_those_in_the_file() {
    let fixture = Fixture::with(everything(), |_| {}).await;
    let mut found = String::new();
    for (plural, kind) in [("clusterroles", "ClusterRole"), ("roles", "Role")] {
        for role in list(&fixture, &format!("{RBAC}/{plural}")).await {
            let name = text(&role, &["metadata", "name"]);
            if !name.starts_with("system:controller:bareboat-") {
                continue;
            }
            let namespace = text(&role, &["metadata", "namespace"]);
            let _ = writeln!(found, "{kind} {namespace}/{name}");
            for rule in Rule::list(&role) {
                let _ = writeln!(found, "  {rule}");
            }
        }
    }
    expect_test::expect_file!["identities/own_roles.txt"].assert_eq(&found);
}

/// Remembers which user wrote which resource.
#[derive(Clone, Default)]
struct Writers(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl Validator for Writers {
    fn name(&self) -> &'static str {
        "Writers"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let mut writers = self.0.lock().unwrap();
        let resource = review.kind.names.plural.to_string();
        let users = writers.entry(resource).or_default();
        users.insert(review.user.name.to_string());
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Writers {
    fn has(&self, resource: &str, account: &str) -> bool {
        let writers = self.0.lock().unwrap();
        let user = format!("system:serviceaccount:kube-system:{account}");
        let users = writers.get(resource);
        users.is_some_and(|users| users.contains(&user))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_controller_writes_as_its_own_user() {
    let writers = Writers::default();
    let server = Server::builder().control_plane().validator(writers.clone());
    let server = server.build().unwrap();
    let fixture = Fixture::over(server, everything()).await;
    fixture.namespace("space").await;
    fixture
        .create(DEFINITIONS, definition("gadgets", "Gadget", "Cluster"))
        .await;
    let gadget =
        value!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    fixture.create("/apis/example.com/v1/gadgets", gadget).await;
    let crd = format!("{DEFINITIONS}/gadgets.example.com");
    fixture.delete(&crd, "Background").await;
    fixture.until_gone(&crd).await;
    fixture.config("dependent", vec![ghost("owner")], &[]).await;
    fixture.until_gone(&config("dependent")).await;
    let quota = value!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"count/secrets": "1"}},
    });
    fixture
        .create("/api/v1/namespaces/default/resourcequotas", quota)
        .await;
    let aggregated = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]},
    });
    let part = value!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "part", "labels": {"to": "all"}},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}],
    });
    fixture
        .create(&format!("{RBAC}/clusterroles"), aggregated)
        .await;
    fixture.create(&format!("{RBAC}/clusterroles"), part).await;
    let networks = value!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "more"},
        "spec": {"cidrs": ["10.97.0.0/16"]},
    });
    fixture
        .create("/apis/networking.k8s.io/v1/servicecidrs", networks)
        .await;
    let stale = ip_address_of("default", "gone", Ipv4Addr::new(10, 96, 0, 9).into());
    fixture
        .create("/apis/networking.k8s.io/v1/ipaddresses", stale)
        .await;
    let secret = value!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "default"}},
    });
    fixture
        .create("/api/v1/namespaces/default/secrets", secret)
        .await;
    fixture.config_in("space", "content", vec![], &[]).await;
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    for (resource, account) in [
        ("apiservices", "bareboat-api-services"),
        ("clusterroles", "clusterrole-aggregation-controller"),
        ("configmaps", "bareboat-extension-authentication"),
        ("configmaps", "generic-garbage-collector"),
        ("configmaps", "namespace-controller"),
        ("configmaps", "root-ca-cert-publisher"),
        ("customresourcedefinitions", "bareboat-definitions"),
        ("gadgets", "bareboat-definitions"),
        ("ipaddresses", "bareboat-addresses"),
        ("namespaces", "namespace-controller"),
        ("resourcequotas", "resourcequota-controller"),
        ("secrets", "bareboat-service-account-tokens"),
        ("serviceaccounts", "service-account-controller"),
        ("servicecidrs", "bareboat-kubernetes-service"),
        ("servicecidrs", "service-cidrs-controller"),
        ("services", "bareboat-kubernetes-service"),
    ] {
        let what = format!("{account} writes {resource}");
        fixture
            .until(&what, async || writers.has(resource, account))
            .await;
    }
}

/// How often the work of a controller failed.
async fn failures(fixture: &Fixture, controller: &str) -> u64 {
    let request = http::Request::get("/metrics").body(RequestBody::Memory(Default::default()));
    let server = fixture.client.server();
    let response = server.call(authn::in_process(), request.unwrap()).await;
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let start = format!("workqueue_retries_total{{name=\"{controller}\"}} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&start));
    found.map_or(0, |number| number.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_without_its_role_is_refused() {
    let fixture = Fixture::with(Options::without(["default-roles"]).unwrap(), |_| {}).await;
    fixture.namespace("space").await;
    fixture.delete(SPACE, "Background").await;
    fixture.config("dependent", vec![ghost("owner")], &[]).await;
    for controller in ["namespaces", "garbage", "service-accounts", "api-services"] {
        fixture
            .until(controller, async || {
                failures(&fixture, controller).await >= 3
            })
            .await;
    }
    assert!(fixture.exists(SPACE).await);
    assert!(fixture.exists(&config("dependent")).await);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert!(list(&fixture, accounts).await.is_empty());
    // The start repairs the roles without having any itself.
    let fixture = fixture.restarted(Options::default()).await;
    fixture.until_gone(SPACE).await;
    fixture.until_gone(&config("dependent")).await;
    fixture
        .until_it(&format!("{accounts}/default"), |_| true)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_repairs_roles_and_bindings_that_were_deleted() {
    let fixture = Fixture::with(everything(), |_| {}).await;
    let mut names = BTreeMap::new();
    for plural in [
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "rolebindings",
    ] {
        let path = format!("{RBAC}/{plural}");
        for object in list(&fixture, &path).await {
            let object = Object::try_from(object).unwrap();
            let place = match object.namespace() {
                "" => format!("{path}/{}", object.name()),
                namespace => format!("{RBAC}/namespaces/{namespace}/{plural}/{}", object.name()),
            };
            fixture.delete(&place, "Background").await;
            names.insert(place, object);
        }
    }
    assert!(names.len() >= 30, "{}", names.len());
    let fixture = fixture.restarted(everything()).await;
    for (path, before) in &names {
        let after = fixture.get(path).await;
        let after = after.unwrap_or_else(|| panic!("{path} does not exist"));
        for member in ["rules", "roleRef", "subjects"] {
            assert_eq!(after.get(member), before.get(member), "{path}");
        }
    }
    fixture.namespace("space").await;
    fixture.config_in("space", "content", vec![], &[]).await;
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    assert!(
        !fixture
            .exists(&format!("{}/content", configs("space")))
            .await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_act_as_the_server_where_roles_do_not_decide() {
    let server = builder_without_roles(|_| {}).build().unwrap();
    let fixture = Fixture::over(server, everything()).await;
    fixture.namespace("space").await;
    fixture.delete(SPACE, "Background").await;
    fixture.until_gone(SPACE).await;
    assert!(
        list(&fixture, &format!("{RBAC}/clusterroles"))
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authorizer_beside_roles_does_not_change_the_users() {
    use bareboat_server::authz::{AuthorizerChain, MastersOnly};
    let rbac = Rbac::new();
    let builder = rbac.install(builder_without_roles(|_| {}));
    let mut chain = AuthorizerChain::default();
    chain.push(Arc::new(MastersOnly));
    chain.push(Arc::new(rbac));
    let writers = Writers::default();
    let server = builder.authorizer(chain).validator(writers.clone());
    let fixture = Fixture::over(server.build().unwrap(), Options::default()).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    fixture.until_it(account, |_| true).await;
    assert!(writers.has("serviceaccounts", "service-account-controller"));
}
