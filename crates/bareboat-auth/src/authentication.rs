//! `AuthenticationConfiguration`: JWT issuers and anonymous requests.

use crate::anonymous;
use crate::mappings::{self, Mappings};
use crate::strict::{ConfigurationError, Fields, Findings, document};
use crate::urls;
use bareboat_api::{AnonymousRule, FieldError, FieldPath, Value};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use std::collections::HashSet;

/// The most issuers there may be.
const MOST_ISSUERS: usize = 64;

/// The content of an authentication configuration file, validated and compiled.
#[derive(Debug, Default)]
pub struct AuthenticationConfiguration {
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<JwtIssuer>,
    /// Which requests without credentials are accepted; `None` if the file does not say.
    pub anonymous: Option<AnonymousRule>,
}

/// An issuer of tokens: the location of its keys, the audiences of its tokens, and the mapping of claims to users.
#[derive(Debug)]
pub struct JwtIssuer {
    url: String,
    discovery_url: String,
    certificate_authority: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) mappings: Mappings,
}

impl AuthenticationConfiguration {
    /// Reads a file (YAML or JSON). `disallowed` are the issuers of service account tokens, which no issuer may equal.
    pub fn parse(
        text: &str,
        disallowed: &[String],
    ) -> Result<AuthenticationConfiguration, ConfigurationError> {
        let kind = "AuthenticationConfiguration";
        let value = document(text, kind, &["v1", "v1beta1"])?;
        let mut findings = Findings::default();
        let known = ["apiVersion", "kind", "jwt", "anonymous"];
        let root = findings.object(Some(&value), &FieldPath::root(), &known);
        let anonymous = anonymous::read(root.get("anonymous"), &mut findings);
        let items = root.list("jwt", &mut findings);
        if items.len() > MOST_ISSUERS {
            let place = FieldPath::new("jwt");
            findings.add(FieldError::too_many(place, items.len(), MOST_ISSUERS));
            return findings.finish(AuthenticationConfiguration::default());
        }
        let (mut urls, mut discoveries) = (HashSet::new(), HashSet::new());
        let mut issuers = Vec::new();
        for (path, item) in items {
            let known = [
                "issuer",
                "claimValidationRules",
                "claimMappings",
                "userValidationRules",
            ];
            let fields = findings.object(Some(item), &path, &known);
            let source = Source::read(&fields, disallowed, &mut findings);
            let mappings = mappings::read(&fields, &mut findings);
            let place = path.child("issuer");
            if !urls.insert(source.url.clone()) {
                let error = FieldError::duplicate(place.child("url"), source.url.as_str());
                findings.add(error);
            }
            let discovery = &source.discovery_url;
            if !discovery.is_empty() && !discoveries.insert(discovery.clone()) {
                let place = place.child("discoveryURL");
                findings.add(FieldError::duplicate(place, discovery.as_str()));
            }
            if let Some(mappings) = mappings {
                issuers.push(source.with(mappings));
            }
        }
        findings.finish(AuthenticationConfiguration { issuers, anonymous })
    }
}

impl JwtIssuer {
    /// Returns the claim `iss` of its tokens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL of the discovery document of the issuer.
    pub fn document_url(&self) -> String {
        match self.discovery_url.is_empty() {
            true => format!(
                "{}/.well-known/openid-configuration",
                self.url.trim_end_matches('/')
            ),
            false => self.discovery_url.clone(),
        }
    }

    /// Returns the CA certificates (PEM) that its server is verified with; empty for those of the system.
    pub fn certificate_authority(&self) -> &str {
        &self.certificate_authority
    }

    /// Returns whether another issuer has its keys at the same URL, verified with the same CAs.
    pub fn has_same_keys(&self, other: &JwtIssuer) -> bool {
        self.url == other.url
            && self.discovery_url == other.discovery_url
            && self.certificate_authority == other.certificate_authority
    }
}

