//! Certificate signing requests, good and bad.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::pem;
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

fn request(names: &[(DnType, DnValue)]) -> (String, Vec<u8>) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in names {
        params.distinguished_name.push(kind.clone(), value.clone());
    }
    let key = KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap();
    (request.pem().unwrap(), request.der().to_vec())
}

fn utf8(text: &str) -> DnValue {
    DnValue::Utf8String(text.to_owned())
}

#[test]
fn a_request_names_its_user_and_proves_its_key() {
    let (text, mut der) = request(&[
        (DnType::CommonName, utf8("ann")),
        (DnType::OrganizationName, utf8("crew")),
    ]);
    let read = SigningRequest::from_pem(text.as_bytes()).unwrap();
    let expected = ClientSubject {
        name: "ann".to_owned(),
        groups: vec!["crew".to_owned()],
    };
    assert_eq!(read.client, Ok(expected));
    assert_eq!(read.verify(), Ok(()));
    let last = der.len() - 1;
    der[last] ^= 1;
    let forged = pem::encode("CERTIFICATE REQUEST", &der);
    let forged = SigningRequest::from_pem(forged.as_bytes()).unwrap();
    assert_eq!(forged.verify(), Err(RequestError::Signature));
}

#[test]
fn subjects_that_authentication_cannot_read_are_refused() {
    let wide = rcgen::string::BmpString::try_from("system:masters").unwrap();
    let (text, _) = request(&[
        (DnType::CommonName, utf8("ann")),
        (DnType::OrganizationName, DnValue::BmpString(wide)),
    ]);
    let read = SigningRequest::from_pem(text.as_bytes()).unwrap();
    assert!(read.client.is_err(), "{:?}", read.client);
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let (text, _) = request(&[(DnType::CommonName, utf8("ann")), (uid, utf8("1"))]);
    let read = SigningRequest::from_pem(text.as_bytes()).unwrap();
    assert!(read.client.is_err(), "{:?}", read.client);
    let (text, _) = request(&[]);
    let read = SigningRequest::from_pem(text.as_bytes()).unwrap();
    assert!(read.client.is_err(), "{:?}", read.client);
}

#[test]
fn other_text_is_no_request() {
    for text in ["", "hello", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"] {
        assert!(SigningRequest::from_pem(text.as_bytes()).is_err());
    }
    let damaged = pem::encode("CERTIFICATE REQUEST", b"\x30\x03abc");
    assert!(SigningRequest::from_pem(damaged.as_bytes()).is_err());
}
