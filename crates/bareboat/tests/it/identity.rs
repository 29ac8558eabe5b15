//! Who gets in and who decides: JWT issuers, front proxies, webhooks, bootstrap tokens, and rights that are taken away.

mod account_tokens;
mod anonymous;
mod authorizers;
mod bootstrap;
mod certificates;
mod coverage;
mod default_roles;
mod delegation;
mod escalation;
mod front_proxy;
mod impersonation;
mod issuers;
mod judged;
mod names;
mod peer;
mod revocation;
mod webhook;

use crate::socket::Connection;
use crate::support::*;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The user of a request with these headers as the server knows it, or the code of the refusal.
async fn who(connection: &mut Connection, headers: &[(&str, &str)]) -> Result<Value, u16> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    let answer = connection.send("POST", WHO, &all, review.to_string()).await;
    match answer.code {
        201 => Ok(answer.json()["status"]["userInfo"].clone()),
        code => Err(code),
    }
}

/// The same with a bearer token.
async fn holder(connection: &mut Connection, token: &str) -> Result<Value, u16> {
    let header = format!("Bearer {token}");
    who(connection, &[("authorization", &header)]).await
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs() as i64
}