/// The section `issuer`.
struct Source {
    url: String,
    discovery_url: String,
    certificate_authority: String,
    audiences: Vec<String>,
}

impl Source {
    fn with(self, mappings: Mappings) -> JwtIssuer {
        JwtIssuer {
            url: self.url,
            discovery_url: self.discovery_url,
            certificate_authority: self.certificate_authority,
            audiences: self.audiences,
            mappings,
        }
    }

    fn read(issuer: &Fields<'_>, disallowed: &[String], findings: &mut Findings) -> Source {
        let known = [
            "url",
            "discoveryURL",
            "certificateAuthority",
            "audiences",
            "audienceMatchPolicy",
        ];
        let fields = findings.object(issuer.get("issuer"), &issuer.at("issuer"), &known);
        let source = Source {
            url: fields.text("url", findings),
            discovery_url: fields.text("discoveryURL", findings),
            certificate_authority: fields.text("certificateAuthority", findings),
            audiences: fields.texts("audiences", findings),
        };
        let policy = fields.text("audienceMatchPolicy", findings);
        source.check_urls(&fields, disallowed, findings);
        source.check_audiences(&fields, &policy, findings);
        source.check_authority(&fields, findings);
        source
    }

    fn check_urls(&self, fields: &Fields<'_>, disallowed: &[String], findings: &mut Findings) {
        let (url, place) = (self.url.as_str(), fields.at("url"));
        if url.is_empty() {
            findings.add(FieldError::required(place, ""));
        } else {
            if disallowed.iter().any(|known| known == url) {
                let mut all: Vec<&str> = disallowed.iter().map(String::as_str).collect();
                all.sort_unstable();
                let why = format!(
                    "URL must not overlap with disallowed issuers: [{}]",
                    all.join(" ")
                );
                findings.add(FieldError::invalid(place.clone(), url, why));
            }
            urls::check(url, &place, findings);
        }
        let (discovery, place) = (self.discovery_url.as_str(), fields.at("discoveryURL"));
        if discovery.is_empty() {
            return;
        }
        if !url.is_empty() && url.trim_end_matches('/') == discovery.trim_end_matches('/') {
            let why = "discoveryURL must be different from URL";
            findings.add(FieldError::invalid(place.clone(), discovery, why));
        }
        urls::check(discovery, &place, findings);
    }

    fn check_audiences(&self, fields: &Fields<'_>, policy: &str, findings: &mut Findings) {
        let place = fields.at("audiences");
        if self.audiences.is_empty() {
            let why = format!("at least one {} is required", place.as_str());
            return findings.add(FieldError::required(place, why));
        }
        let mut seen = HashSet::new();
        for (index, audience) in self.audiences.iter().enumerate() {
            if audience.is_empty() {
                findings.add(FieldError::required(place.index(index), ""));
            }
            if !seen.insert(audience) {
                findings.add(FieldError::duplicate(place.index(index), audience.as_str()));
            }
        }
        let why = match self.audiences.len() {
            1 if policy.is_empty() => return,
            1 => "audienceMatchPolicy must be empty or MatchAny for single audience",
            _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
        };
        if policy != "MatchAny" {
            let place = fields.at("audienceMatchPolicy");
            findings.add(FieldError::invalid(place, policy, why));
        }
    }

    fn check_authority(&self, fields: &Fields<'_>, findings: &mut Findings) {
        let pem = self.certificate_authority.as_bytes();
        if pem.is_empty() {
            return;
        }
        let found: Result<Vec<CertificateDer<'_>>, _> =
            CertificateDer::pem_slice_iter(pem).collect();
        if !found.is_ok_and(|found| !found.is_empty()) {
            findings.add(FieldError::invalid(
                fields.at("certificateAuthority"),
                Value::from("<omitted>"),
                "data does not contain any valid RSA or ECDSA certificates",
            ));
        }
    }
}

#[cfg(test)]
mod tests;
