//! A client of paths: objects as JSON, without types and without discovery.

use bareboat_api::Status;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Client, Error};
use serde_json::{Value, json};
use std::path::Path;

/// Why a kubeconfig cannot be used.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads and writes objects by their paths. Errors of the server are returned as it sent them, so that a subresource or a
/// webhook can pass them on to its own client.
///
/// ```no_run
/// use bareboat::client::PathClient;
/// use serde_json::json;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let hub = PathClient::from_kubeconfig("hub.kubeconfig").await?;
/// let path = "/apis/sea.example.com/v1/namespaces/default/boats/one";
/// let boat = hub.get(path).await?;
/// hub.merge(path, &json!({"spec": {"masts": 3}})).await?;
/// # drop(boat);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PathClient(Client);

bareboat_api::opaque_debug!(PathClient);

impl PathClient {
    /// A client with the address and the credentials of another one.
    pub fn new(client: Client) -> PathClient {
        PathClient(client)
    }

    /// A client with the address and the credentials of the current context of a kubeconfig.
    pub async fn from_kubeconfig(path: impl AsRef<Path>) -> Result<PathClient, BoxError> {
        let kubeconfig = Kubeconfig::read_from(path)?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(PathClient(Client::try_from(config)?))
    }

    /// Returns the client of kube-rs, for watches and typed objects.
    pub fn client(&self) -> Client {
        self.0.clone()
    }

    /// Reads an object or a list.
    pub async fn get(&self, path: &str) -> Result<Value, Status> {
        self.send("GET", path, None).await
    }

    /// Reads an object that may not exist.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, Status> {
        match self.get(path).await {
            Err(status) if status.code == 404 => Ok(None),
            found => found.map(Some),
        }
    }

    /// Creates an object; the path is that of the collection.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, Status> {
        self.send("POST", path, Some(object)).await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, Status> {
        self.send("PATCH", path, Some(patch)).await
    }

    /// Changes the status of an object by a merge patch; the path is that of the object.
    pub async fn merge_status(&self, path: &str, status: &Value) -> Result<Value, Status> {
        let path = format!("{path}/status");
        self.merge(&path, &json!({"status": status})).await
    }

    /// Deletes an object, or the objects of a collection that the query selects.
    pub async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.send("DELETE", path, None).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Status> {
        let media = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, media)
            .body(body.map(Value::to_string).unwrap_or_default().into_bytes())
            .map_err(|error| Status::bad_request(format!("the path cannot be sent: {error}")))?;
        self.0.request(request).await.map_err(status)
    }
}

/// Returns what another server answered, or an internal error if it did not answer.
fn status(error: Error) -> Status {
    match error {
        Error::Api(found) => {
            let mut status = Status::new(found.code, "", found.message);
            status.reason = found.reason.into();
            status
        }
        other => Status::internal(format!("another server did not answer: {other}")),
    }
}

/// Returns the list of owner references with one controller, for the metadata of an object that it owns.
pub fn owned_by(owner: &Value) -> Value {
    let (version, kind) = (&owner["apiVersion"], &owner["kind"]);
    let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
    json!([{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}
