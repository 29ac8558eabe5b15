//! Much at once: watches that come and go, large writes, bodies that arrive slowly.

use crate::victim::Victim;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SPAN: Duration = Duration::from_secs(3);
const ATTACKERS: usize = 8;
/// Fewer for large writes: on a slow disk each one must still be answered in time.
const WRITERS: usize = 4;

/// Repeats some work of each attacker for a while, and counts.
fn storm(victim: &Victim, attackers: usize, work: impl Fn(usize) + Sync) -> usize {
    let count = AtomicUsize::new(0);
    victim.attack(attackers, |attacker| {
        let until = Instant::now() + SPAN;
        while Instant::now() < until {
            work(attacker);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    count.into_inner()
}

#[test]
fn watches_that_come_and_go() {
    let victim = Victim::start(&[]);
    victim.fill("watched", 200, 1_000);
    let path = "/api/v1/namespaces/watched/configmaps?watch=true&sendInitialEvents=true\
        &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let attack = || {
        let watches = storm(&victim, ATTACKERS, |_| {
            if let Ok(mut connection) = victim.admin.connect()
                && connection.send("GET", path, "", b"").is_ok()
            {
                let _ = connection.read_some();
            }
        });
        println!("{watches} watches");
        assert!(watches >= ATTACKERS, "{watches}");
    };
    victim.grows_at_most(64, attack);
}

#[test]
fn large_writes() {
    let victim = Victim::on_disk();
    let maps = "/api/v1/namespaces/default/configmaps";
    for attacker in 0..WRITERS {
        let name = json!({"metadata": {"name": format!("large-{attacker}")}});
        victim.admin.post(maps, &name).accepted();
    }
    let round = AtomicUsize::new(0);
    let writes = storm(&victim, WRITERS, |attacker| {
        let round = round.fetch_add(1, Ordering::Relaxed);
        let value = format!("{round}{}", "x".repeat(1_000_000));
        let patch = json!({"data": {"value": value}}).to_string();
        let path = format!("{maps}/large-{attacker}");
        let merge = "application/merge-patch+json";
        let answer = victim.admin.call("PATCH", &path, merge, patch.as_bytes());
        assert!([200, 429].contains(&answer.code), "{}", answer.text());
    });
    println!("{writes} writes");
    assert!(writes >= WRITERS, "{writes}");
}

#[test]
fn bodies_that_arrive_slowly() {
    let victim = Victim::start(&[]);
    let attack = || {
        victim.attack(1, |_| {
            let mut open = Vec::new();
            for _ in 0..200 {
                let mut connection = victim.admin.connect().unwrap();
                let head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n\
                    Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{";
                connection.write(head.as_bytes()).unwrap();
                open.push(connection);
            }
            let until = Instant::now() + SPAN;
            while Instant::now() < until {
                // The server may end them.
                open.retain_mut(|connection| connection.write(b" ").is_ok());
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    };
    victim.grows_at_most(64, attack);
}
