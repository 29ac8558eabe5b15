//! Groups that a function answers, and admission webhooks that a server answers.

use crate::calls::{get, send};
use bareboat::prelude::*;
use bareboat::server::reply;

fn server() -> Server {
    let tides = Computed::group("tides.example.com", &["v2", "v1"], |visit| async move {
        let ask = &visit.question;
        let answer = value!({
            "version": (ask.version.as_str()), "namespace": (ask.namespace.as_str()),
            "resource": (ask.resource.as_str()), "name": (ask.name.as_str()), "part": (ask.subresource.as_str()),
        });
        Ok(reply::json(http::StatusCode::OK, &answer))
    });
    let builder = Server::builder().computed(tides).authorizer(AllowAll);
    let builder = builder.admission_webhook("/mutate", |request: Value| async move {
        match request.at(&["object", "bad"]) {
            Some(_) => Err(Status::new(422, "Invalid", "it is bad")),
            None => Ok(vec![value!({"op": "add", "path": "/seen", "value": true})]),
        }
    });
    builder.build().unwrap()
}

#[tokio::test]
async fn a_function_answers_all_paths_of_a_group() {
    let server = server();
    let root = "/apis/tides.example.com";
    let odd = format!("{root}/v1/namespaces/a/pods/*/height");
    let wanted = value!({"version": "v1", "namespace": "a", "resource": "pods", "name": "*", "part": "height"});
    assert_eq!(get(&server, "ada", &odd).await, wanted);
    let flat = get(&server, "ada", &format!("{root}/v2/harbour")).await;
    assert_eq!(flat.get("resource"), Some(&Value::string("harbour")));
    let unknown = format!("{root}/v3/harbour");
    assert_eq!(send(&server, "ada", "GET", &unknown, None).await.0, 404);

    let group = get(&server, "ada", root).await;
    let preferred = group.at(&["preferredVersion", "version"]);
    assert_eq!(preferred, Some(&Value::string("v2")));
    let list = get(&server, "ada", &format!("{root}/v1")).await;
    assert_eq!(list.get("resources"), Some(&value!([])));
    get(&server, "ada", "/openapi/v3").await;
}

#[tokio::test]
async fn a_webhook_answers_reviews() {
    let server = server();
    let review = |object: Value| {
        let request = value!({"uid": "7", "object": object});
        value!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    };
    let (code, good) = send(&server, "ada", "POST", "/mutate", Some(&review(value!({})))).await;
    assert_eq!(code, 200, "{good}");
    let answer = |review: &Value, path: &[&str]| {
        let response = review.get("response").cloned().unwrap_or_default();
        response.at(path).cloned().unwrap_or_default()
    };
    assert_eq!(answer(&good, &["uid"]), Value::string("7"));
    assert_eq!(answer(&good, &["allowed"]), value!(true));
    assert_eq!(answer(&good, &["patchType"]), Value::string("JSONPatch"));
    let bad = review(value!({"bad": 1}));
    let (_, bad) = send(&server, "ada", "POST", "/mutate", Some(&bad)).await;
    assert_eq!(answer(&bad, &["allowed"]), value!(false));
    assert_eq!(answer(&bad, &["status", "code"]), value!(422));
    let pod = value!({"kind": "Pod"});
    let (code, _) = send(&server, "ada", "POST", "/mutate", Some(&pod)).await;
    assert_eq!(code, 400);
}
