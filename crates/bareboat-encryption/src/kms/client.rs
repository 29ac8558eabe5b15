//! A client of a KMS v2 plug-in: gRPC over a Unix socket, for callers that block.

use super::KmsError;
use super::messages::{Field, entry, fields, put_bytes, put_map};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Version, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// The maximum size of a plug-in's answer.
const MAX_ANSWER: usize = 64 << 10;
/// The maximum size of an encrypted key.
const MAX_CIPHERTEXT: usize = 1 << 10;
/// The maximum length of a key id.
const MAX_KEY_ID: usize = 1 << 10;
/// The maximum size of all annotations.
const MAX_ANNOTATIONS: usize = 32 << 10;

/// The status of a plug-in.
pub(super) struct PluginStatus {
    pub(super) version: String,
    pub(super) healthz: String,
    pub(super) key_id: String,
}

/// A key that a plug-in encrypted.
#[derive(Clone, Debug)]
pub(super) struct Encrypted {
    pub(super) ciphertext: Vec<u8>,
    pub(super) key_id: String,
    pub(super) annotations: Vec<(String, Vec<u8>)>,
}

/// A connection that is opened when it is first needed, and again after it was lost.
pub(super) struct Connection {
    socket: PathBuf,
    timeout: Duration,
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

/// A client that calls one plug-in.
pub(super) struct Client {
    connection: Arc<Connection>,
    /// A separate runtime, so that callers may block on any thread.
    runtime: Option<Runtime>,
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    pub(super) fn new(socket: PathBuf, timeout: Duration) -> std::io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .thread_name("kms")
            .enable_all()
            .build()?;
        Ok(Client {
            connection: Arc::new(Connection {
                socket,
                timeout,
                sender: Mutex::new(None),
            }),
            runtime: Some(runtime),
        })
    }

    pub(super) fn connection(&self) -> Arc<Connection> {
        self.connection.clone()
    }

