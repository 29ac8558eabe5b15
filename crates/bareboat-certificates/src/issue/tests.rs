//! Tests of issued certificates.

#![allow(clippy::unwrap_used)]
use super::*;
use x509_parser::prelude::GeneralName;

const NOW: i64 = 1_800_000_000;

fn authority() -> (String, Issuer) {
    let key = KeyPair::generate().unwrap();
    let pem = Issuer::self_signed("test-ca", &key, NOW, NOW + 1000).unwrap();
    let issuer = Issuer::new(&pem, key).unwrap();
    (pem, issuer)
}

#[test]
fn a_certificate_holds_what_the_template_says_and_verifies() {
    let (ca, issuer) = authority();
    let key = KeyPair::generate().unwrap();
    let subject = Subject {
        common_name: "Zoë".to_owned(),
        organizations: vec!["dev".to_owned(), "ops".to_owned(), "dev-leads".to_owned()],
    };
    let mut template = Template::new(
        subject.to_der(),
        key.public_key_info(),
        NOW - 300,
        NOW + 600,
    );
    template.key_usages = vec![KeyUsage::DigitalSignature, KeyUsage::KeyEncipherment];
    template.extended_usages = vec![ExtendedUsage::ClientAuth];
    template.alternative_names = vec![
        AlternativeName::Dns("boat.example.com".to_owned()),
        AlternativeName::Address("::1".parse().unwrap()),
    ];
    let der = pem::certificates(&issuer.issue(&template).unwrap()).remove(0);
    let (rest, parsed) = X509Certificate::from_der(&der).unwrap();
    assert!(rest.is_empty());
    let ca = pem::certificates(&ca).remove(0);
    let (_, ca) = X509Certificate::from_der(&ca).unwrap();
    parsed.verify_signature(Some(ca.public_key())).unwrap();
    ca.verify_signature(None).unwrap();
    assert!(ca.is_ca() && !parsed.is_ca());
    assert_eq!(parsed.issuer().as_raw(), ca.subject().as_raw());
    let groups: Vec<&str> = parsed
        .subject()
        .iter_organization()
        .map(|group| group.as_str().unwrap())
        .collect();
    assert_eq!(groups, ["dev", "ops", "dev-leads"]);
    let name = parsed.subject().iter_common_name().next().unwrap();
    assert_eq!(name.as_str().unwrap(), "Zoë");
    assert_eq!(parsed.validity().not_before.timestamp(), NOW - 300);
    assert_eq!(parsed.validity().not_after.timestamp(), NOW + 600);
    let usage = parsed.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && usage.key_encipherment() && !usage.key_cert_sign());
    let extended = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(extended.client_auth && !extended.server_auth);
    let names = parsed.subject_alternative_name().unwrap().unwrap().value;
    assert_eq!(
        names.general_names[0],
        GeneralName::DNSName("boat.example.com")
    );
    assert_eq!(names.general_names.len(), 2);
}

#[test]
fn authorities_of_every_algorithm_sign() {
    let rsa = include_str!("../keys/testdata/rsa.pkcs1.pem");
    let p384 = include_str!("../keys/testdata/p384.sec1.pem");
    let ed = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)
        .unwrap()
        .serialize_pem();
    for text in [rsa, p384, &ed] {
        let key = KeyPair::from_pem(text).unwrap();
        let pem = Issuer::self_signed("ca", &key, NOW, NOW + 10).unwrap();
        let der = pem::certificates(&pem).remove(0);
        let (_, parsed) = X509Certificate::from_der(&der).unwrap();
        parsed.verify_signature(None).unwrap();
    }
}

#[test]
fn a_key_of_another_authority_is_refused() {
    let (pem, issuer) = authority();
    assert_eq!(issuer.ends(), NOW + 1000);
    let other = KeyPair::generate().unwrap();
    assert_eq!(Issuer::new(&pem, other).err(), Some(IssueError::OtherKey));
    let other = KeyPair::generate().unwrap();
    assert_eq!(
        Issuer::new("damaged", other).err(),
        Some(IssueError::NotACertificate)
    );
}

#[test]
fn times_after_2049_are_written_in_full() {
    assert_eq!(time(0).unwrap()[2..], *b"700101000000Z");
    assert_eq!(time(2_524_608_000).unwrap()[2..], *b"20500101000000Z");
    assert_eq!(time(i64::MAX), Err(IssueError::Time));
}
