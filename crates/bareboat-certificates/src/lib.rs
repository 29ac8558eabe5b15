//! DER, private keys in PEM, and X.509 certificates.
//!
//! No other crate reads or writes DER itself. This crate does no I/O and reads no clock: callers pass in bytes and times.
//! Callers also decide who may have which certificate.
//!
//! | module | what is in it |
//! |---|---|
//! | [`certificate`] | certificates, read |
//! | [`der`] | a reader and a writer of DER elements, and object identifiers |
//! | [`pem`] | text around DER |
//! | [`keys`] | private keys: PKCS#8, SEC1 and PKCS#1 |
//! | `issue` | certificates signed by an authority (feature `issue`) |
//! | `request` | certificate signing requests (PKCS#10; feature `issue`) |

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod certificate;
pub mod der;
#[cfg(feature = "issue")]
pub mod issue;
pub mod keys;
pub mod pem;
#[cfg(feature = "issue")]
pub mod request;

pub use certificate::Certificate;
#[cfg(feature = "issue")]
pub use issue::{
    AlternativeName, CertificateAuthority, ExtendedUsage, IssueError, Issuer, KeyUsage, Subject,
    Template,
};
pub use keys::{KeyError, KeyPair};
#[cfg(feature = "issue")]
pub use request::{ClientSubject, RequestError, SigningRequest};
