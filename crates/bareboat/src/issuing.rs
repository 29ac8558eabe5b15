//! Certificates that a program makes for itself at its start. Their keys are only in its memory.

use bareboat_certificates::{
    AlternativeName, CertificateAuthority as _, ExtendedUsage, IssueError, Issuer, KeyPair,
    KeyUsage, Subject, Template,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;
/// How long certificates are valid.
const DAYS: i64 = 3650;

/// A certificate and its key in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A new authority.
pub(crate) struct Authority {
    pub(crate) ca: String,
    issuer: Issuer,
    begin: i64,
    end: i64,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Authority, IssueError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs().cast_signed());
        // Clocks differ a little.
        let (begin, end) = (now - DAY, now + DAYS * DAY);
        let key = KeyPair::generate()?;
        let ca = Issuer::self_signed(&format!("{name}-ca"), &key, begin, end)?;
        Ok(Authority {
            issuer: Issuer::new(&ca, key)?,
            ca,
            begin,
            end,
        })
    }

    /// A certificate for a server at these names and at this machine's loopback addresses.
    pub(crate) fn server(&self, name: &str, names: &[&str]) -> Result<Pair, IssueError> {
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let names = names
            .iter()
            .map(|name| AlternativeName::Dns((*name).to_owned()));
        let names = names.chain(loopback.map(AlternativeName::Address));
        self.issue(
            Subject::new(name),
            ExtendedUsage::ServerAuth,
            names.collect(),
        )
    }

    /// A certificate for a user with a group.
    pub(crate) fn user(&self, name: &str, group: &str) -> Result<Pair, IssueError> {
        let mut subject = Subject::new(name);
        subject.organizations.push(group.to_owned());
        self.issue(subject, ExtendedUsage::ClientAuth, Vec::new())
    }

    fn issue(
        &self,
        subject: Subject,
        usage: ExtendedUsage,
        names: Vec<AlternativeName>,
    ) -> Result<Pair, IssueError> {
        let key = KeyPair::generate()?;
        let subject = subject.to_der();
        let mut template = Template::new(subject, key.public_key_info(), self.begin, self.end);
        template.key_usages = vec![KeyUsage::DigitalSignature];
        template.extended_usages = vec![usage];
        template.alternative_names = names;
        Ok(Pair {
            certificate: self.issuer.issue(&template)?,
            key: key.to_pem(),
        })
    }
}
