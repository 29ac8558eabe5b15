//! Admission webhooks that this server answers: paths that other API servers post AdmissionReviews to.

use crate::reply::{self, Response};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Map, Status, Value, value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decides about an AdmissionRequest: a JSON patch, or why the request is refused.
type Decide = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Vec<Value>, Status>> + Send + Sync>;

/// The webhooks by path.
#[derive(Clone, Default)]
pub(crate) struct WebhookPaths(BTreeMap<String, Decide>);

impl WebhookPaths {
    pub(super) fn add<F, R>(&mut self, path: &str, decide: F)
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<Value>, Status>> + Send + 'static,
    {
        let decide: Decide = Arc::new(move |request| Box::pin(decide(request)));
        self.0.insert(path.trim_end_matches('/').to_owned(), decide);
    }

    /// Returns whether a path is that of a webhook.
    pub(crate) fn has(&self, path: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(path.trim_end_matches('/'))
    }

    /// Answers an AdmissionReview.
    pub(super) async fn answer(&self, path: &str, body: &[u8]) -> Result<Response, Status> {
        let decide = self.0.get(path.trim_end_matches('/'));
        let decide = decide.ok_or_else(Status::no_such_route)?;
        let review = bareboat_wire::json::parse(body)
            .map_err(|error| Status::bad_request(format!("the body is not JSON: {error}")))?;
        let mut review = review.value;
        let kind = review.at(&["kind"]).and_then(Value::as_str);
        let uid = review.at(&["request", "uid"]).cloned();
        let (Some("AdmissionReview"), Some(uid)) = (kind, uid) else {
            return Err(Status::bad_request(
                "the body must be an AdmissionReview with a request",
            ));
        };
        let request = review.make_object().remove("request").unwrap_or_default();
        let answer = respond(uid, decide(request).await);
        let answer = value!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer,
        });
        Ok(reply::json(StatusCode::OK, &answer))
    }
}

fn respond(uid: Value, decided: Result<Vec<Value>, Status>) -> Value {
    let mut answer = Map::new();
    answer.insert("uid", uid);
    answer.insert("allowed", decided.is_ok().into());
    match decided {
        Ok(patch) if patch.is_empty() => {}
        Ok(patch) => {
            let patch = BASE64_STANDARD.encode(Value::Array(patch).to_json());
            answer.insert("patchType", "JSONPatch".into());
            answer.insert("patch", Value::string(patch));
        }
        Err(status) => {
            answer.insert("status", status.to_value());
        }
    }
    Value::Object(answer)
}
