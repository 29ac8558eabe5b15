//! The certificates of a test server: a CA, the server's and the administrator's, all in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

/// PEM texts; pairs are certificate and key.
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(crate) server: (String, String),
    pub(crate) admin: (String, String),
}

impl Certificates {
    /// Creates all certificates.
    pub(crate) fn new() -> Certificates {
        let mut params = CertificateParams::default();
        params.distinguished_name = name("bareboat-testing-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let ca = CertifiedIssuer::self_signed(params, new_key()).expect("a CA can be made");
        Certificates {
            server: leaf(&ca, "bareboat", None, ExtendedKeyUsagePurpose::ServerAuth),
            admin: leaf(
                &ca,
                "admin",
                Some("system:masters"),
                ExtendedKeyUsagePurpose::ClientAuth,
            ),
            ca: ca.pem(),
        }
    }

    /// Returns a kubeconfig of the administrator for a server at a URL.
    pub(crate) fn kubeconfig(&self, url: &str) -> String {
        // JSON is YAML, and needs no indentation.
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "clusters": [{"name": "test", "cluster": {
                "server": url,
                "certificate-authority-data": STANDARD.encode(&self.ca),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": STANDARD.encode(&self.admin.0),
                "client-key-data": STANDARD.encode(&self.admin.1),
            }}],
        })
        .to_string()
    }
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key can be made")
}

fn leaf(
    ca: &CertifiedIssuer<'static, KeyPair>,
    common: &str,
    organization: Option<&str>,
    usage: ExtendedKeyUsagePurpose,
) -> (String, String) {
    let names = match usage {
        ExtendedKeyUsagePurpose::ServerAuth => ["localhost", "127.0.0.1", "::1"].as_slice(),
        _ => &[],
    };
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("the names are well formed");
    params.distinguished_name = name(common, organization);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let key = new_key();
    let certificate = params
        .signed_by(&key, ca)
        .expect("a certificate can be signed");
    (certificate.pem(), key.serialize_pem())
}
