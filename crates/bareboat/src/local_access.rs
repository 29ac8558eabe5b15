//! TLS and an administrator for a program that is its own API server, without files to prepare.

use crate::issuing::{Authority, Pair};
use bareboat_api::{Value, value};
use bareboat_certificates::IssueError;
use bareboat_server::server::ListenError;
use bareboat_server::{Server, ServerBuilder, Tls, TlsError};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why a server cannot be reached with TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalAccessError {
    /// A certificate cannot be made.
    #[error("a certificate cannot be made")]
    Certificate(#[from] IssueError),
    /// A certificate cannot be used.
    #[error("a certificate cannot be used")]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The kubeconfig cannot be written.
    #[error("the kubeconfig {} cannot be written", .0.display())]
    Kubeconfig(PathBuf, #[source] io::Error),
}

/// A CA, a serving certificate for `localhost`, and an administrator with a client certificate.
///
/// All of it is made anew at each start and stays in memory. Clients find it in a kubeconfig, which is written once the
/// server listens. A server with certificates from elsewhere uses [`Tls::from_pem`].
///
/// ```no_run
/// use bareboat::LocalAccess;
/// use bareboat::prelude::*;
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let access = LocalAccess::new("boats")?;
/// let server = access.install(Server::builder()).build()?;
/// let address = access.listen(&server, "127.0.0.1:6443".parse()?, "admin.kubeconfig").await?;
/// println!("export KUBECONFIG=admin.kubeconfig; the server listens on https://{address}");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LocalAccess {
    ca: String,
    tls: Tls,
    admin: Pair,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a certificate and its key")
    }
}

impl LocalAccess {
    /// Makes the certificates of a server with a name.
    pub fn new(name: &str) -> Result<LocalAccess, LocalAccessError> {
        let authority = Authority::new(name)?;
        let server = authority.server(name, &["localhost"])?;
        let tls = Tls::from_pem(&server.certificate, &server.key, Some(&authority.ca))?;
        Ok(LocalAccess {
            admin: authority.user("admin", "system:masters")?,
            ca: authority.ca,
            tls,
        })
    }

    /// Accepts client certificates of the CA.
    #[must_use]
    pub fn install(&self, builder: ServerBuilder) -> ServerBuilder {
        match self.tls.client_certificates() {
            Some(clients) => builder.authenticator(clients),
            None => builder,
        }
    }

    /// Listens with TLS, and writes the administrator's kubeconfig, which only the owner of the file may read.
    pub async fn listen(
        &self,
        server: &Server,
        address: SocketAddr,
        kubeconfig: impl AsRef<Path>,
    ) -> Result<SocketAddr, LocalAccessError> {
        let path = kubeconfig.as_ref();
        let address = server.listen(address, Some(self.tls.clone())).await?;
        let text = self.kubeconfig(&format!("https://localhost:{}", address.port()));
        write_private(path, &text.to_json_pretty())
            .map_err(|error| LocalAccessError::Kubeconfig(path.to_owned(), error))?;
        Ok(address)
    }

    fn kubeconfig(&self, url: &str) -> Value {
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        value!({
            "apiVersion": "v1", "kind": "Config", "current-context": "local",
            "clusters": [{"name": "local", "cluster": {
                "server": url, "certificate-authority-data": (encode(&self.ca)),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": (encode(&self.admin.certificate)),
                "client-key-data": (encode(&self.admin.key)),
            }}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
        })
    }
}

/// Replaces a file at once, so that no client reads half of it.
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let new = path.with_added_extension("new");
    let mut file = options.open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(new, path)
}
