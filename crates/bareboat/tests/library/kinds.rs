//! Rules, functions and actions of typed kinds, and kinds by kube's derive macro.

use crate::calls::{POSTS, Post, get, post, posts, send, write};
use bareboat::TypedKindError;
use bareboat::prelude::*;
use kube::CustomResource;

fn serve(kind: Kind) -> Server {
    Server::builder()
        .kind(kind)
        .authorizer(AllowAll)
        .build()
        .unwrap()
}

#[tokio::test]
async fn expressions_and_functions_validate_objects_of_all_versions() {
    let kind = posts()
        .rule("self.spec.title != 'rude'", "be polite")
        .validate(|new: &Post, old: Option<&Post>, _: &WriteContext<'_>| {
            let path = FieldPath::new("spec").child("draft");
            match old.is_some_and(|old| !old.spec.draft && new.spec.draft) {
                true => vec![FieldError::forbidden(path, "it is published")],
                false => Vec::new(),
            }
        });
    let server = serve(kind.build().unwrap());
    let (code, body) = send(&server, "ada", "POST", POSTS, Some(&post("rude", false))).await;
    assert_eq!(code, 422);
    assert!(body.to_string().contains("be polite"), "{body}");
    write(&server, "ada", "POST", POSTS, &post("a", false)).await;
    let draft = value!({"spec": {"draft": true}});
    let (code, body) = send(&server, "ada", "PATCH", &format!("{POSTS}/a"), Some(&draft)).await;
    assert_eq!(code, 422);
    assert!(body.to_string().contains("it is published"), "{body}");
}

#[test]
fn a_rule_that_does_not_compile_is_an_error() {
    let built = posts().rule("self.spec.nothing == 1", "no").build();
    assert!(
        matches!(built, Err(TypedKindError::Rule { .. })),
        "{built:?}"
    );
    assert!(
        posts()
            .rule("has(self.spec.title)", "title")
            .build()
            .is_ok()
    );
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Vote {
    points: i64,
}

#[tokio::test]
async fn an_action_takes_a_typed_body() {
    let kind = posts().action::<Vote>("vote", "Vote", |call| {
        Box::pin(async move {
            match call.body.points {
                points @ 1..=5 => Ok(Vote { points: points * 2 }),
                _ => Err(Status::bad_request(format!("not for {}", call.posted.name))),
            }
        })
    });
    let server = serve(kind.build().unwrap());
    write(&server, "ada", "POST", POSTS, &post("a", false)).await;
    let vote = format!("{POSTS}/a/vote");
    let answer = write(&server, "ada", "POST", &vote, &value!({"points": 4})).await;
    assert_eq!(answer.get("points"), Some(&Value::Int(8)));
    assert_eq!(answer.get("kind"), Some(&Value::string("Vote")));
    let (code, body) = send(&server, "ada", "POST", &vote, Some(&value!({"points": 9}))).await;
    assert_eq!(code, 400);
    assert!(body.to_string().contains("not for a"), "{body}");
    let bad = value!({"points": "many"});
    assert!(send(&server, "ada", "POST", &vote, Some(&bad)).await.0 >= 400);
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "sea.example.com", version = "v1", kind = "Boat", namespaced)]
#[kube(printcolumn(name = "Berths", type_ = "integer", json_path = ".spec.berths"))]
struct BoatSpec {
    #[schemars(range(max = 12))]
    berths: u32,
}

#[tokio::test]
async fn a_kind_can_come_from_the_derive_macro_of_kube() {
    let server = serve(bareboat::client::kind_of::<Boat>().unwrap());
    let boats = "/apis/sea.example.com/v1/namespaces/default/boats";
    let boat = |berths: i64| {
        value!({
            "apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": {"name": "ada"},
            "spec": {"berths": berths},
        })
    };
    assert_eq!(
        send(&server, "ada", "POST", boats, Some(&boat(40))).await.0,
        422
    );
    write(&server, "ada", "POST", boats, &boat(4)).await;
    let found = get(&server, "ada", &format!("{boats}/ada")).await;
    assert_eq!(found.at(&["spec", "berths"]), Some(&Value::Int(4)));
}
