//! DER, private keys in PEM, and X.509 certificates.
//!
//! No other crate reads or writes DER itself. This crate does no I/O and reads no clock: callers pass in bytes and times.
//! Callers also decide who may have which certificate.
//!
//! | module | what is in it |
//! |---|---|
//! | [`der`] | a reader and a writer of DER elements, and object identifiers |
//! | [`pem`] | text around DER |
//! | [`keys`] | private keys: PKCS#8, SEC1 and PKCS#1 |
//! | [`issue`] | certificates signed by an authority |
//! | [`request`] | certificate signing requests (PKCS#10) |

pub mod der;
pub mod issue;
pub mod keys;
pub mod pem;
pub mod request;

pub use issue::{
    AlternativeName, CertificateAuthority, ExtendedUsage, IssueError, Issuer, KeyUsage, Subject,
    Template,
};
pub use keys::{KeyError, KeyPair};
pub use request::{ClientSubject, RequestError, SigningRequest};
