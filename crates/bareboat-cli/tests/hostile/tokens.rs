//! Tokens that are nearly right: each costs a check of a signature, and none of them is remembered.

use crate::victim::Victim;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Replaces a few characters of the signature, and nothing else.
fn spoiled(token: &str, number: usize) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    format!("{signed}.{number:08}{}", &signature[8..])
}

#[test]
fn tokens_with_the_right_issuer_and_key_and_a_wrong_signature() {
    let victim = Victim::start(&[]);
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let issued = crate::process::eventually("the account is there", || {
        let answer = victim.admin.post(path, &request);
        (answer.code == 201).then(|| answer.json())
    });
    let token = issued["status"]["token"].as_str().unwrap();
    let dots = ".".repeat(15 << 10);
    let refused = AtomicUsize::new(0);
    let numbers = AtomicUsize::new(0);
    let attack = || {
        victim.attack(4, |attacker| {
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                let Ok(mut connection) = victim.stranger.connect() else {
                    continue;
                };
                // The server may end a connection after a refusal.
                loop {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let shown = match attacker {
                        0 => dots.clone(),
                        _ => spoiled(token, number),
                    };
                    let header = format!("Authorization: Bearer {shown}");
                    let sent = connection.send_with("GET", "/api/v1/nodes", "", &[&header], b"");
                    let Ok(answer) = sent.and_then(|()| connection.receive()) else {
                        break;
                    };
                    assert_eq!(answer.code, 401, "{}", answer.text());
                    refused.fetch_add(1, Ordering::Relaxed);
                    if Instant::now() > until {
                        break;
                    }
                }
            }
        });
    };
    victim.grows_at_most(48, attack);
    let refused = refused.into_inner();
    println!("{refused} tokens were refused");
    assert!(refused > 50, "{refused}");
}
