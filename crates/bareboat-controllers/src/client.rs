//! A client of the server in the same process. Its requests take the same way as those from a socket.
//!
//! The code that makes a client chooses its user.

use crate::identity::Identity;
use crate::migration::Api;
use bareboat_api::kind::{BoxFuture, Kind, Origin, User};
use bareboat_api::{Object, Status, Str, Value};
use bareboat_server::Server;
use bareboat_server::authn;
use bareboat_server::request::body::RequestBody;
use bytes::Bytes;
use http::{Method, StatusCode, header};
use http_body_util::BodyExt as _;

/// Maximum size of an answer of another server.
const MOST_REMOTE: usize = 32 << 20;

/// A client of the server in the same process.
#[derive(Clone)]
pub struct Client {
    server: Server,
    user: User,
    agent: &'static str,
    /// Whether requests name the version that objects are stored in.
    raw: bool,
}

bareboat_api::opaque_debug!(Client);

impl Client {
    /// A client that acts as the server itself: the user `system:apiserver` in the group `system:masters`.
    pub fn new(server: Server) -> Client {
        Client {
            server,
            user: authn::in_process(),
            agent: "bareboat-controllers",
            raw: false,
        }
    }

    /// A client that acts as the user of a controller. If roles do not decide on this server, this user would have no
    /// rights, so the client then acts as the server itself.
    pub(crate) fn of_controller(server: &Server, identity: &Identity) -> Client {
        let client = Client::new(server.clone());
        match server.uses_roles() {
            true => Client {
                user: identity.user(),
                ..client
            },
            false => client,
        }
    }

    /// The same client with another name in managed fields and in the user agent.
    #[must_use]
    pub fn named(&self, agent: &'static str) -> Client {
        Client {
            agent,
            ..self.clone()
        }
    }

    /// The same client for metadata and deletion of objects of a kind. Objects of custom kinds are addressed in the version
    /// they are stored in, so that no converter is needed and the version need not be served.
    pub(crate) fn keeping(&self, kind: &Kind) -> Client {
        Client {
            raw: kind.origin == Origin::Custom,
            ..self.clone()
        }
    }

    /// Returns the server that the client calls.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends a request and reads the response. A failure is the Status that the server sent.
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
        let any = usize::MAX;
        self.exchange_within(method, path, accept, content_type, body, any)
            .await
    }

    async fn exchange_within(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        content_type: &'static str,
        body: Option<&Value>,
        most: usize,
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
        let response = match self.raw {
            true => self.server.call_raw(user, request).await,
            false => self.server.call(user, request).await,
        };
        let code = response.status();
        let bytes = http_body_util::Limited::new(response.into_body(), most)
            .collect()
            .await
            .map_err(Status::internal)?
            .to_bytes();
        Ok((code, bytes))
    }

    /// Sends a request that another server answers. Its answer has a maximum size.
    pub(crate) async fn remote(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Status> {
        let json = "application/json";
        let most = MOST_REMOTE;
        let (code, bytes) = self
            .exchange_within(method, path, json, json, body, most)
            .await?;
        read_answer(code, &bytes)
    }

    /// Reads a page of a list that another server answers: the metadata of the objects, or the objects themselves if that
    /// server knows no lists of metadata.
    pub(crate) async fn remote_page(&self, path: &str) -> Result<Bytes, Status> {
        let accept =
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        let json = "application/json";
        let (code, bytes) = self
            .exchange_within(Method::GET, path, accept, json, None, MOST_REMOTE)
            .await?;
        match code.is_success() {
            true => Ok(bytes),
            false => Err(failure(code, &bytes)),
        }
    }

    /// Sends a merge patch that another server answers.
    pub(crate) async fn remote_merge(&self, path: &str, patch: &Value) -> Result<(), Status> {
        let (json, merge) = ("application/json", "application/merge-patch+json");
        let (code, bytes) = self
            .exchange_within(Method::PATCH, path, json, merge, Some(patch), MOST_REMOTE)
            .await?;
        read_answer(code, &bytes).map(|_| ())
    }

    /// Creates an object under the path of its collection.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Status> {
        self.request(Method::POST, path, "application/json", Some(object))
            .await
    }

    /// Creates an object unless one of that name exists.
    pub(crate) async fn ensure(&self, path: &str, object: &Value) -> Result<(), Status> {
        match self.create(path, object).await {
            Err(status) if status.reason != "AlreadyExists" => Err(status),
            _ => Ok(()),
        }
    }

    /// Applies a configuration by server-side apply, taking over fields of other managers.
    pub(crate) async fn apply(
        &self,
        path: &str,
        manager: &str,
        object: &Value,
    ) -> Result<(), Status> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        let media = "application/apply-patch+yaml";
        let applied = self.request(Method::PATCH, &path, media, Some(object));
        applied.await.map(|_| ())
    }

    /// Reads an object.
    pub async fn get(&self, path: &str) -> Result<Object, Status> {
        let value = self
            .request(Method::GET, path, "application/json", None)
            .await?;
        Object::try_from(value).map_err(|_| Status::internal("the response is not an object"))
    }

    /// Replaces an object.
    pub async fn update(&self, path: &str, object: &Value) -> Result<Value, Status> {
        self.request(Method::PUT, path, "application/json", Some(object))
            .await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, Status> {
        self.request(
            Method::PATCH,
            path,
            "application/merge-patch+json",
            Some(patch),
        )
        .await
    }

    /// Deletes an object and ignores the response. An object that does not exist counts as deleted.
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

/// The body of a response, or the Status of a failure.
pub fn read_answer(code: StatusCode, bytes: &[u8]) -> Result<Value, Status> {
    if !code.is_success() {
        return Err(failure(code, bytes));
    }
    match bareboat_wire::json::parse(bytes) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => Err(Status::internal(error)),
    }
}

/// The Status in a response, with those members that controllers look at.
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
        // Not every failure has a Status as its body: that of an unknown path is plain text.
        let start = &bytes[..bytes.len().min(200)];
        message = Str::new(String::from_utf8_lossy(start).trim());
    }
    Status::new(code.as_u16(), reason, message.as_str())
}
