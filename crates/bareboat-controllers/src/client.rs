//! The front door of the server, from inside the process.

use crate::migration::Api;
use bareboat_api::kind::{BoxFuture, Kind, User};
use bareboat_api::{Object, Status, Str, Value};
use bareboat_server::Server;
use bareboat_server::authn;
use bareboat_server::request::body::RequestBody;
use bytes::Bytes;
use http::{Method, StatusCode, header};
use http_body_util::BodyExt as _;

/// A client of the server it lives in.
#[derive(Clone)]
pub struct Client {
    server: Server,
    user: User,
    agent: &'static str,
    /// Whether objects are addressed in the version they are stored in.
    as_stored: bool,
}

impl Client {
    /// A client that acts as the server itself.
    pub fn new(server: Server) -> Client {
        Client {
            server,
            user: authn::in_process(),
            agent: "bareboat-controllers",
            as_stored: false,
        }
    }

    /// The same client under another name in managed fields and logs.
    #[must_use]
    pub fn named(&self, agent: &'static str) -> Client {
        Client {
            agent,
            ..self.clone()
        }
    }

    /// The same client where objects of a kind are kept in order: custom kinds are addressed as they are stored, so that
    /// no converter is needed and the version need not be served.
    pub(crate) fn keeping(&self, kind: &Kind) -> Client {
        Client {
            as_stored: kind.custom,
            ..self.clone()
        }
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends a request and reads the answer; failures come back as the Status the server gave.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Option<&Value>,
    ) -> Result<Value, Status> {
        let (code, bytes) = self
            .exchange(method, path, "application/json", content_type, body)
            .await?;
        read_answer(code, &bytes)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        content_type: &'static str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), Status> {
        let bytes = body
            .map(|value| Bytes::from(value.to_json()))
            .unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::USER_AGENT, self.agent)
            .body(RequestBody::Memory(bytes))
            .map_err(Status::internal)?;
        let user = self.user.clone();
        let response = match self.as_stored {
            true => self.server.call_stored(user, request).await,
            false => self.server.call(user, request).await,
        };
        let code = response.status();
        let bytes = response
            .into_body()
            .collect()
            .await
            .map_err(Status::internal)?
            .to_bytes();
        Ok((code, bytes))
    }

    /// Creates an object under the path of its collection.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Status> {
        self.request(Method::POST, path, "application/json", Some(object))
            .await
    }

    /// Reads an object.
    pub async fn get(&self, path: &str) -> Result<Object, Status> {
        let value = self
            .request(Method::GET, path, "application/json", None)
            .await?;
        Object::try_from(value).map_err(|_| Status::internal("the answer is no object"))
    }

    /// Replaces an object.
    pub async fn update(&self, path: &str, object: &Value) -> Result<Value, Status> {
        self.request(Method::PUT, path, "application/json", Some(object))
            .await
    }

    /// Changes part of an object.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, Status> {
        self.request(
            Method::PATCH,
            path,
            "application/merge-patch+json",
            Some(patch),
        )
        .await
    }

    /// Deletes an object without looking at the answer; one that is gone already is as good as deleted.
    pub(crate) async fn remove(&self, path: &str, options: &Value) -> Result<(), Status> {
        let (code, bytes) = self
            .exchange(
                Method::DELETE,
                path,
                "application/json",
                "application/json",
                Some(options),
            )
            .await?;
        if code.is_success() || code == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(failure(code, &bytes))
    }

    /// Deletes an object or a collection.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Value, Status> {
        self.request(Method::DELETE, path, "application/json", Some(options))
            .await
    }
}

impl Api for Client {
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        accept: &'static str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let patch = "application/merge-patch+json";
            let (code, bytes) = self.exchange(method, path, accept, patch, body).await?;
            read_answer(code, &bytes)
        })
    }
}

/// What an answer says, or the Status of a failure.
pub fn read_answer(code: StatusCode, bytes: &[u8]) -> Result<Value, Status> {
    if !code.is_success() {
        return Err(failure(code, bytes));
    }
    match bareboat_wire::json::parse(bytes) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => Err(Status::internal(error)),
    }
}

/// The Status in an answer, as far as controllers look at it.
fn failure(code: StatusCode, bytes: &[u8]) -> Status {
    let value = bareboat_wire::json::parse(bytes)
        .map(|parsed| parsed.value)
        .unwrap_or_default();
    let text = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .map(Str::new)
            .unwrap_or_default()
    };
    let reason = match text("reason").as_str() {
        "NotFound" => "NotFound",
        "AlreadyExists" => "AlreadyExists",
        "Conflict" => "Conflict",
        "Forbidden" => "Forbidden",
        "Invalid" => "Invalid",
        _ => "",
    };
    let mut message = text("message");
    if message.is_empty() {
        // Not every refusal is a Status: unknown paths are told in plain text.
        let start = &bytes[..bytes.len().min(200)];
        message = Str::new(String::from_utf8_lossy(start).trim());
    }
    Status::new(code.as_u16(), reason, message.as_str())
}
