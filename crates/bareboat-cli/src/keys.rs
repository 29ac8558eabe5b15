//! Formats of private keys in PEM: PKCS#8, SEC1 and PKCS#1 are read, EC keys are written as SEC1.
//!
//! SEC1 (`BEGIN EC PRIVATE KEY`) is the one form of an EC key that every client reads; some Java clients take a PKCS#8
//! key for RSA. The crypto library reads PKCS#8 only, so the other forms are wrapped into it here. Only the outer DER
//! structure is touched; whether the numbers make a key is decided by the crypto library.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use rustls::pki_types::PrivateKeyDer;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0]` of an ECPrivateKey: its curve.
const CURVE: u8 = 0xa0;
/// `[1]` of an ECPrivateKey: its public key.
const PUBLIC: u8 = 0xa1;

/// 1.2.840.10045.2.1, ecPublicKey.
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.113549.1.1.1, rsaEncryption.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// Reads a private key in any of the three formats.
pub(crate) fn parse(pem: &str) -> Result<KeyPair> {
    let pkcs8 = match first_key(pem)? {
        PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der().to_vec(),
        PrivateKeyDer::Sec1(key) => sec1_to_pkcs8(key.secret_sec1_der())
            .context("the EC private key does not name its curve")?,
        PrivateKeyDer::Pkcs1(key) => pkcs1_to_pkcs8(key.secret_pkcs1_der()),
        _ => bail!("the private key has an unknown format"),
    };
    let pkcs8 = rustls::pki_types::PrivatePkcs8KeyDer::from(pkcs8);
    KeyPair::try_from(&PrivateKeyDer::Pkcs8(pkcs8))
        .context("the private key is damaged or of an unsupported kind")
}

/// A key that was just generated, as PEM.
pub(crate) fn to_pem(key: &KeyPair) -> String {
    match pkcs8_to_sec1(key.serialized_der()) {
        Some(sec1) => encode("EC PRIVATE KEY", &sec1),
        None => key.serialize_pem(),
    }
}

/// The same key in the form most clients read: an EC key in PKCS#8 becomes SEC1, everything else stays as it is.
pub(crate) fn portable(pem: &str) -> String {
    let sec1 = match first_key(pem) {
        Ok(PrivateKeyDer::Pkcs8(key)) => pkcs8_to_sec1(key.secret_pkcs8_der()),
        _ => None,
    };
    sec1.map_or_else(|| pem.to_owned(), |sec1| encode("EC PRIVATE KEY", &sec1))
}

fn first_key(pem: &str) -> Result<PrivateKeyDer<'static>> {
    rustls_pemfile::private_key(&mut pem.as_bytes())
        .context("it is not valid PEM")?
        .context("it holds no private key in PEM")
}

/// PrivateKeyInfo { 0, { ecPublicKey, curve }, ECPrivateKey } to ECPrivateKey with its curve; `None` for other kinds.
fn pkcs8_to_sec1(pkcs8: &[u8]) -> Option<Vec<u8>> {
    let mut info = Reader(Reader(pkcs8).next(SEQUENCE)?);
    info.next(INTEGER)?;
    let mut algorithm = Reader(info.next(SEQUENCE)?);
    if algorithm.next(OBJECT)? != EC {
        return None;
    }
    let curve = algorithm.next(OBJECT)?;
    let mut key = Reader(Reader(info.next(OCTET_STRING)?).next(SEQUENCE)?);
    let version = key.next(INTEGER)?;
    let scalar = key.next(OCTET_STRING)?;
    // A curve that is there already is said again; the public key is optional.
    let _ = key.next(CURVE);
    let public = key.next(PUBLIC);
    let mut sec1 = vec![
        element(INTEGER, &[version]),
        element(OCTET_STRING, &[scalar]),
        element(CURVE, &[&element(OBJECT, &[curve])]),
    ];
    if let Some(public) = public {
        Reader(public).next(BIT_STRING)?;
        sec1.push(element(PUBLIC, &[public]));
    }
    Some(sequence(&sec1))
}

fn sec1_to_pkcs8(sec1: &[u8]) -> Option<Vec<u8>> {
    let mut key = Reader(Reader(sec1).next(SEQUENCE)?);
    key.next(INTEGER)?;
    key.next(OCTET_STRING)?;
    let curve = Reader(key.next(CURVE)?).next(OBJECT)?;
    let algorithm = sequence(&[element(OBJECT, &[EC]), element(OBJECT, &[curve])]);
    Some(private_key_info(algorithm, sec1))
}

fn pkcs1_to_pkcs8(pkcs1: &[u8]) -> Vec<u8> {
    let algorithm = sequence(&[element(OBJECT, &[RSA]), element(NULL, &[])]);
    private_key_info(algorithm, pkcs1)
}

fn private_key_info(algorithm: Vec<u8>, key: &[u8]) -> Vec<u8> {
    let version = element(INTEGER, &[&[0]]);
    sequence(&[version, algorithm, element(OCTET_STRING, &[key])])
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    element(SEQUENCE, &parts)
}

/// A DER element of that tag around `parts`.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let length = content.len().to_be_bytes();
            let length = &length[length.iter().take_while(|&&byte| byte == 0).count()..];
            out.push(0x80 | length.len() as u8);
            out.extend_from_slice(length);
        }
    }
    out.extend_from_slice(&content);
    out
}

/// Reads DER elements one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next element if it has that tag; otherwise nothing is consumed.
    fn next(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            short @ 0..=0x7f => usize::from(short),
            long @ 0x81..=0x84 => {
                let (digits, behind) = rest.split_at_checked(usize::from(long & 0x7f))?;
                rest = behind;
                digits.iter().fold(0, |n, &byte| n << 8 | usize::from(byte))
            }
            _ => return None,
        };
        let (content, behind) = rest.split_at_checked(length)?;
        if found != tag {
            return None;
        }
        self.0 = behind;
        Some(content)
    }
}

fn encode(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = behind;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

#[cfg(test)]
mod tests;
