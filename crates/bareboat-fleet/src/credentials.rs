//! How a member is reached: its address and credentials, from the PediaCluster or from Secrets it names.

use crate::kinds::{IMPERSONATOR, INSECURE};
use crate::kubeconfig;
use bareboat_api::{Object, Value};
use bareboat_server::{ClientIdentity, OutboundAccess};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

/// The keys of `spec.authenticationFrom`.
const PARTS: [&str; 5] = ["kubeconfig", "ca", "token", "cert", "key"];

/// Address and credentials of a member.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) url: String,
    authorities: Option<String>,
    insecure: bool,
    token: Option<String>,
    certificate: Option<(String, String)>,
}

bareboat_api::opaque_debug!(Access);

/// Returns the names of the Secrets that a member needs.
pub(crate) fn secrets(object: &Object) -> impl Iterator<Item = &str> {
    let parts = PARTS.iter().filter_map(|part| {
        let name = object.at(&["spec", "authenticationFrom", part, "name"])?;
        name.as_str()
    });
    parts.chain(object.annotation(IMPERSONATOR))
}

/// Returns how requests of users are forwarded: with the token that the annotation names, or as the sync does it.
pub(crate) fn forwarding(
    object: &Object,
    access: &Access,
    secret: &dyn Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<Access, String> {
    let Some(name) = object.annotation(IMPERSONATOR) else {
        return Ok(access.clone());
    };
    let token = secret(name, "token").and_then(|token| String::from_utf8(token).ok());
    let token = token.ok_or_else(|| format!("the Secret {name} has no key token"))?;
    Ok(Access {
        token: Some(token.trim().to_owned()),
        certificate: None,
        ..access.clone()
    })
}

/// Reads address and credentials. `secret` returns a value of a Secret by name and key.
pub(crate) fn read(
    object: &Object,
    secret: &dyn Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<Access, String> {
    let insecure = object.annotation(INSECURE) == Some("true");
    let inline = |key: &str| -> Result<Option<String>, String> {
        let text = object.at(&["spec", key]).and_then(Value::as_str);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let bytes = BASE64_STANDARD.decode(text).ok();
        let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        decoded
            .map(Some)
            .ok_or_else(|| format!("spec.{key} is not base64 of a text"))
    };
    let referred = |part: &str| -> Result<Option<String>, String> {
        let Some(reference) = object.at(&["spec", "authenticationFrom", part]) else {
            return Ok(None);
        };
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or("");
        let (name, key) = (text("name"), text("key"));
        let value = secret(name, key);
        let value = value.ok_or_else(|| format!("the Secret {name} has no key {key}"))?;
        String::from_utf8(value)
            .map(Some)
            .map_err(|_| format!("the key {key} of the Secret {name} is not a text"))
    };
    if let Some(text) = inline("kubeconfig")? {
        return of_kubeconfig(&text, insecure);
    }
    let inline_parts = [
        inline("tokenData")?,
        inline("certData")?,
        inline("keyData")?,
    ];
    let has_inline = inline_parts.iter().any(Option::is_some);
    if !has_inline && let Some(text) = referred("kubeconfig")? {
        return of_kubeconfig(&text, insecure);
    }
    let [token, chain, key] = match has_inline {
        true => inline_parts,
        false => [referred("token")?, referred("cert")?, referred("key")?],
    };
    let authorities = match inline("caData")? {
        Some(pem) => Some(pem),
        None => referred("ca")?,
    };
    let url = object.at(&["spec", "apiserver"]).and_then(Value::as_str);
    let url = url.unwrap_or("").trim_end_matches('/');
    if url.is_empty() {
        return Err("spec.apiserver is empty, and there is no kubeconfig".to_owned());
    }
    let url = match url.contains("://") {
        true => url.to_owned(),
        false => format!("https://{url}"),
    };
    let certificate = match (chain, key) {
        (Some(chain), Some(key)) => Some((chain, key)),
        (None, None) => None,
        _ => return Err("a client certificate needs its key".to_owned()),
    };
    complete(Access {
        url,
        authorities,
        insecure,
        token: token.map(|token| token.trim().to_owned()),
        certificate,
    })
}

fn of_kubeconfig(text: &str, insecure: bool) -> Result<Access, String> {
    let read = kubeconfig::read(text.as_bytes(), insecure)
        .map_err(|why| format!("the kubeconfig cannot be used: {why}"))?;
    complete(Access {
        url: read.server.trim_end_matches('/').to_owned(),
        authorities: read.authorities,
        insecure,
        token: read.token,
        certificate: read.certificate,
    })
}

fn complete(access: Access) -> Result<Access, String> {
    match access.token.is_none() && access.certificate.is_none() {
        true => Err("there is neither a token nor a client certificate".to_owned()),
        false => Ok(access),
    }
}

impl Access {
    /// Returns the same for the client of outbound calls.
    pub(crate) fn outbound(&self) -> Result<OutboundAccess, String> {
        let mut access = OutboundAccess::default();
        access.url.clone_from(&self.url);
        access.authorities.clone_from(&self.authorities);
        access.insecure = self.insecure;
        access.token.clone_from(&self.token);
        if let Some((chain, key)) = &self.certificate {
            let identity = ClientIdentity::from_pem(chain, key);
            access.identity = Some(identity.map_err(|error| error.to_string())?);
        }
        Ok(access)
    }

    /// Returns a digest of everything, which tells whether something changed without keeping the credentials.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        let certificate = self.certificate.as_ref();
        let parts = [
            Some(&self.url),
            self.authorities.as_ref(),
            self.token.as_ref(),
            certificate.map(|(chain, _)| chain),
            certificate.map(|(_, key)| key),
        ];
        for part in parts {
            let text = part.map_or("", String::as_str);
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        digest.update([u8::from(self.insecure)]);
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    fn cluster(spec: Value) -> Object {
        Object::try_from(value!({"metadata": {"name": "c1"}, "spec": spec})).expect("an object")
    }

    fn access(spec: Value) -> Result<Access, String> {
        let secret = |name: &str, key: &str| {
            let known = name == "s" && key == "token";
            known.then(|| b"from-secret".to_vec())
        };
        read(&cluster(spec), &secret)
    }

    #[test]
    fn inline_credentials_are_used_before_those_of_secrets() {
        let token = BASE64_STANDARD.encode("inline");
        let from = value!({"token": {"name": "s", "key": "token"}});
        let both = access(
            value!({"apiserver": "a:6443", "tokenData": (token.as_str()), "authenticationFrom": (from.clone())}),
        );
        let both = both.expect("it is complete");
        assert_eq!(
            (both.url.as_str(), both.token.as_deref()),
            ("https://a:6443", Some("inline"))
        );
        let referred = access(value!({"apiserver": "https://a", "authenticationFrom": from}));
        let referred = referred.expect("it is complete");
        assert_eq!(referred.token.as_deref(), Some("from-secret"));
        assert_ne!(both.digest(), referred.digest());
    }

    #[test]
    fn users_are_forwarded_with_a_token_of_their_own() {
        let spec = value!({"apiserver": "https://a", "authenticationFrom": {"token": {"name": "s", "key": "token"}}});
        let secret = |name: &str, key: &str| match (name, key) {
            ("s", "token") => Some(b"reads".to_vec()),
            ("i", "token") => Some(b"acts\n".to_vec()),
            _ => None,
        };
        let plain = cluster(spec.clone());
        let access = read(&plain, &secret).expect("it is complete");
        let same = forwarding(&plain, &access, &secret).expect("it is the same");
        assert!(same == access);
        let annotated = |name: &str| {
            let metadata =
                value!({"name": "c1", "annotations": {"fleet.bareboat.dev/impersonator": name}});
            let object = value!({"metadata": metadata, "spec": (spec.clone())});
            Object::try_from(object).expect("an object")
        };
        let own = forwarding(&annotated("i"), &access, &secret).expect("it is complete");
        assert_eq!(own.token.as_deref(), Some("acts"));
        assert_eq!(secrets(&annotated("i")).collect::<Vec<_>>(), ["s", "i"]);
        // Without the token nothing is forwarded; the other token has no right to it.
        assert!(forwarding(&annotated("missing"), &access, &secret).is_err());
    }

    /// A kubeconfig of the member `https://own`, whose cluster and user have something else, too.
    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://own/'{cluster}}}}}]\nusers: [{{name: a, user: {{token: of-file{user}}}}}]\n"
        )
    }

    /// Reads a PediaCluster with one Secret, `s`.
    fn with_secret(spec: Value, data: &[(&str, &str)]) -> Result<Access, String> {
        let secret = |name: &str, key: &str| {
            let found = data.iter().find(|(known, _)| name == "s" && *known == key);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        read(&cluster(spec), &secret)
    }

    #[test]
    fn a_kubeconfig_is_used_before_all_other_fields() {
        let file = kubeconfig("", "");
        let encoded = BASE64_STANDARD.encode(&file);
        let other = BASE64_STANDARD.encode("other");
        let from = value!({
            "kubeconfig": {"name": "s", "key": "config"}, "token": {"name": "s", "key": "token"},
            "ca": {"name": "s", "key": "ca"},
        });
        let secret = [("config", file.as_str()), ("token", "x"), ("ca", "x")];
        let inline = with_secret(
            value!({
                "kubeconfig": (encoded.as_str()), "apiserver": "https://other", "caData": (other.as_str()),
                "tokenData": (other.as_str()), "authenticationFrom": (from.clone()),
            }),
            &secret,
        );
        // The Secret has another token; a kubeconfig in it is used all the same.
        let referred = with_secret(
            value!({"apiserver": "https://other", "authenticationFrom": (from.clone())}),
            &secret,
        );
        for access in [inline, referred] {
            let access = access.expect("it is complete");
            assert_eq!(access.url, "https://own");
            assert_eq!(access.token.as_deref(), Some("of-file"));
            assert_eq!(access.authorities, None, "it has no CA");
        }
        // A token in the object is used before a kubeconfig in a Secret.
        let token = with_secret(
            value!({"apiserver": "https://other", "tokenData": (other.as_str()), "authenticationFrom": from}),
            &secret,
        );
        let token = token.expect("it is complete");
        assert_eq!(
            (token.url.as_str(), token.token.as_deref()),
            ("https://other", Some("other"))
        );
    }

    #[test]
    fn a_certificate_and_its_key_may_be_in_a_secret() {
        let spec = |cert: &str, key: &str| {
            value!({"apiserver": "https://a", "authenticationFrom": {
                "cert": {"name": "s", "key": cert}, "key": {"name": "s", "key": key},
            }})
        };
        let secret = [("tls.crt", "chain"), ("tls.key", "key")];
        let access = with_secret(spec("tls.crt", "tls.key"), &secret).expect("it is complete");
        let certificate = access.certificate.clone();
        assert_eq!(certificate, Some(("chain".to_owned(), "key".to_owned())));
        assert_eq!(access.token, None);
        let changed = [("tls.crt", "chain"), ("tls.key", "other")];
        let changed = with_secret(spec("tls.crt", "tls.key"), &changed).expect("it is complete");
        assert_ne!(access.digest(), changed.digest());
        let missing = with_secret(spec("tls.crt", "missing"), &secret);
        let missing = missing.err();
        assert_eq!(missing.as_deref(), Some("the Secret s has no key missing"));
        let alone = value!({"apiserver": "https://a", "authenticationFrom": {"cert": {"name": "s", "key": "tls.crt"}}});
        let alone = with_secret(alone, &secret).err();
        assert_eq!(alone.as_deref(), Some("a client certificate needs its key"));
    }

    #[test]
    fn a_kubeconfig_in_a_secret_may_name_neither_programs_nor_files() {
        let spec =
            || value!({"authenticationFrom": {"kubeconfig": {"name": "s", "key": "config"}}});
        let judge = |file: &str| with_secret(spec(), &[("config", file)]);
        assert!(judge(&kubeconfig("", "")).is_ok());
        let users = [
            ("exec", "{command: /bin/sh}"),
            ("auth-provider", "{name: gcp}"),
            ("tokenFile", "/etc/token"),
            ("client-certificate", "/etc/cert"),
            ("client-key", "/etc/key"),
            ("username", "joe"),
            ("password", "hidden"),
            ("as", "joe"),
        ];
        let clusters = [
            ("certificate-authority", "/etc/ca"),
            ("proxy-url", "'http://proxy'"),
            ("tls-server-name", "other"),
            ("insecure-skip-tls-verify", "true"),
        ];
        let users =
            users.map(|(field, value)| (field, kubeconfig("", &format!(", {field}: {value}"))));
        let clusters =
            clusters.map(|(field, value)| (field, kubeconfig(&format!(", {field}: {value}"), "")));
        for (field, file) in users.into_iter().chain(clusters) {
            let why = judge(&file).expect_err(field);
            assert!(why.contains(field), "{field}: {why}");
            assert!(!why.contains("of-file") && !why.contains("hidden"), "{why}");
        }
        let plain = kubeconfig("", "").replace("https://", "http://");
        assert!(judge(&plain).is_err());
    }

    #[test]
    fn without_a_ca_those_of_the_system_count() {
        let token = BASE64_STANDARD.encode("t");
        let spec = value!({"apiserver": "https://a", "tokenData": (token.as_str())});
        let outbound = |annotation: &str| {
            let annotations = value!({"fleet.bareboat.dev/insecure": annotation});
            let object = value!({"metadata": {"name": "c1", "annotations": annotations}, "spec": (spec.clone())});
            let object = Object::try_from(object).expect("an object");
            let access = read(&object, &|_, _| None).expect("it is complete");
            let outbound = access.outbound().expect("it is well formed");
            assert_eq!(outbound.authorities, None);
            (outbound.insecure, access.digest())
        };
        for other in ["", "false", "True", "yes"] {
            assert!(!outbound(other).0, "{other}");
        }
        assert!(outbound("true").0);
        // The connection is made anew when the annotation changes.
        assert_ne!(outbound("true").1, outbound("false").1);
    }

    #[test]
    fn a_member_without_credentials_is_invalid() {
        let none = access(value!({"apiserver": "https://a"}));
        assert_eq!(
            none.err().as_deref(),
            Some("there is neither a token nor a client certificate")
        );
        let missing = access(value!({"apiserver": "https://a",
            "authenticationFrom": {"token": {"name": "x", "key": "token"}}}));
        assert_eq!(
            missing.err().as_deref(),
            Some("the Secret x has no key token")
        );
    }
}
