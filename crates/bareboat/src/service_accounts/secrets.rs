//! Signs the tokens of Secrets for the controller that fills them, and tells it of their use.

use super::{ServiceAccounts, now};
use bareboat_controllers::{SecretTokenIssuer, UseHook};
use bareboat_tokens::KeyError;
use bareboat_tokens::account::{self, Claims};
use std::sync::Arc;

impl SecretTokenIssuer for ServiceAccounts {
    fn issue(&self, claims: &Claims) -> Result<String, KeyError> {
        let keys = self.shared.keys.load();
        account::issue(&keys.signing, self.issuer(), claims, now())
    }

    fn on_use(&self, hook: UseHook) {
        self.shared.used.store(Some(Arc::new(hook)));
    }
}
