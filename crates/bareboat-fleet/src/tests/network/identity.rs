//! Who a member sees when a user of the hub asks it through the views.

use super::{Answer, Network, member, send_to, trusting};
use bareboat_api::kind::User;
use bareboat_api::{Str, Value, value};

const WHO: &str = "/apis/clusterpedia.io/v1beta1/resources/clusters/c1/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A user with everything that an authenticator may say.
fn ann() -> User {
    User {
        name: "ann".into(),
        uid: "uid-of-ann".into(),
        groups: ["dev", "system:authenticated"].map(Str::from).to_vec(),
        extra: [
            (
                "scopes".to_owned(),
                vec!["one".to_owned(), "two".to_owned()],
            ),
            (
                "example.com/at%home".to_owned(),
                vec!["yes, she is".to_owned()],
            ),
        ]
        .into(),
    }
}

/// Lets users send requests to all members.
async fn grant(network: &Network) {
    let role = value!({"metadata": {"name": "proxy"}, "rules": [
        {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]},
    ]});
    let binding = value!({
        "metadata": {"name": "proxy"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "proxy"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}],
    });
    let root = "/apis/rbac.authorization.k8s.io/v1";
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("{root}/{plural}");
        network.send("POST", &path, &object).await.expect(201);
    }
}

/// A hub with one member that can be asked.
async fn joined(network: &Network) -> bareboat_testing::TestServer {
    grant(network).await;
    let member = member().await;
    network.join("c1", trusting(&member), value!({})).await;
    network.ready("c1").await;
    member
}

/// Asks the member who it sees.
async fn ask(network: &Network, user: User, headers: &[(&str, &str)]) -> Answer {
    let review = value!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    send_to(&network.hub, user, "POST", WHO, &review, headers).await
}

fn seen(answer: &Answer) -> Value {
    let user = answer.body.at(&["status", "userInfo"]);
    user.cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_sees_the_user_of_the_hub() {
    let network = Network::start().await;
    let _member = joined(&network).await;
    let expected = value!({
        "username": "ann", "uid": "uid-of-ann", "groups": ["dev", "system:authenticated"],
        "extra": {"example.com/at%home": ["yes, she is"], "scopes": ["one", "two"]},
    });
    let answer = ask(&network, ann(), &[]).await.expect(201);
    assert_eq!(seen(&answer), expected);
    // What the client says about itself is dropped.
    let claims = [
        ("impersonate_user", "root"),
        ("impersonate_group", "system:masters"),
        ("X-Remote-User", "root"),
        ("X-Remote-Group", "system:masters"),
        ("X-Remote-Extra-Scopes", "all"),
        ("Authorization", "Bearer none"),
    ];
    let answer = ask(&network, ann(), &claims).await.expect(201);
    assert_eq!(seen(&answer), expected);
    // Who acts as another user needs the right on the hub. The member sees that user alone, and each header once.
    let acts = [
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "uid-of-ann"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Extra-Scopes", "one"),
        ("Impersonate-Extra-Scopes", "two"),
        ("Impersonate-Extra-Example.com%2fat%25home", "yes, she is"),
    ];
    let refused = ask(&network, ann(), &acts).await.expect(403);
    assert!(
        refused.text().contains("cannot impersonate"),
        "{}",
        refused.text()
    );
    let answer = ask(&network, super::admin(), &acts).await.expect(201);
    assert_eq!(seen(&answer), expected);
    // Less is known about another user.
    let bob = User {
        name: "bob".into(),
        groups: vec!["dev".into()],
        ..User::default()
    };
    let answer = ask(&network, bob, &claims).await.expect(201);
    let bob = value!({"username": "bob", "groups": ["dev", "system:authenticated"]});
    assert_eq!(seen(&answer), bob);
    network.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn administrators_are_passed_on_only_with_the_annotation() {
    let network = Network::start().await;
    let _member = joined(&network).await;
    let masters = || {
        let mut user = ann();
        user.groups.push("system:masters".into());
        user
    };
    let refused = ask(&network, masters(), &[]).await.expect(403);
    assert!(
        refused.text().contains("fleet.bareboat.dev/masters"),
        "{}",
        refused.text()
    );
    for (value, code) in [("false", 403), ("true", 201), ("", 403)] {
        network
            .annotate("c1", "fleet.bareboat.dev/masters", value)
            .await;
        network
            .until("the annotation counts", || async {
                ask(&network, masters(), &[]).await.code == code
            })
            .await;
    }
    network
        .annotate("c1", "fleet.bareboat.dev/masters", "true")
        .await;
    network
        .until("the member sees the group", || async {
            let answer = ask(&network, masters(), &[]).await;
            let groups = value!(["dev", "system:masters", "system:authenticated"]);
            seen(&answer).get("groups") == Some(&groups)
        })
        .await;
    network.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_whom_headers_would_change_is_not_passed_on() {
    let network = Network::start().await;
    let _member = joined(&network).await;
    let changed = |change: fn(&mut User)| {
        let mut user = ann();
        change(&mut user);
        user
    };
    let users = [
        // Receivers remove blanks at the ends, and would see an administrator.
        changed(|user| user.groups.push(" system:masters".into())),
        changed(|user| user.groups.push("system:masters\t".into())),
        changed(|user| user.name = "root ".into()),
        changed(|user| user.uid = " 0".into()),
        changed(|user| {
            user.extra
                .insert("scopes".to_owned(), vec![" all".to_owned()]);
        }),
        // Without a name the account of the fleet would act.
        changed(|user| user.name = Str::default()),
    ];
    for user in users {
        let name = format!("{user:?}");
        let answer = ask(&network, user, &[]).await;
        let refused = answer.text().contains("the user is not passed on");
        assert!(answer.code == 403 && refused, "{name}: {}", answer.text());
    }
    network.fleet.stop().await;
}
