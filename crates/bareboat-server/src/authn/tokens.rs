//! Bearer tokens from a file: one `token,user,uid,"group1,group2"` per line.

use super::{Authenticator, BadCredentials, Evidence, TokenUser, authenticated};
use crate::revocation::Revocations;
use arc_swap::ArcSwap;
use bareboat_api::Str;
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, User};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Static bearer tokens.
///
/// Only digests are stored and compared: neither a memory dump nor the time of a comparison reveals a token.
///
/// The tokens can be replaced while the server runs. Clones share them.
#[derive(Clone)]
pub struct StaticTokens(Arc<Shared>);

struct Shared {
    tokens: ArcSwap<Tokens>,
    revocations: OnceLock<Revocations>,
}

/// The tokens of a file.
#[derive(Default)]
struct Tokens {
    /// The users by the digests of their tokens, in the group of all authenticated users.
    users: HashMap<[u8; 32], Arc<User>>,
    /// The length of the longest token. Tokens of service accounts are longer, and need no digest.
    longest: usize,
}

bareboat_api::opaque_debug!(StaticTokens);

/// An invalid line of a token file. The message does not contain the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the token file: {why}; a line reads token,user,uid,\"group1,group2\" (the groups are optional)"
)]
pub struct TokenFileError {
    line: usize,
    why: &'static str,
}

impl StaticTokens {
    /// Parses a token file.
    pub fn parse(text: &str) -> Result<StaticTokens, TokenFileError> {
        Ok(StaticTokens(Arc::new(Shared {
            tokens: ArcSwap::from_pointee(read(text)?),
            revocations: OnceLock::new(),
        })))
    }

    /// Accepts only the tokens of another file from the next request on.
    pub fn replace(&self, text: &str) -> Result<(), TokenFileError> {
        self.0.tokens.store(Arc::new(read(text)?));
        if let Some(revocations) = self.0.revocations.get() {
            revocations.everything_changed();
        }
        Ok(())
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.0.tokens.load().users.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, token: &str) -> Option<Arc<User>> {
        let tokens = self.0.tokens.load();
        match token.len() <= tokens.longest {
            true => tokens.users.get(&digest(token)).cloned(),
            false => None,
        }
    }
}

fn read(text: &str) -> Result<Tokens, TokenFileError> {
    let mut tokens = Tokens::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |why| TokenFileError {
            line: index + 1,
            why,
        };
        let fields = split_csv(line).ok_or_else(|| fail("a quote is never closed"))?;
        let [token, name, uid, groups @ ..] = fields.as_slice() else {
            return Err(fail("there are fewer than three fields"));
        };
        if token.is_empty() || name.is_empty() {
            return Err(fail("token and user must not be empty"));
        }
        let groups = groups.first().map_or("", String::as_str);
        let user = User {
            name: Str::new(name),
            uid: Str::new(uid),
            groups: groups
                .split(',')
                .map(str::trim)
                .filter(|group| !group.is_empty())
                .map(Str::new)
                .collect(),
            ..User::default()
        };
        tokens.longest = tokens.longest.max(token.len());
        let user = authenticated(Arc::new(user));
        if tokens.users.insert(digest(token), user).is_some() {
            tracing::warn!(
                line = index + 1,
                "a token is in the token file twice; the last line counts"
            );
        }
    }
    Ok(tokens)
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn split_csv(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut()?.push(other),
        }
    }
    (!quoted).then(|| {
        fields
            .into_iter()
            .map(|field| field.trim().to_owned())
            .collect()
    })
}

impl Authenticator for StaticTokens {
    fn attach(&self, revocations: &Revocations) {
        let _ = self.0.revocations.set(revocations.clone());
    }

    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        let found = bearer(evidence.headers).and_then(|token| self.find(token));
        Box::pin(std::future::ready(Ok(found.map(Arc::unwrap_or_clone))))
    }

    fn authenticate_now(
        &self,
        evidence: &Evidence<'_>,
    ) -> Option<Result<Option<Arc<User>>, BadCredentials>> {
        // Another method may know the token. If none does, the request is refused.
        Some(Ok(
            bearer(evidence.headers).and_then(|token| self.find(token))
        ))
    }

    fn review_token<'a>(
        &'a self,
        token: &'a str,
        _audiences: &'a [Str],
        _objects: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        let found = self.find(token).map(|user| TokenUser {
            user: Arc::unwrap_or_clone(user),
            audiences: None,
        });
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// Returns the bearer token of a request.
pub fn bearer(headers: &http::HeaderMap) -> Option<&str> {
    let bytes = headers.get(http::header::AUTHORIZATION)?.as_bytes();
    // The same as `to_str`, but not byte by byte: a header has no control characters.
    let text = std::str::from_utf8(bytes).ok().filter(|it| it.is_ascii())?;
    let (scheme, token) = text.trim().split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_users_and_groups_and_names_the_bad_line() {
        let tokens =
            StaticTokens::parse("# people\ns3cret,ann,1,\"dev, ops\"\nt,bob,2\n").expect("valid");
        let ann = tokens.find("s3cret").expect("ann has a token");
        assert_eq!(ann.name, "ann");
        assert_eq!(ann.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(tokens.len(), 2);
        tokens.replace("t,bob,2\n").expect("valid");
        assert_eq!((tokens.len(), tokens.find("s3cret")), (1, None));
        assert!(tokens.replace("nonsense").is_err());
        assert_eq!(tokens.len(), 1);
        let error = StaticTokens::parse("a,b,c\nonly-a-token").expect_err("invalid");
        assert_eq!(error.line, 2);
        assert!(!error.to_string().contains("only-a-token"));
    }
}
