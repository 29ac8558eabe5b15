//! TLS to the database, with rustls.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::address::Address;
use crate::address::TlsMode;
use crate::error::SqlError;
use crate::tls::{authorities, certificates, unusable};

/// Makes TLS connections with one configuration.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

/// Makes a TLS connection to one host.
pub(crate) struct ToHost {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A TLS connection.
pub(crate) struct Stream(Box<tokio_rustls::client::TlsStream<Socket>>);

type Socket = tokio_postgres::Socket;

impl Tls {
    /// Reads the certificate files of `address`. They are read for every connection, so that they can be renewed.
    pub(crate) fn of(address: &Address) -> Result<Self, SqlError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("TLS", error))?;
        let verifier: Arc<dyn ServerCertVerifier> = match address.tls {
            TlsMode::Off | TlsMode::Encrypted if address.files.root.is_none() => {
                Arc::new(Lenient {
                    chain: None,
                    provider: provider.clone(),
                })
            }
            mode => {
                let roots = roots(address.files.root.as_deref())?;
                let chain =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                        .build()
                        .map_err(|error| unusable("the certificate authority", error))?;
                match mode {
                    TlsMode::VerifyFull => chain,
                    _ => Arc::new(Lenient {
                        chain: Some(chain),
                        provider: provider.clone(),
                    }),
                }
            }
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&address.files.certificate, &address.files.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let named = || key.display().to_string();
                let key =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(named(), error))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| unusable("sslcert and sslkey", error))?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => {
                let why = "both or neither must be given";
                return Err(unusable("sslcert and sslkey", why));
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

fn roots(path: Option<&std::path::Path>) -> Result<RootCertStore, SqlError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities(path)?);
    Ok(roots)
}

/// A verifier that does not check the name: it checks only the authority, or nothing.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            // The name is checked last, so everything else was valid.
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName
                | rustls::CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = ToHost;
    type Error = rustls_pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, Self::Error> {
        Ok(ToHost {
            config: self.0.clone(),
            name: ServerName::try_from(host)?.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for ToHost {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let connector = TlsConnector::from(self.config);
            let stream = connector.connect(self.name, stream).await?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(|all| all.first());
        match certificate {
            // Servers hash with SHA-256, unless the certificate is signed with a longer hash.
            Some(certificate) if !is_sha_384_or_longer(certificate) => {
                let hash = ring::digest::digest(&ring::digest::SHA256, certificate);
                ChannelBinding::tls_server_end_point(hash.as_ref().to_vec())
            }
            _ => ChannelBinding::none(),
        }
    }
}

/// Returns whether a certificate may be signed with SHA-384 or SHA-512. Looks for the object identifiers of such
/// signatures. Even without a channel binding, the password is not sent.
fn is_sha_384_or_longer(certificate: &[u8]) -> bool {
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let signed = |prefix: &[u8], ends: [u8; 2]| {
        certificate
            .windows(prefix.len() + 1)
            .any(|window| window.starts_with(prefix) && ends.contains(&window[prefix.len()]))
    };
    signed(&RSA, [12, 13]) || signed(&ECDSA, [3, 4])
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
