//! A running test server: its clients, its address, its restarts, its end.

use crate::builder::{Builder, Place};
use crate::certificates::Certificates;
use crate::client;
use bareboat::api::kind::User;
use bareboat::client::in_process;
use bareboat::control_plane::Settings;
use bareboat::controllers::{Controllers, Options};
use bareboat::server::reply::Response;
use bareboat::server::request::body::RequestBody;
use bareboat::{Server, Tls};
use bytes::Bytes;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use tempfile::NamedTempFile;

/// A whole API server; it ends when this is dropped.
pub struct TestServer {
    builder: Builder,
    place: Place,
    running: Running,
    socket: Option<Socket>,
}

/// What a restart replaces.
struct Running {
    server: Server,
    controllers: Option<Controllers>,
}

/// What a restart keeps: clients hold on to address and certificates.
struct Socket {
    /// Kept open over restarts: another program could take a port that is closed for a moment.
    listener: TcpListener,
    address: SocketAddr,
    tls: Tls,
    certificates: Certificates,
    kubeconfig: NamedTempFile,
    client: kube::Client,
}

impl TestServer {
    /// Starts a server that is called in-process.
    pub async fn start() -> TestServer {
        TestServer::builder().start().await
    }

    /// Starts a server on a free port, with TLS.
    pub async fn listening() -> TestServer {
        TestServer::builder().listening().start().await
    }

    /// Chooses what the server is made of.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn begin(builder: Builder) -> TestServer {
        let place = builder.place();
        if !builder.listening {
            let running = run(&builder, &place, None).await;
            return TestServer {
                builder,
                place,
                running,
                socket: None,
            };
        }
        let certificates = Certificates::new();
        let (chain, key) = &certificates.server;
        let tls =
            Tls::from_pem(chain, key, Some(&certificates.ca)).expect("our own certificates work");
        let running = run(&builder, &place, Some(&tls)).await;
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
            place,
            running,
            socket: Some(socket),
        }
    }

    /// A client of the administrator: over the socket if there is one, else in-process.
    pub fn client(&self) -> kube::Client {
        match &self.socket {
            Some(socket) => socket.client.clone(),
            None => in_process(&self.running.server, client::admin()),
        }
    }

    /// An in-process client of somebody in some groups.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        in_process(&self.running.server, client::user(user, groups))
    }

    /// Sends a request as the administrator, without a socket, byte for byte as given.
    pub async fn call(&self, request: http::Request<Bytes>) -> Response {
        self.call_as(client::admin(), request).await
    }

    /// Sends a request as anybody, without a socket.
    pub async fn call_as(&self, user: User, request: http::Request<Bytes>) -> Response {
        let request = request.map(RequestBody::Memory);
        self.running.server.call(user, request).await
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.running.server
    }

    /// Where it listens; only a listening server does.
    pub fn address(&self) -> SocketAddr {
        self.socket().address
    }

    /// Its URL; only a listening server has one.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The PEM text of its CA; only a listening server has one.
    pub fn ca(&self) -> &str {
        &self.socket().certificates.ca
    }

    /// The administrator's certificate and key in PEM; only a listening server knows them.
    pub fn admin_certificate(&self) -> (&str, &str) {
        let (certificate, key) = &self.socket().certificates.admin;
        (certificate, key)
    }

    /// The text of a kubeconfig for the administrator; only a listening server has one.
    pub fn kubeconfig(&self) -> String {
        self.socket().certificates.kubeconfig(&self.url())
    }

    /// A file with that kubeconfig, which goes when the server goes.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.socket().kubeconfig.path().to_owned()
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
        self.running = run(&self.builder, &self.place, tls.as_ref()).await;
        if let Some(socket) = &self.socket {
            serve(&self.running.server, &socket.listener, &socket.tls).await;
        }
    }

    /// Stops the server and waits until everything is written and closed.
    pub async fn stop(mut self) {
        self.running.end().await;
    }
}

/// Lets a server serve on a socket that outlives it.
async fn serve(server: &Server, listener: &TcpListener, tls: &Tls) -> SocketAddr {
    let listener = listener.try_clone().expect("a socket can be cloned");
    let served = server.listen_on(listener, Some(tls.clone())).await;
    served.expect("a socket that listens can be served on")
}

async fn run(builder: &Builder, place: &Place, tls: Option<&Tls>) -> Running {
    let server = builder.build(place, |builder| {
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
        let others = Options::NAMES.iter().filter(|name| **name != "bootstrap");
        for name in others.filter(|_| !builder.controllers) {
            options.switch_off(name).expect("these are their names");
        }
        options.default_roles = builder.default_roles;
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
        // Outside a runtime nothing is running any more that could be ended.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let server = self.server.clone();
            runtime.spawn(async move { server.shut_down().await });
        }
    }
}
