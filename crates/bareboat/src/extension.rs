//! A server behind another API server, which forwards a group to it: certificate, delegation and registration in one step.
//!
//! The other server may be Bareboat or any kube-apiserver. [`ServerBuilder::behind`] is the part of it without certificates.

use crate::issuing::Authority;
use bareboat_api::{Value, value};
use bareboat_certificates::IssueError;
use bareboat_server::server::{BuildError, ListenError};
use bareboat_server::{
    Delegation, DelegationError, RemoteApi, RemoteApiError, Server, ServerBuilder,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::net::SocketAddr;

/// Why a server cannot run behind another one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The certificate cannot be made.
    #[error("the serving certificate cannot be made")]
    Certificate(#[from] IssueError),
    /// The other server does not accept delegation.
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    /// The server cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The other server does not accept the registration.
    #[error("the Service or an APIService of this server cannot be applied")]
    Registration(#[source] RemoteApiError),
}

/// A server that another API server forwards groups and versions to.
///
/// [`Extension::serve`] makes a certificate for `NAME.NAMESPACE.svc`, listens, and applies a Service and one APIService for
/// each version, with the CA of that certificate. The key stays in the memory of the process: after a restart there is
/// another certificate, and the registration names its CA.
///
/// ```no_run
/// use bareboat::prelude::*;
/// use bareboat::{Extension, RemoteApi};
///
/// # async fn serve(kind: Kind) -> Result<(), Box<dyn std::error::Error>> {
/// let hub = RemoteApi::from_kubeconfig("hub.kubeconfig")?;
/// let serving = Extension::new(&hub, "kube-system", "boats")
///     .version("sea.example.com", "v1")
///     .serve(Server::builder().kind(kind), "127.0.0.1:0".parse()?)
///     .await?;
/// tokio::signal::ctrl_c().await?;
/// serving.shut_down().await;
/// # Ok(()) }
/// ```
///
/// The user of the kubeconfig needs the rights that [`ServerBuilder::behind`] names, and those to apply the Service and the
/// APIServices.
#[derive(Debug)]
pub struct Extension {
    hub: RemoteApi,
    namespace: String,
    name: String,
    host: String,
    versions: Vec<(String, String)>,
}

impl Extension {
    /// Describes a server by the namespace and the name of its Service.
    pub fn new(hub: &RemoteApi, namespace: &str, name: &str) -> Extension {
        Extension {
            hub: hub.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            host: "localhost".to_owned(),
            versions: Vec::new(),
        }
    }

    /// Adds a version of a group. The version that is added first is preferred.
    #[must_use]
    pub fn version(mut self, group: &str, version: &str) -> Extension {
        self.versions.push((group.to_owned(), version.to_owned()));
        self
    }

    /// Sets the DNS name at which the other server reaches this one; the default is `localhost`.
    #[must_use]
    pub fn host(mut self, host: &str) -> Extension {
        host.clone_into(&mut self.host);
        self
    }

    /// Builds the server behind the other one, listens, and registers it.
    pub async fn serve(
        self,
        builder: ServerBuilder,
        address: SocketAddr,
    ) -> Result<Serving, ExtensionError> {
        let authority = Authority::new(&self.name)?;
        let service = format!("{}.{}.svc", self.name, self.namespace);
        let own = authority.server(&self.name, &[&service, &self.host])?;
        let (builder, tls, delegation) = builder
            .behind(self.hub.clone(), &own.certificate, &own.key)
            .await?;
        let server = builder.build()?;
        let address = server.listen(address, Some(tls)).await?;
        self.register(address.port(), &authority.ca).await?;
        Ok(Serving {
            server,
            address,
            ca: authority.ca,
            _delegation: delegation,
        })
    }

    /// Applies the Service and the APIServices.
    async fn register(&self, port: u16, ca: &str) -> Result<(), ExtensionError> {
        let service = value!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": (self.name.as_str()), "namespace": (self.namespace.as_str())},
            "spec": {"type": "ExternalName", "externalName": (self.host.as_str())},
        });
        let path = format!(
            "/api/v1/namespaces/{}/services/{}",
            self.namespace, self.name
        );
        self.apply(&path, &service).await?;
        for (place, (group, version)) in self.versions.iter().enumerate() {
            let name = format!("{version}.{group}");
            let priority = i64::try_from(self.versions.len() - place).unwrap_or(1);
            let service = value!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": (name.as_str())},
                "spec": {
                    "group": (group.as_str()), "version": (version.as_str()),
                    "groupPriorityMinimum": 100, "versionPriority": priority,
                    "service": {
                        "namespace": (self.namespace.as_str()), "name": (self.name.as_str()),
                        "port": (i64::from(port)),
                    },
                    "caBundle": (BASE64_STANDARD.encode(ca)),
                },
            });
            let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
            self.apply(&path, &service).await?;
        }
        Ok(())
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<(), ExtensionError> {
        let applied = self.hub.apply(path, object, &self.name).await;
        applied.map(drop).map_err(ExtensionError::Registration)
    }
}

/// A running server behind another one.
#[derive(Debug)]
pub struct Serving {
    server: Server,
    address: SocketAddr,
    ca: String,
    _delegation: Delegation,
}

impl Serving {
    /// Returns the server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the CA of its certificate in PEM.
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// Returns the same in base64, as webhook configurations and APIServices have it.
    pub fn ca_bundle(&self) -> String {
        BASE64_STANDARD.encode(&self.ca)
    }

    /// Stops the server and waits for its requests. Its registration stays, so that the other server reports it as not
    /// available.
    pub async fn shut_down(self) {
        self.server.shut_down().await;
    }
}
