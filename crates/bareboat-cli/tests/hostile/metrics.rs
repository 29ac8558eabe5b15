//! Metrics and unauthenticated clients: invented names are neither counted by name nor printed.

use crate::victim::Victim;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parses the text format into names and labels. Panics on anything else.
fn samples(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let name: String = line
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "_:".contains(*c))
            .collect();
        assert!(!name.is_empty(), "no sample: {line}");
        let mut rest = &line[name.len()..];
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            while !rest.starts_with('}') {
                let (key, after) = rest
                    .split_once("=\"")
                    .unwrap_or_else(|| panic!("no label: {line}"));
                let (value, after) =
                    quoted(after).unwrap_or_else(|| panic!("no end of a value: {line}"));
                labels.push((key.trim_start_matches(',').to_owned(), value));
                rest = after;
            }
            rest = &rest[1..];
        }
        let value = rest.trim();
        assert!(value.parse::<f64>().is_ok(), "no value: {line}");
        found.push((name, labels));
    }
    found
}

/// Returns a value up to its closing quote, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    loop {
        match chars.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => match chars.next()?.1 {
                'n' => value.push('\n'),
                other @ ('"' | '\\') => value.push(other),
                _ => return None,
            },
            (_, other) => value.push(other),
        }
    }
}

#[test]
fn invented_methods_add_no_series() {
    let victim = Victim::start(&[]);
    let series = || samples(&victim.admin.get("/metrics").accepted().text()).len();
    let before = AtomicUsize::new(0);
    victim.attack(1, |_| {
        // Now the requests of the other client are among them.
        before.store(series(), Ordering::Relaxed);
        let mut connection = victim.stranger.connect().unwrap();
        for at in 0..400 {
            let sent = connection.send(&format!("INVENTED{at}"), "/api/v1/namespaces", "", b"");
            // A refusal may close the connection.
            if sent.and_then(|()| connection.receive()).is_err() {
                connection = victim.stranger.connect().unwrap();
            }
        }
    });
    let before = before.into_inner();
    let text = victim.admin.get("/metrics").accepted().text();
    let after = samples(&text).len();
    assert!(
        !text.contains("INVENTED"),
        "a stranger chose the name of a series"
    );
    // The server's own work adds some series; each invented method would add more than one.
    assert!(
        after < before + 350,
        "{before} series before, {after} after"
    );
}

#[test]
fn a_path_cannot_forge_a_line() {
    let victim = Victim::start(&[]);
    let paths = [
        "/apis/x%22%7D%201%0Aforged_metric%7Ba%3D%22/v1/things?timeout=never",
        "/apis/forged_metric/v1/things?timeout=never",
        "/apis/apps/forged_metric%22%0A/deployments?timeout=never",
        "/api/v1/namespaces/a/forged_metric%22%7D%0A/b/forged_metric%22%0A",
        "/forged_metric%22%0A",
    ];
    victim.attack(1, |_| {
        for path in paths {
            for caller in [&victim.admin, &victim.stranger] {
                assert!(caller.get(path).code >= 400);
                assert!(caller.call("POST", path, "application/json", b"{}").code >= 400);
            }
        }
    });
    let text = victim.admin.get("/metrics").accepted().text();
    let found = samples(&text);
    assert!(!found.is_empty());
    assert!(
        !text.contains("forged_metric"),
        "a client chose a label:\n{text}"
    );
    let series: BTreeSet<_> = found.iter().collect();
    assert_eq!(series.len(), found.len(), "every series is there once");
}
