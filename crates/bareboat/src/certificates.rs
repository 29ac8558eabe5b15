//! Certificates: issuing authorities, private keys in PEM, signing requests.

pub use bareboat_certificates::{
    AlternativeName, CertificateAuthority, ClientSubject, ExtendedUsage, IssueError, Issuer,
    KeyError, KeyPair, KeyUsage, RequestError, SigningRequest, Subject, Template, pem,
};
