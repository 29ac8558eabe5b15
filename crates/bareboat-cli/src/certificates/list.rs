//! `bareboat certificates list`: every certificate and key of a data directory, its purpose and its expiry.

use super::{alternative_names, folder, now};
use crate::account_keys::{self, read_retired};
use crate::output::{Format, Table, shown};
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat_certificates::{KeyPair, pem};
use std::fs;
use std::path::Path;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The purposes of the files.
const PURPOSES: [(&str, &str); 6] = [
    (
        "ca",
        "signs certificates of the server, users and accepted requests",
    ),
    ("server", "the certificate the server serves with"),
    ("admin", "the administrator in admin.kubeconfig"),
    (
        "front-proxy-ca",
        "signs the client certificate presented to upstream servers",
    ),
    (
        super::FRONT_PROXY,
        "the client certificate presented to upstream servers",
    ),
    ("service-accounts", "signs service account tokens"),
];

/// One line of the list.
struct Item {
    file: String,
    subject: String,
    purpose: &'static str,
    expires: Option<i64>,
    /// Additional members for `-o json`.
    more: Vec<(&'static str, Value)>,
}

/// Prints every certificate and key of the data directory, its purpose and its expiry.
pub(crate) fn list(data: &Path, format: Format) -> Result<()> {
    let dir = folder(data);
    if !dir.is_dir() {
        bail!(
            "there are no certificates in {}; start the server once, or name its data directory with --data-dir",
            data.display()
        );
    }
    let mut items = Vec::new();
    for (name, purpose) in PURPOSES {
        items.extend(item(&dir, name, purpose)?);
    }
    for key in read_retired(&dir.join(account_keys::RETIRED))? {
        items.push(Item {
            file: account_keys::RETIRED.to_owned(),
            subject: "(key)".to_owned(),
            purpose: "still checks service account tokens",
            expires: (key.until != i64::MAX).then_some(key.until),
            more: Vec::new(),
        });
    }
    print(&items, format)
}

fn item(dir: &Path, name: &str, purpose: &'static str) -> Result<Option<Item>> {
    let certificate = format!("{name}.crt");
    let path = dir.join(&certificate);
    if path.exists() {
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        return read_certificate(&text, certificate, purpose)
            .map(Some)
            .with_context(|| format!("{} cannot be used", path.display()));
    }
    let key = format!("{name}.key");
    let path = dir.join(&key);
    if !path.exists() {
        return Ok(None);
    }
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let pair =
        KeyPair::from_pem(&text).with_context(|| format!("{} cannot be used", path.display()))?;
    Ok(Some(Item {
        file: key,
        subject: "(key)".to_owned(),
        purpose,
        expires: None,
        more: vec![("algorithm", Value::from(pair.algorithm()))],
    }))
}

fn read_certificate(text: &str, file: String, purpose: &'static str) -> Result<Item> {
    let der = pem::certificates(text).into_iter().next();
    let der = der.context("it holds no certificate in PEM")?;
    let (_, parsed) = X509Certificate::from_der(&der).context("it is not a certificate")?;
    let names = alternative_names(&parsed).into_iter().map(Value::from);
    Ok(Item {
        file,
        subject: parsed.subject().to_string(),
        purpose,
        expires: Some(parsed.validity().not_after.timestamp()),
        more: vec![
            ("issuer", Value::from(parsed.issuer().to_string())),
            ("serial", Value::from(parsed.raw_serial_as_string())),
            ("names", names.collect::<Value>()),
            (
                "notBefore",
                Value::from(time(parsed.validity().not_before.timestamp())),
            ),
        ],
    })
}

fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "?".to_owned(), |time| time.to_string())
}

/// Formats the remaining time, in days or hours.
fn left(until: i64) -> String {
    match until - now() {
        past if past <= 0 => "expired".to_owned(),
        short if short < 2 * 86_400 => format!("{}h", short / 3600),
        long => format!("{}d", long / 86_400),
    }
}

fn print(items: &[Item], format: Format) -> Result<()> {
    if format == Format::Json {
        let items = items.iter().map(|item| {
            let mut line = value!({
                "file": (item.file.as_str()),
                "subject": (item.subject.as_str()),
                "purpose": (item.purpose),
            });
            let map = line.make_object();
            if let Some(expires) = item.expires {
                map.insert("notAfter", Value::from(time(expires)));
            }
            for (key, fact) in &item.more {
                map.insert(*key, fact.clone());
            }
            line
        });
        return crate::output::json(&value!({"items": (items.collect::<Value>())}));
    }
    let mut table = Table::new(["FILE", "SUBJECT", "EXPIRES", "LEFT", "PURPOSE"]);
    for item in items {
        let (expires, left) = match item.expires {
            Some(until) => (time(until), left(until)),
            None => ("never".to_owned(), "-".to_owned()),
        };
        table.row([
            item.file.clone(),
            shown(&item.subject),
            expires,
            left,
            item.purpose.to_owned(),
        ]);
    }
    crate::print(table.to_string().as_bytes())
}
