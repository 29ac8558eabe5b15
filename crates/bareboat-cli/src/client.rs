//! A client of any Kubernetes API, with the credentials of a kubeconfig.

use anyhow::{Context as _, Result, anyhow, bail};
use bareboat::api::kind::BoxFuture;
use bareboat::api::{Status, Value};
use bareboat::controllers::migration::Api;
use bareboat::controllers::read_answer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{ConfigBuilderExt as _, FixedServerNameResolver, HttpsConnector};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of an answer.
const MAX_ANSWER: usize = 256 << 20;
/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of a server.
pub(crate) struct Client {
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: String,
    authorization: Option<String>,
}

impl Client {
    /// A client with the credentials of a kubeconfig context, for its server or another one.
    pub(crate) fn new(path: &Path, context: Option<&str>, server: Option<&str>) -> Result<Client> {
        let kubeconfig = Kubeconfig::read(path)?;
        let context = kubeconfig.context(context)?;
        let named = |key: &str| context.get(key).and_then(Value::as_str).unwrap_or("");
        let cluster = kubeconfig.entry("clusters", "cluster", named("cluster"))?;
        let user = match named("user") {
            "" => Value::object(),
            name => kubeconfig.entry("users", "user", name)?,
        };
        let server = match server.or_else(|| cluster.get("server")?.as_str()) {
            Some(server) => server.trim_end_matches('/').to_owned(),
            None => bail!("the cluster in {} has no server", path.display()),
        };
        let tls = kubeconfig.tls(&cluster, &user)?;
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        let connector = match cluster.get("tls-server-name").and_then(Value::as_str) {
            Some(name) => {
                let name = ServerName::try_from(name.to_owned())
                    .with_context(|| format!("tls-server-name {name} is not a valid name"))?;
                connector.with_server_name_resolver(FixedServerNameResolver::new(name))
            }
            None => connector,
        };
        let connector = connector.enable_http1().enable_http2().build();
        Ok(Client {
            http: hyper_util::client::legacy::Client::builder(TokioExecutor::new())
                .build(connector),
            server,
            authorization: kubeconfig
                .token(&user)?
                .map(|token| format!("Bearer {token}")),
        })
    }

    /// Reads a document.
    pub(crate) async fn get(&self, path: &str, accept: &str) -> Result<Value, Status> {
        self.exchange(Method::GET, path, accept, None).await
    }

    /// Creates an object.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, Status> {
        let body = Some(("application/json", object));
        self.exchange(Method::POST, path, "application/json", body)
            .await
    }

    /// Deletes an object. One that does not exist counts as deleted.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), Status> {
        let removed = self.exchange(Method::DELETE, path, "application/json", None);
        match removed.await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }

    /// Applies an object by server-side apply, and takes fields from other managers.
    pub(crate) async fn apply(&self, path: &str, object: &Value) -> Result<Value, Status> {
        let path = format!("{path}?fieldManager=bareboat-fleet&force=true");
        let body = Some(("application/apply-patch+yaml", object));
        self.exchange(Method::PATCH, &path, "application/json", body)
            .await
    }

    /// Returns the URL of the server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&'static str, &Value)>,
    ) -> Result<Value, Status> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server))
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, "bareboat");
        if let Some((content_type, _)) = body {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let body = body.map(|(_, value)| Bytes::from(value.to_json()));
        let request = request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| unreachable(&error))?;
        let exchange = async {
            let response = self
                .http
                .request(request)
                .await
                .map_err(|error| unreachable(&error))?;
            let code = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await;
            let body = body.map_err(|error| unreachable(&*error))?.to_bytes();
            read_answer(code, &body)
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(Status::timeout("the server did not answer in a minute")),
        }
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
        let body = body.map(|body| ("application/merge-patch+json", body));
        Box::pin(self.exchange(method, path, accept, body))
    }
}

/// Waits for one exchange on a runtime of its own.
pub(crate) fn block_on<F: Future>(work: F) -> Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    Ok(runtime.block_on(work))
}

/// The kubeconfig that was named, or the first that is there.
pub(crate) fn find_kubeconfig(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let own = PathBuf::from("bareboat-data/admin.kubeconfig");
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    let found = [Some(own), home].into_iter().flatten();
    match found.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("there is no kubeconfig; name one with --kubeconfig"),
    }
}

