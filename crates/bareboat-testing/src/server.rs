//! A running test server: its clients, address and restarts.

use crate::builder::{Builder, DataLocation};
use crate::certificates::Certificates;
use crate::client;
use bareboat::api::kind::User;
use bareboat::client::in_process;
use bareboat::control_plane::Settings;
use bareboat::controllers::{Controllers, DefaultRoles, Options};
use bareboat::server::reply::Response;
use bareboat::server::request::body::RequestBody;
use bareboat::{Server, Tls};
use bytes::Bytes;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use tempfile::NamedTempFile;

/// A running API server; it stops when this is dropped.
pub struct TestServer {
    builder: Builder,
    location: DataLocation,
    running: Running,
    socket: Option<Socket>,
}

bareboat::api::opaque_debug!(TestServer);

/// The parts that a restart replaces.
struct Running {
    server: Server,
    controllers: Option<Controllers>,
}

/// The parts that a restart keeps, because clients use the address and certificates.
struct Socket {
    /// Stays open across restarts: another program could take a port that is closed for a moment.
    listener: TcpListener,
    address: SocketAddr,
    tls: Tls,
    certificates: Certificates,
    kubeconfig: NamedTempFile,
    client: kube::Client,
}

impl TestServer {
    /// Starts a server for in-process calls.
    pub async fn start() -> TestServer {
        TestServer::builder().start().await
    }

    /// Starts a server on a free port, with TLS.
    pub async fn listening() -> TestServer {
        TestServer::builder().listening().start().await
    }

    /// Returns a builder for a server with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn begin(builder: Builder) -> TestServer {
        let location = builder.location();
        if !builder.listening {
            let running = run(&builder, &location, None).await;
            return TestServer {
                builder,
                location,
                running,
                socket: None,
            };
        }
        let certificates = Certificates::new();
        let (chain, key) = &certificates.server;
        let tls =
            Tls::from_pem(chain, key, Some(&certificates.ca)).expect("our own certificates work");
        let running = run(&builder, &location, Some(&tls)).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.expect("a free port can be listened on");
        let address = serve(&running.server, &listener, &tls).await;
        let text = certificates.kubeconfig(&format!("https://{address}"));
        let kubeconfig = NamedTempFile::new().expect("a temporary file can be made");
        std::fs::write(kubeconfig.path(), &text).expect("a temporary file can be written");
        let socket = Socket {
            client: client::over_socket(&text).await,
            listener,
            address,
            tls,
            certificates,
            kubeconfig,
        };
        TestServer {
            builder,
            location,
            running,
            socket: Some(socket),
        }
    }

    /// Returns a client of the administrator: over the socket if there is one, else in-process.
    pub fn client(&self) -> kube::Client {
        match &self.socket {
            Some(socket) => socket.client.clone(),
            None => in_process(&self.running.server, client::admin()),
        }
    }

    /// Returns an in-process client of a user with groups.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        in_process(&self.running.server, client::user(user, groups))
    }

    /// Sends a request as the administrator, without a socket and unchanged.
    pub async fn call(&self, request: http::Request<Bytes>) -> Response {
        self.call_as(client::admin(), request).await
    }

    /// Sends a request as any user, without a socket.
    pub async fn call_as(&self, user: User, request: http::Request<Bytes>) -> Response {
        let request = request.map(RequestBody::Memory);
        self.running.server.call(user, request).await
    }

    /// Returns the server.
    pub fn server(&self) -> &Server {
        &self.running.server
    }

    /// Returns the address of a listening server.
    pub fn address(&self) -> SocketAddr {
        self.socket().address
    }

    /// Returns the URL of a listening server.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// Returns the CA certificate of a listening server in PEM.
    pub fn ca(&self) -> &str {
        &self.socket().certificates.ca
    }

    /// Returns the administrator's certificate and key of a listening server in PEM.
    pub fn admin_certificate(&self) -> (&str, &str) {
        let (certificate, key) = &self.socket().certificates.admin;
        (certificate, key)
    }

    /// Returns the text of a kubeconfig for the administrator of a listening server.
    pub fn kubeconfig(&self) -> String {
        self.socket().certificates.kubeconfig(&self.url())
    }

    /// Returns the path of a file with that kubeconfig, which is removed with the server.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.socket().kubeconfig.path().to_owned()
    }

    /// The TLS side of its socket, such as to trust another CA; only a listening server has one.
    pub fn tls(&self) -> &Tls {
        &self.socket().tls
    }

    fn socket(&self) -> &Socket {
        self.socket
            .as_ref()
            .expect("this server does not listen; start it with TestServer::listening")
    }

    /// Stops the server and starts it again on the same data, and the same port if it has one.
    pub async fn restart(&mut self) {
        self.running.end().await;
        let tls = self.socket.as_ref().map(|socket| socket.tls.clone());
        self.running = run(&self.builder, &self.location, tls.as_ref()).await;
        if let Some(socket) = &self.socket {
            serve(&self.running.server, &socket.listener, &socket.tls).await;
        }
    }

    /// Stops the server and waits until everything is written and closed.
    pub async fn stop(mut self) {
        self.running.end().await;
    }
}

/// Serves on a socket that outlives the server.
async fn serve(server: &Server, listener: &TcpListener, tls: &Tls) -> SocketAddr {
    let listener = listener.try_clone().expect("a socket can be cloned");
    let served = server.listen_on(listener, Some(tls.clone())).await;
    served.expect("a socket that listens can be served on")
}

async fn run(builder: &Builder, location: &DataLocation, tls: Option<&Tls>) -> Running {
    let server = builder.build(location, |builder| {
        match tls.and_then(Tls::client_certificates) {
            Some(clients) => builder.authenticator(clients),
            None => builder,
        }
    });
    let controllers = if builder.serves_control_plane() {
        let mut options = Options {
            kubernetes: Some(Settings::default().kubernetes(6443)),
            ..Options::default()
        };
        if !builder.controllers {
            let kept = ["bootstrap", "default-roles", "kubernetes-service"];
            let others = Options::names().filter(|name| !kept.contains(name));
            options.disabled = others.collect();
        }
        if !builder.default_roles {
            options.default_roles = DefaultRoles::ControllersOnly;
        }
        if !builder.flow_control {
            options.disabled.insert("flow-control");
        }
        Some(bareboat::control_plane::start_with(&server, options).await)
    } else {
        None
    };
    Running {
        server,
        controllers,
    }
}

impl Running {
    async fn end(&mut self) {
        if let Some(mut controllers) = self.controllers.take() {
            controllers.stop().await;
        }
        self.server.shut_down().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.controllers = None;
        // Outside a runtime there are no tasks left to stop.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let server = self.server.clone();
            runtime.spawn(async move { server.shut_down().await });
        }
    }
}
