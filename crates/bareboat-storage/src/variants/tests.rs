//! Tests of encodings of entries, which are kept within a byte budget.

use std::sync::Arc;

use super::{VariantKey, Variants};
use crate::entry::Entry;

fn entry(n: u64) -> Arc<Entry> {
    let stored = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#;
    Arc::new(Entry::new("ns/x".into(), n, stored, 0).expect("well formed"))
}

const PROTOBUF: VariantKey = VariantKey { form: 1, shape: 0 };
const CBOR: VariantKey = VariantKey { form: 2, shape: 0 };

#[test]
fn the_budget_is_kept_and_used_variants_are_spared() {
    let variants = Variants::new(1000);
    let entries: Vec<_> = (1..=50).map(entry).collect();
    variants.keep(&entries[0], PROTOBUF, vec![1; 100].into());
    for entry in &entries[1..] {
        assert!(entries[0].variant(PROTOBUF).is_some(), "used every time");
        variants.keep(entry, PROTOBUF, vec![2; 100].into());
        assert!(variants.held() <= 1000);
    }
    assert_eq!(variants.held(), 1000);
    assert!(entries[1].variant(PROTOBUF).is_none(), "never used");
    assert!(entries[49].variant(CBOR).is_none());
}

#[test]
fn variants_freed_with_their_entry_are_no_longer_counted() {
    let variants = Variants::new(1000);
    let one = entry(1);
    variants.keep(&one, PROTOBUF, vec![1; 100].into());
    variants.keep(&one, PROTOBUF, vec![1; 200].into());
    variants.keep(&one, CBOR, vec![1; 50].into());
    assert_eq!(variants.held(), 150);
    variants.keep(&one, VariantKey { form: 3, shape: 9 }, vec![1; 251].into());
    assert_eq!(variants.held(), 150, "too large a part of the budget");
    assert_eq!(one.variant(CBOR).map(|bytes| bytes.len()), Some(50));
    drop(one);
    assert_eq!(variants.held(), 0);
}

#[test]
fn dead_entries_do_not_accumulate_in_the_queue() {
    let variants = Variants::new(1 << 20);
    let alive: Vec<_> = (0..500).map(entry).collect();
    for entry in &alive {
        variants.keep(entry, PROTOBUF, vec![1; 1500].into());
    }
    for n in 0..50_000 {
        variants.keep(&entry(n), PROTOBUF, vec![1; 10].into());
        assert!(variants.clock.lock().len() <= 1024 + 2 * 501 + 1);
    }
    assert!(variants.held() >= 500 * 1500);
}

#[test]
fn room_is_made_in_few_steps_even_if_everything_was_used() {
    let variants = Variants::new(1_000_000);
    let entries: Vec<_> = (0..10_000).map(entry).collect();
    for entry in &entries {
        variants.keep(entry, PROTOBUF, vec![1; 100].into());
        assert!(entry.variant(PROTOBUF).is_some());
    }
    variants.keep(&entry(0), PROTOBUF, vec![1; 100].into());
    assert!(variants.held() <= 1_000_000);
    // The first variants are spared and lose their mark, the next variant is evicted, and the others were not visited.
    let used = |entry: &Arc<Entry>| {
        let slots = entry.variants.0.lock();
        slots
            .as_ref()
            .is_some_and(|slots| slots.kept.iter().any(|v| v.used))
    };
    assert_eq!(entries.iter().filter(|entry| !used(entry)).count(), 257);
}
