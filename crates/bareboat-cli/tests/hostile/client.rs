//! A hostile client: HTTP/1.1 over TLS, written by hand, which can leave answers unread.

use crate::process::PATIENCE;
use crate::server::Home;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::{ErrorKind, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

/// A client that can connect to a server.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: String,
    pub(crate) tls: Arc<ClientConfig>,
}

/// An answer that was read to its end.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns the body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Fails unless the request was accepted.
    pub(crate) fn accepted(self) -> Answer {
        assert!(
            (200..300).contains(&self.code),
            "{}: {:.500}",
            self.code,
            self.text()
        );
        self
    }
}

impl Caller {
    /// The administrator, with a client certificate.
    pub(crate) fn admin(home: &Home) -> Caller {
        let folder = home.data().join("certificates");
        let chain = CertificateDer::pem_file_iter(folder.join("admin.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("admin.key")).unwrap();
        let tls = Caller::trusting(home)
            .with_client_auth_cert(chain.map(|one| one.unwrap()).collect(), key)
            .unwrap();
        Caller {
            address: home.address(),
            tls: Arc::new(tls),
        }
    }

    /// A client without credentials.
    pub(crate) fn stranger(home: &Home) -> Caller {
        let tls = Caller::trusting(home).with_no_client_auth();
        Caller {
            address: home.address(),
            tls: Arc::new(tls),
        }
    }

    fn trusting(
        home: &Home,
    ) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
        let authority = home.data().join("certificates/ca.crt");
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(authority).unwrap())
            .unwrap();
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
    }

    /// The same client, offering this ALPN protocol.
    pub(crate) fn speaking(&self, protocol: &str) -> Caller {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Caller {
            tls: Arc::new(tls),
            ..self.clone()
        }
    }

    /// Opens a socket and sends nothing.
    pub(crate) fn socket(&self) -> Result<TcpStream> {
        let socket = TcpStream::connect(&self.address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// Opens a connection and performs the TLS handshake.
    pub(crate) fn connect(&self) -> Result<Connection> {
        let socket = self.socket()?;
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(&self.tls), name).unwrap();
        let mut stream = StreamOwned::new(session, socket);
        stream.flush()?;
        Ok(Connection { stream })
    }

    /// Sends one request on its own connection.
    pub(crate) fn call(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
        let mut connection = self.connect().unwrap();
        connection.send(method, path, kind, body).unwrap();
        connection.receive().unwrap()
    }

    /// Sends a GET.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "application/json", b"")
    }

    /// Sends a POST.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(
            "POST",
            path,
            "application/json",
            &serde_json::to_vec(body).unwrap(),
        )
    }
}

/// One HTTP/1.1 connection.
pub(crate) struct Connection {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Connection {
    /// Sends a request without reading its answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<()> {
        self.send_with(method, path, kind, &[], body)
    }

    /// The same with additional headers.
    pub(crate) fn send_with(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        headers: &[&str],
        body: &[u8],
    ) -> Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        if !body.is_empty() {
            head += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        }
        for header in headers {
            head += &format!("{header}\r\n");
        }
        head += "\r\n";
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body)?;
        self.stream.flush()
    }

    /// Sends bytes that are no request.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Reads what is there, or waits for something.
    pub(crate) fn read_some(&mut self) -> Result<()> {
        self.more(&mut Vec::new())
    }

    /// Makes a write fail if the server takes nothing for so long.
    pub(crate) fn give_up_after(&self, limit: std::time::Duration) {
        self.stream.sock.set_write_timeout(Some(limit)).unwrap();
    }

    /// Reads one answer to its end.
    pub(crate) fn receive(&mut self) -> Result<Answer> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(at) = find(&bytes, b"\r\n\r\n") {
                break at + 4;
            }
            self.more(&mut bytes)?;
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let code = text
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let body = match length.map(|length| length.trim().parse::<usize>().unwrap()) {
            Some(length) => {
                while bytes.len() < head + length {
                    self.more(&mut bytes)?;
                }
                bytes[head..head + length].to_vec()
            }
            None if text.contains("transfer-encoding: chunked") => {
                self.chunks(bytes.split_off(head))?
            }
            None => Vec::new(),
        };
        Ok(Answer { code, body })
    }

    fn chunks(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        let (mut body, mut at) = (Vec::new(), 0);
        loop {
            let line = loop {
                if let Some(end) = find(&bytes[at..], b"\r\n") {
                    break at + end;
                }
                self.more(&mut bytes)?;
            };
            let size = usize::from_str_radix(&String::from_utf8_lossy(&bytes[at..line]), 16);
            let size = size.map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
            while bytes.len() < line + 2 + size + 2 {
                self.more(&mut bytes)?;
            }
            if size == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&bytes[line + 2..line + 2 + size]);
            at = line + 2 + size + 2;
        }
    }

    fn more(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            read => {
                bytes.extend_from_slice(&piece[..read]);
                Ok(())
            }
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