    /// Runs `work` in the background until the client is dropped.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Waits for `work`, which runs on the client's own threads.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, KmsError>> + Send + 'static,
    ) -> Result<T, KmsError> {
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = reply.send(work.await);
        });
        let ended = || KmsError::Unreachable("the client has ended".to_owned());
        answer.recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Connection {
    pub(super) async fn status(&self) -> Result<PluginStatus, KmsError> {
        let answer = self.call("Status", Vec::new()).await?;
        let mut status = PluginStatus {
            version: String::new(),
            healthz: String::new(),
            key_id: String::new(),
        };
        for (number, field) in read(&answer)? {
            match (number, field) {
                (1, Field::Bytes(bytes)) => status.version = text(bytes),
                (2, Field::Bytes(bytes)) => status.healthz = text(bytes),
                (3, Field::Bytes(bytes)) => status.key_id = text(bytes),
                _ => {}
            }
        }
        check_key_id(&status.key_id)?;
        Ok(status)
    }

    pub(super) async fn encrypt(&self, plain: &[u8], uid: &str) -> Result<Encrypted, KmsError> {
        let mut request = Vec::new();
        put_bytes(&mut request, 1, plain);
        put_bytes(&mut request, 2, uid.as_bytes());
        let answer = self.call("Encrypt", request).await?;
        let mut encrypted = Encrypted {
            ciphertext: Vec::new(),
            key_id: String::new(),
            annotations: Vec::new(),
        };
        for (number, field) in read(&answer)? {
            match (number, field) {
                (1, Field::Bytes(bytes)) => encrypted.ciphertext = bytes.to_vec(),
                (2, Field::Bytes(bytes)) => encrypted.key_id = text(bytes),
                (3, Field::Bytes(bytes)) => {
                    encrypted
                        .annotations
                        .push(entry(bytes).ok_or_else(malformed)?);
                }
                _ => {}
            }
        }
        check_key_id(&encrypted.key_id)?;
        let annotations: usize = encrypted
            .annotations
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        if encrypted.ciphertext.is_empty() || encrypted.ciphertext.len() > MAX_CIPHERTEXT {
            return Err(KmsError::BadAnswer(
                "the encrypted key is empty or larger than 1 KiB",
            ));
        }
        if annotations > MAX_ANNOTATIONS {
            return Err(KmsError::BadAnswer(
                "the annotations are larger than 32 KiB",
            ));
        }
        Ok(encrypted)
    }

    pub(super) async fn decrypt(
        &self,
        encrypted: &Encrypted,
        uid: &str,
    ) -> Result<Vec<u8>, KmsError> {
        let mut request = Vec::new();
        put_bytes(&mut request, 1, &encrypted.ciphertext);
        put_bytes(&mut request, 2, uid.as_bytes());
        put_bytes(&mut request, 3, encrypted.key_id.as_bytes());
        put_map(&mut request, 4, &encrypted.annotations);
        let answer = self.call("Decrypt", request).await?;
        for (number, field) in read(&answer)? {
            if let (1, Field::Bytes(bytes)) = (number, field) {
                return Ok(bytes.to_vec());
            }
        }
        Err(KmsError::BadAnswer("the decrypted key is empty"))
    }

    async fn call(&self, method: &str, message: Vec<u8>) -> Result<Bytes, KmsError> {
        let late = || KmsError::Unreachable(format!("no answer within {:?}", self.timeout));
        match tokio::time::timeout(self.timeout, self.exchange(method, message)).await {
            Ok(answer) => answer,
            Err(_) => {
                // A connection that does not answer is not used again.
                *self.sender.lock().await = None;
                Err(late())
            }
        }
    }

    async fn exchange(&self, method: &str, message: Vec<u8>) -> Result<Bytes, KmsError> {
        let mut body = vec![0];
        body.extend_from_slice(&u32::try_from(message.len()).unwrap_or(0).to_be_bytes());
        body.extend_from_slice(&message);
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("http://localhost/v2.KeyManagementService/{method}"))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, "bareboat")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| KmsError::Unreachable(error.to_string()))?;
        let sent = self.sender().await?.send_request(request);
        let response = match sent.await {
            Ok(response) => response,
            Err(error) => {
                *self.sender.lock().await = None;
                return Err(KmsError::Unreachable(error.to_string()));
            }
        };
        if response.status() != StatusCode::OK {
            return Err(KmsError::BadAnswer("the answer is not gRPC"));
        }
        let (head, body) = response.into_parts();
        let collected = Limited::new(body, MAX_ANSWER)
            .collect()
            .await
            .map_err(|error| KmsError::Unreachable(error.to_string()))?;
        // The status of a failure without a message is in the headers, any other status in the trailers.
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let found = |name: &str| {
            let value = trailers.get(name).or_else(|| head.headers.get(name))?;
            Some(value.to_str().unwrap_or("").to_owned())
        };
        match found("grpc-status").as_deref() {
            Some("0") => {}
            status => {
                let message = found("grpc-message").unwrap_or_default();
                return Err(KmsError::Refused {
                    code: status.unwrap_or("none").chars().take(8).collect(),
                    message: message.chars().take(500).collect(),
                });
            }
        }
        let bytes = collected.to_bytes();
        match (bytes.first(), bytes.get(1..5)) {
            (Some(0), Some(length)) if length == u32::to_be_bytes(bytes.len() as u32 - 5) => {
                Ok(bytes.slice(5..))
            }
            _ => Err(malformed()),
        }
    }

    async fn sender(&self) -> Result<SendRequest<Full<Bytes>>, KmsError> {
        let mut known = self.sender.lock().await;
        if let Some(sender) = known.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let unreachable = |error: &dyn std::fmt::Display| {
            KmsError::Unreachable(format!("{}: {error}", self.socket.display()))
        };
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| unreachable(&error))?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(&error))?;
        tokio::spawn(connection);
        *known = Some(sender.clone());
        Ok(sender)
    }
}

fn read(message: &[u8]) -> Result<Vec<(u32, Field<'_>)>, KmsError> {
    fields(message).ok_or_else(malformed)
}

fn malformed() -> KmsError {
    KmsError::BadAnswer("the message is malformed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn check_key_id(id: &str) -> Result<(), KmsError> {
    match id.is_empty() || id.len() > MAX_KEY_ID {
        true => Err(KmsError::BadAnswer(
            "the id of the key is empty or longer than 1 KiB",
        )),
        false => Ok(()),
    }
}