/// Describes a failed request with all its causes, because the outermost one says little.
fn unreachable(error: &dyn std::error::Error) -> Status {
    let mut text = format!("the server cannot be reached: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    Status::new(0, "", text)
}

/// A kubeconfig and its path, which relative paths in it are resolved against.
pub(crate) struct Kubeconfig {
    value: Value,
    path: PathBuf,
}

impl Kubeconfig {
    pub(crate) fn read(path: &Path) -> Result<Kubeconfig> {
        let text = fs::read(path)
            .with_context(|| format!("the kubeconfig {} cannot be read", path.display()))?;
        let parsed = bareboat_wire::yaml::parse(&text)
            .with_context(|| format!("{} is not a kubeconfig", path.display()))?;
        Ok(Kubeconfig {
            value: parsed.value,
            path: path.to_owned(),
        })
    }

    pub(crate) fn context(&self, name: Option<&str>) -> Result<Value> {
        let current = self.value.get("current-context").and_then(Value::as_str);
        let name = name.or(current).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            anyhow!(
                "{} has no current context; name one with --context",
                self.path.display()
            )
        })?;
        self.entry("contexts", "context", name)
    }

    /// Returns an entry of one of the lists.
    pub(crate) fn entry(&self, list: &str, key: &str, name: &str) -> Result<Value> {
        let entries = self
            .value
            .get(list)
            .and_then(Value::as_array)
            .unwrap_or(&[]);
        let found = entries
            .iter()
            .find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))
            .and_then(|entry| entry.get(key));
        found
            .cloned()
            .ok_or_else(|| anyhow!("{} has no {key} {name:?}", self.path.display()))
    }

    /// Returns the whole document.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the data of a field, or of the file that another field names.
    pub(crate) fn data(&self, from: &Value, data: &str, file: &str) -> Result<Option<Vec<u8>>> {
        if let Some(text) = from.get(data).and_then(Value::as_str) {
            let bytes = STANDARD
                .decode(text.trim())
                .with_context(|| format!("{data} in {} is not base64", self.path.display()))?;
            return Ok(Some(bytes));
        }
        let Some(file) = from.get(file).and_then(Value::as_str) else {
            return Ok(None);
        };
        let path = self.path.parent().unwrap_or(Path::new(".")).join(file);
        let bytes =
            fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Some(bytes))
    }

    fn tls(&self, cluster: &Value, user: &Value) -> Result<ClientConfig> {
        if cluster.get("insecure-skip-tls-verify") == Some(&Value::Bool(true)) {
            bail!(
                "insecure-skip-tls-verify is not supported; name the CA of the server in certificate-authority"
            );
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("TLS cannot be set up")?;
        let ca = self.data(
            cluster,
            "certificate-authority-data",
            "certificate-authority",
        )?;
        let builder = match ca {
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(&pem) {
                    let certificate = certificate.context("the CA in the kubeconfig is not PEM")?;
                    roots
                        .add(certificate)
                        .context("the CA in the kubeconfig is not a certificate")?;
                }
                builder.with_root_certificates(roots)
            }
            None => builder
                .with_native_roots()
                .context("the system has no trusted certificates")?,
        };
        let certificate = self.data(user, "client-certificate-data", "client-certificate")?;
        let key = self.data(user, "client-key-data", "client-key")?;
        let (Some(certificate), Some(key)) = (certificate, key) else {
            return Ok(builder.with_no_client_auth());
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
        let chain = chain.context("the client certificate is not PEM")?;
        let key = PrivateKeyDer::from_pem_slice(&key).context("there is no client key in PEM")?;
        builder
            .with_client_auth_cert(chain, key)
            .context("client certificate and key do not belong together")
    }

    fn token(&self, user: &Value) -> Result<Option<String>> {
        if let Some(token) = user.get("token").and_then(Value::as_str) {
            return Ok(Some(token.to_owned()));
        }
        if let Some(file) = user.get("tokenFile").and_then(Value::as_str) {
            let path = self.path.parent().unwrap_or(Path::new(".")).join(file);
            let token = fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            return Ok(Some(token.trim().to_owned()));
        }
        for key in ["exec", "auth-provider", "username"] {
            if user.get(key).is_some() {
                bail!(
                    "the user in {} logs in with {key}, which is not supported; use a client certificate or a token",
                    self.path.display()
                );
            }
        }
        Ok(None)
    }
}
