//! Certificates for kube-apiserver, and reading a kubeconfig: everything that an administrator's connection needs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Address and credentials of an administrator.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Host and port.
    pub(crate) authority: String,
    /// Trusted CA and client certificate.
    pub(crate) tls: Arc<ClientConfig>,
    /// The bearer token, if there is no client certificate.
    pub(crate) token: Option<String>,
}

impl Access {
    /// Reads a kubeconfig with embedded data and a single cluster and user.
    pub(crate) fn from_kubeconfig(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let field = |name: &str| {
            let mut lines = text
                .lines()
                .map(|line| line.trim().trim_start_matches("- "));
            lines.find_map(|line| {
                let value = line.strip_prefix(name)?.strip_prefix(':')?;
                Some(value.trim().trim_matches('"').trim_matches('\'').to_owned())
            })
        };
        let data = |name: &str| -> Result<Option<Vec<u8>>> {
            match (field(&format!("{name}-data")), field(name)) {
                (Some(encoded), _) => Ok(Some(BASE64.decode(encoded)?)),
                (None, Some(file)) => Ok(Some(fs::read(file)?)),
                (None, None) => Ok(None),
            }
        };
        let server = field("server").context("the kubeconfig names no server")?;
        let authority = server
            .trim_start_matches("https://")
            .trim_end_matches('/')
            .to_owned();
        let ca = data("certificate-authority")?.context("the kubeconfig has no authority")?;
        let identity = match (data("client-certificate")?, data("client-key")?) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => None,
        };
        Ok(Self {
            authority,
            tls: tls(&ca, identity)?,
            token: field("token"),
        })
    }
}

fn tls(ca: &[u8], identity: Option<(Vec<u8>, Vec<u8>)>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match identity {
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>()?;
            let key = PrivateKeyDer::from_pem_slice(&key).context("no client key")?;
            builder.with_client_auth_cert(chain, key)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// Returns a configuration that trusts any server, to check the readiness of a server without a kubeconfig.
pub(crate) fn trusting() -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Writes the files that kube-apiserver needs to `dir`: ca.crt, server.crt, server.key, sa.key, sa.pub and
/// admin.kubeconfig for `https://127.0.0.1:port` with a certificate of system:masters.
pub(crate) fn write_theirs(dir: &Path, port: u16) -> Result<()> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    authority
        .distinguished_name
        .push(DnType::CommonName, "bench-ca");
    let authority_key = KeyPair::generate()?;
    let ca = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(String::from);
    let mut server = CertificateParams::new(names)?;
    server
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server_key = KeyPair::generate()?;

    let mut admin = CertificateParams::new(Vec::new())?;
    admin
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    admin
        .distinguished_name
        .push(DnType::CommonName, "bench-admin");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin_key = KeyPair::generate()?;

    let tokens = KeyPair::generate()?;
    let write = |name: &str, text: &str| fs::write(dir.join(name), text);
    write("ca.crt", &ca)?;
    write("server.crt", &server.signed_by(&server_key, &issuer)?.pem())?;
    write("server.key", &server_key.serialize_pem())?;
    write("sa.key", &tokens.serialize_pem())?;
    write("sa.pub", &tokens.public_key_pem())?;
    let admin_cert = admin.signed_by(&admin_key, &issuer)?.pem();
    let (ca, cert, key) = (
        BASE64.encode(ca),
        BASE64.encode(admin_cert),
        BASE64.encode(admin_key.serialize_pem()),
    );
    write(
        "admin.kubeconfig",
        &format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: bench\n  cluster:\n    server: https://127.0.0.1:{port}\n    \
             certificate-authority-data: {ca}\nusers:\n- name: admin\n  user:\n    client-certificate-data: {cert}\n    \
             client-key-data: {key}\ncontexts:\n- name: bench\n  context:\n    cluster: bench\n    user: admin\n\
             current-context: bench\n"
        ),
    )?;
    Ok(())
}
