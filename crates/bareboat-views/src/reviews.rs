//! What members that judge themselves say about the rights of users. Answers hold for a short time.

use bareboat_api::kind::User;
use bareboat_server::request::info::RequestInfo;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer holds.
const HOLDS: Duration = Duration::from_secs(30);
/// For how long a member is not asked again that did not answer.
const REST: Duration = Duration::from_secs(10);
/// How many answers are kept.
const MOST: usize = 10_000;

/// A question in short.
pub(crate) type Question = [u8; 32];

/// Recent answers.
#[derive(Debug, Default)]
pub(crate) struct Reviews {
    known: Mutex<HashMap<Question, (bool, Instant)>>,
    /// Members that did not answer, and when that was.
    silent: Mutex<HashMap<String, Instant>>,
}

impl Reviews {
    /// Returns an answer that still holds.
    pub(crate) fn known(&self, question: &Question) -> Option<bool> {
        let known = self.known.lock();
        let (allowed, since) = known.get(question)?;
        (since.elapsed() < HOLDS).then_some(*allowed)
    }

    /// Returns whether a member did not answer a moment ago.
    pub(crate) fn is_silent(&self, member: &str) -> bool {
        let silent = self.silent.lock();
        silent.get(member).is_some_and(|it| it.elapsed() < REST)
    }

    /// Notes whether a member answered.
    pub(crate) fn answered(&self, member: &str, answered: bool) {
        let mut silent = self.silent.lock();
        match answered {
            true => drop(silent.remove(member)),
            false => {
                silent.retain(|_, since| since.elapsed() < REST);
                silent.insert(member.to_owned(), Instant::now());
            }
        }
    }

    pub(crate) fn note(&self, question: Question, allowed: bool) {
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.retain(|_, (_, since)| since.elapsed() < HOLDS);
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(question, (allowed, Instant::now()));
    }
}

/// Returns a question in short. Everything that a member may decide by is part of it.
pub(crate) fn question(member: &str, user: &User, info: &RequestInfo) -> Question {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    for text in [member, &user.name, &user.uid] {
        add(text);
    }
    add(&user.groups.len().to_string());
    for group in &user.groups {
        add(group);
    }
    add(&user.extra.len().to_string());
    for (key, values) in &user.extra {
        add(key);
        add(&values.len().to_string());
        for value in values {
            add(value);
        }
    }
    for text in [
        &info.verb,
        &info.group,
        &info.resource,
        &info.subresource,
        &info.namespace,
        &info.name,
    ] {
        add(text);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::read_info;

    #[tokio::test(start_paused = true)]
    async fn answers_hold_for_a_while() {
        let reviews = Reviews::default();
        let user = |name: &str, groups: &[&str]| User {
            name: name.into(),
            groups: groups.iter().map(|group| (*group).into()).collect(),
            ..User::default()
        };
        let pods = read_info("list", "", "pods", "a");
        let ann = question("c1", &user("ann", &["x"]), &pods);
        reviews.note(ann, true);
        assert_eq!(reviews.known(&ann), Some(true));
        for other in [
            question("c2", &user("ann", &["x"]), &pods),
            question("c1", &user("bob", &["x"]), &pods),
            question("c1", &user("ann", &["x", "y"]), &pods),
            question(
                "c1",
                &user("ann", &["x"]),
                &read_info("list", "", "pods", "b"),
            ),
            question(
                "c1",
                &user("ann", &["x"]),
                &read_info("watch", "", "pods", "a"),
            ),
        ] {
            assert_eq!(reviews.known(&other), None);
        }
        tokio::time::advance(HOLDS).await;
        assert_eq!(reviews.known(&ann), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_member_is_left_alone_for_a_while() {
        let reviews = Reviews::default();
        reviews.answered("c1", false);
        assert!(reviews.is_silent("c1") && !reviews.is_silent("c2"));
        tokio::time::advance(REST).await;
        assert!(!reviews.is_silent("c1"));
        reviews.answered("c1", false);
        reviews.answered("c1", true);
        assert!(!reviews.is_silent("c1"));
    }
}
