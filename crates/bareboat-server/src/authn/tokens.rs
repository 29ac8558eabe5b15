//! Bearer tokens from a file: `token,user,uid,"group1,group2"` a line.

use super::{Authenticator, BadCredentials, Evidence, TokenUser};
use bareboat_api::Str;
use bareboat_api::admission::World;
use bareboat_api::kind::{BoxFuture, User};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;

/// Bearer tokens that are known beforehand.
///
/// Only digests are kept, and looked up by digest: neither a dump of memory nor the time a
/// comparison takes tells anything of a token.
pub struct StaticTokens(HashMap<[u8; 32], User>);

/// A line of a token file that makes no sense; the token itself is not repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFileError {
    line: usize,
    why: &'static str,
}

impl fmt::Display for TokenFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {} of the token file: {}; a line reads token,user,uid,\"group1,group2\" \
             (the groups are optional)",
            self.line, self.why
        )
    }
}
impl std::error::Error for TokenFileError {}

impl StaticTokens {
    /// Reads a token file.
    pub fn parse(text: &str) -> Result<StaticTokens, TokenFileError> {
        let mut tokens = HashMap::new();
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
            tokens.insert(digest(token), user);
        }
        Ok(StaticTokens(tokens))
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        let found = bearer(evidence.headers).map(|token| self.0.get(&digest(token)).cloned());
        Box::pin(async move {
            match found {
                None => Ok(None),
                Some(Some(user)) => Ok(Some(user)),
                Some(None) => Err(BadCredentials("an unknown bearer token".to_owned())),
            }
        })
    }

    fn review_token<'a>(
        &'a self,
        token: &'a str,
        _audiences: &'a [Str],
        _objects: &'a dyn World,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        let found = self.0.get(&digest(token)).map(|user| TokenUser {
            user: user.clone(),
            audiences: None,
        });
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// The bearer token of a request.
pub fn bearer(headers: &http::HeaderMap) -> Option<&str> {
    let text = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
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
        let ann = &tokens.0[&digest("s3cret")];
        assert_eq!(ann.name, "ann");
        assert_eq!(ann.groups, ["dev", "ops"]);
        assert_eq!(tokens.len(), 2);
        let error = StaticTokens::parse("a,b,c\nonly-a-token")
            .err()
            .expect("invalid");
        assert_eq!(error.line, 2);
        assert!(!error.to_string().contains("only-a-token"));
    }
}
