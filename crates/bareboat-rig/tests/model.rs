//! The model of the protocol of appends, explored completely, and with parts of the protocol taken away.
#![allow(clippy::unwrap_used)]

use bareboat_rig::model::{Protocol, explore};

#[test]
fn the_protocol_holds_in_every_state() {
    let explored = explore(Protocol::WHOLE);
    assert!(explored.broken.is_none(), "{:#?}", explored.broken);
    println!("{} states", explored.states);
    // Fewer would mean that something cannot happen any more.
    assert!(explored.states > 10_000, "{}", explored.states);
}

fn fails(protocol: Protocol, rule: &str) {
    let explored = explore(protocol);
    let (broken, steps) = explored.broken.expect("a part that is needed");
    println!("{protocol:?}: {broken}\n{steps:#?}");
    assert_eq!(broken, rule);
}

#[test]
fn without_epochs_a_revision_means_two_things() {
    fails(
        Protocol {
            epochs: false,
            ..Protocol::WHOLE
        },
        "a revision means two things",
    );
}

#[test]
fn without_rows_of_batches_a_late_append_goes_into_the_past() {
    fails(
        Protocol {
            batches: false,
            promotion: false,
            ..Protocol::WHOLE
        },
        "a batch was inserted into the past",
    );
}

#[test]
fn without_ids_a_repeated_append_is_refused_although_it_happened() {
    fails(
        Protocol {
            ids: false,
            ..Protocol::WHOLE
        },
        "a refused write is in the log",
    );
}
