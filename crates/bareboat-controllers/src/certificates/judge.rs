//! Decides about a request: wait, sign, reject or remove. A pure function of the request and the time.

use bareboat_api::Value;
use bareboat_certificates::{ExtendedUsage, KeyUsage, SigningRequest, Template, pem};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The signer of client certificates.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Certificates are backdated by this many seconds, for servers with slow clocks.
const BACKDATED: i64 = 5 * 60;
/// The minimum lifetime of a certificate.
const SHORTEST: i64 = 10 * 60;
/// How long approved, denied or failed requests are kept.
const KEPT_DECIDED: i64 = 3600;
/// How long undecided requests are kept.
const KEPT_PENDING: i64 = 24 * 3600;

/// What the controller does with a CertificateSigningRequest.
#[derive(Debug)]
pub(super) enum Judgement {
    /// Look at the request again after this many seconds.
    Wait(u64),
    /// Sign a certificate with this content.
    Sign(Box<Template>),
    /// Mark the request as failed, for this reason.
    Refuse(String),
    /// Delete the request.
    Remove,
}

/// Limits of issued certificates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The maximum lifetime in seconds.
    pub(super) longest: i64,
    /// When the authority expires, in seconds since 1970.
    pub(super) authority_ends: i64,
}

/// Decides about a request. Without limits nothing is signed.
pub(super) fn judge(request: &Value, now: i64, limits: Option<Limits>) -> Judgement {
    let condition = |kind: &str| {
        let conditions = request.at(&["status", "conditions"]);
        let mut conditions = conditions.and_then(Value::as_array).unwrap_or(&[]).iter();
        conditions.find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
    };
    let certificate = request
        .at(&["status", "certificate"])
        .and_then(Value::as_str)
        .unwrap_or("");
    let approved = condition("Approved");
    let decided = approved
        .or_else(|| condition("Denied"))
        .or_else(|| condition("Failed"));
    let created = time(request.at(&["metadata", "creationTimestamp"])).unwrap_or(now);
    let over = match decided {
        Some(decided) => {
            let since = time(decided.get("lastUpdateTime"));
            since.unwrap_or(created) + KEPT_DECIDED
        }
        None => created + KEPT_PENDING,
    };
    let over = match ends(certificate) {
        Some(ends) => over.min(ends),
        None => over,
    };
    if over <= now {
        return Judgement::Remove;
    }
    let ours = request.at(&["spec", "signerName"]).and_then(Value::as_str) == Some(SIGNER);
    let open = condition("Denied").is_none() && condition("Failed").is_none();
    if let Some(limits) = limits
        && ours
        && approved.is_some()
        && open
        && certificate.is_empty()
    {
        return match template(request, now, limits) {
            Ok(template) => Judgement::Sign(Box::new(template)),
            Err(why) => Judgement::Refuse(why),
        };
    }
    Judgement::Wait(u64::try_from(over - now).unwrap_or(1))
}

fn template(request: &Value, now: i64, limits: Limits) -> Result<Template, String> {
    let spec = |member: &str| request.at(&["spec", member]);
    let mut key_usages = Vec::new();
    let mut client = false;
    let usages = spec("usages").and_then(Value::as_array).unwrap_or(&[]);
    for usage in usages.iter().filter_map(Value::as_str) {
        match usage {
            "client auth" => client = true,
            "digital signature" => key_usages.push(KeyUsage::DigitalSignature),
            "key encipherment" => key_usages.push(KeyUsage::KeyEncipherment),
            other => return Err(format!("invalid usage for client certificate: {other}")),
        }
    }
    if !client {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    let text = spec("request").and_then(Value::as_str).unwrap_or("");
    let text = STANDARD
        .decode(text)
        .map_err(|_| "the request is not base64".to_owned())?;
    let parsed = SigningRequest::from_pem(&text).map_err(|error| error.to_string())?;
    parsed.verify().map_err(|error| error.to_string())?;
    let subject = parsed.client.map_err(|error| error.to_string())?;
    // Admission rejects this too, but a request may be older than that rule.
    if subject.groups.iter().any(|group| group == "system:masters") {
        return Err(format!(
            "use of {SIGNER} signer with system:masters group is not allowed"
        ));
    }
    let asked = spec("expirationSeconds").and_then(Value::as_i64);
    let seconds = asked.unwrap_or(limits.longest).min(limits.longest);
    let seconds = seconds.max(SHORTEST);
    let not_after = now.saturating_add(seconds).min(limits.authority_ends);
    let mut template = Template::new(
        parsed.subject,
        parsed.public_key_info,
        now - BACKDATED,
        not_after,
    );
    template.key_usages = key_usages;
    template.extended_usages = vec![ExtendedUsage::ClientAuth];
    Ok(template)
}

/// Parses a timestamp into seconds since 1970.
fn time(value: Option<&Value>) -> Option<i64> {
    let time = bareboat_api::time::Timestamp::parse(value?.as_str()?).ok()?;
    Some(time.seconds)
}

/// Returns when the first certificate in the status expires.
fn ends(encoded: &str) -> Option<i64> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let der = pem::certificates(&text).into_iter().next()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    Some(parsed.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests;
